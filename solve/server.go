package solve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"caper/data"
)

// Server is a model behind an HTTP API of the form that OpenAI's chat completions have,
// which most model servers speak. It is safe for concurrent use.
type Server struct {
	// URL is the API's root, such as http://localhost:8000/v1.
	URL string
	// Model is the name that the server knows the model by, Key the token it asks for.
	Model, Key string
	// Timeout is the wall time of one attempt, Attempts how often a call is tried.
	Timeout  time.Duration
	Attempts int
	// Wait is the time before the second attempt; it doubles from one to the next.
	Wait time.Duration
	// Budget bounds the attempts of all calls together, of several servers perhaps; nil:
	// any number.
	Budget *Budget
	// Cache is a folder that keeps answers by what was asked, "" for none.
	Cache string

	turns    chan struct{}
	turnsSet sync.Once
}

// Budget is a number of attempts that may still be made.
type Budget struct {
	all  int64
	left atomic.Int64
}

// NewBudget returns one of so many attempts.
func NewBudget(calls int64) *Budget {
	b := &Budget{all: calls}
	b.left.Store(calls)
	return b
}

// take takes one attempt, if one is left.
func (b *Budget) take() bool { return b == nil || b.left.Add(-1) >= 0 }

// NewServer returns one with limits that suit most: two minutes an attempt, four
// attempts, from half a second on.
func NewServer(url, model string) *Server {
	return &Server{URL: url, Model: model, Timeout: 2 * time.Minute, Attempts: 4, Wait: time.Second / 2}
}

// Message is one of a conversation.
type Message struct {
	Role    string `json:"role"` // system, user or assistant
	Content string `json:"content"`
}

// Call is what a server is asked.
type Call struct {
	Messages    []Message `json:"messages"`
	N           int       `json:"n,omitempty"` // answers
	Temperature float64   `json:"temperature"`
	MaxTokens   int       `json:"max_tokens,omitempty"`
	Seed        uint64    `json:"seed,omitempty"`
}

// Fault classifies why a call gave no answer.
type Fault string

const (
	Unreachable Fault = "unreachable" // no connection, or one that broke
	Stalled     Fault = "stalled"     // no answer in time
	Refused     Fault = "refused"     // a status that says it is no use to ask again
	Busy        Fault = "busy"        // a status that says to ask later
	Garbled     Fault = "garbled"     // an answer that is not what the API says
	Spent       Fault = "spent"       // the budget of calls is used up
)

// CallError is a call that gave no answer, after all attempts.
type CallError struct {
	Fault   Fault
	Message string
	Tries   int

	again bool          // it is worth another attempt
	after time.Duration // which the server asks to wait
}

func (e *CallError) Error() string {
	return fmt.Sprintf("model server %s: %s (%d attempts)", e.Fault, e.Message, e.Tries)
}

// Ask calls the server until it answers or the attempts or the budget are used up. The
// error is a *CallError, or ctx's.
func (s *Server) Ask(ctx context.Context, c Call) (answers []string, cost Cost, err error) {
	began := time.Now()
	defer func() { cost.since(began) }()
	body, err := json.Marshal(struct {
		Model string `json:"model"`
		Call
	}{s.Model, c})
	if err != nil {
		return nil, cost, fmt.Errorf("model server: %w", err)
	}
	if answers, ok := s.kept(body); ok {
		return answers, cost, nil
	}
	if err := s.takeTurn(ctx); err != nil {
		return nil, cost, err
	}
	defer func() { <-s.turns }()
	wait := s.Wait
	var failure *CallError
	for try := 1; try <= max(s.Attempts, 1); try++ {
		if !s.Budget.take() {
			failure = &CallError{Fault: Spent, Message: fmt.Sprintf("all %d calls of the budget are made", s.Budget.all), Tries: try - 1}
			break
		}
		cost.Calls++
		var usage usage
		answers, usage, failure = s.attempt(ctx, body)
		cost.TokensIn += usage.Prompt
		cost.TokensOut += usage.Completion
		if ctx.Err() != nil {
			return nil, cost, ctx.Err()
		}
		if failure == nil {
			s.keep(body, answers)
			return answers, cost, nil
		}
		failure.Tries = try
		if !failure.again || try == s.Attempts {
			break
		}
		if err := sleep(ctx, max(wait, min(failure.after, time.Minute))); err != nil {
			return nil, cost, err
		}
		wait *= 2
	}
	cost.Failed++
	return nil, cost, failure
}

// maxTurns is how many calls are under way at a time.
const maxTurns = 16

func (s *Server) takeTurn(ctx context.Context) error {
	s.turnsSet.Do(func() { s.turns = make(chan struct{}, maxTurns) })
	select {
	case s.turns <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// usage is the tokens of a call, as the server counts them.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
}

// maxAnswerBytes bounds what is read of an answer.
const maxAnswerBytes = 8 << 20

// attempt is one request.
func (s *Server) attempt(ctx context.Context, body []byte) ([]string, usage, *CallError) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(s.URL, "/")+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, usage{}, &CallError{Fault: Refused, Message: err.Error()}
	}
	request.Header.Set("Content-Type", "application/json")
	if s.Key != "" {
		request.Header.Set("Authorization", "Bearer "+s.Key)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, usage{}, s.broken(ctx, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes+1))
	switch {
	case err != nil:
		return nil, usage{}, s.broken(ctx, err)
	case len(text) > maxAnswerBytes:
		return nil, usage{}, &CallError{Fault: Garbled, Message: fmt.Sprintf("the answer has more than %d bytes", maxAnswerBytes)}
	case response.StatusCode != http.StatusOK:
		return nil, usage{}, refusal(response, text)
	}
	return readAnswer(text)
}

// broken is the fault of a connection that gave no whole answer.
func (s *Server) broken(ctx context.Context, err error) *CallError {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &CallError{Fault: Stalled, Message: fmt.Sprintf("no answer in %v", s.Timeout), again: true}
	}
	return &CallError{Fault: Unreachable, Message: err.Error(), again: true}
}

// refusal is the fault that a status tells.
func refusal(r *http.Response, text []byte) *CallError {
	const most = 200
	e := &CallError{Fault: Refused, Message: r.Status + ": " + oneLine(strings.ToValidUTF8(string(text[:min(len(text), most)]), ""))}
	if r.StatusCode == http.StatusTooManyRequests || r.StatusCode == http.StatusRequestTimeout || r.StatusCode >= 500 {
		e.Fault, e.again = Busy, true
		if seconds, err := strconv.Atoi(r.Header.Get("Retry-After")); err == nil && seconds > 0 {
			e.after = time.Duration(seconds) * time.Second
		}
	}
	return e
}

// readAnswer takes the texts out of an answer. One without any is garbled, and worth
// another attempt.
func readAnswer(text []byte) ([]string, usage, *CallError) {
	var answer struct {
		Choices []struct {
			Message struct {
				Content *string `json:"content"`
			} `json:"message"`
		} `json:"choices"`
		Usage usage `json:"usage"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, usage{}, &CallError{Fault: Garbled, Message: data.PlainJSONError(err).Error(), again: true}
	}
	var texts []string
	for _, c := range answer.Choices {
		if c.Message.Content != nil {
			texts = append(texts, *c.Message.Content)
		}
	}
	if len(texts) == 0 {
		return nil, answer.Usage, &CallError{Fault: Garbled, Message: "the answer has no choices with a message", again: true}
	}
	return texts, answer.Usage, nil
}

// place is the file of an answer in the cache.
func (s *Server) place(body []byte) string {
	sum := sha256.Sum256(append([]byte(s.URL+"\n"), body...))
	return filepath.Join(s.Cache, hex.EncodeToString(sum[:16])+".json")
}

// kept looks an answer up. A file that cannot be read is as good as none.
func (s *Server) kept(body []byte) (answers []string, ok bool) {
	if s.Cache == "" {
		return nil, false
	}
	text, err := os.ReadFile(s.place(body))
	if err != nil || json.Unmarshal(text, &answers) != nil {
		return nil, false
	}
	return answers, len(answers) > 0
}

// keep keeps an answer, if it can: a full disk only costs the next run a call.
func (s *Server) keep(body []byte, answers []string) {
	if s.Cache == "" {
		return
	}
	f, err := data.Create(s.place(body))
	if err != nil {
		return
	}
	defer f.Discard()
	if f.WriteLine(answers) == nil {
		f.Commit()
	}
}
