// Package remote asks models behind HTTP servers: chat answers from any server that
// speaks OpenAI's API, and samples of a policy, with their tokens and log-probs, from
// those that give them.
//
//	server.go   servers, attempts, limits
//	fault.go    why a call gave no answer
//	chat.go     answers to messages, kept by what was asked
//	sample.go   samples that continue a prompt
//	weights.go  handing weights over
package remote

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Server is a model behind an HTTP API of the form that OpenAI's has, which most model
// servers speak. It is safe for concurrent use.
type Server struct {
	// URL is the API's root, such as http://localhost:8000/v1.
	URL string
	// API is what the server speaks beside OpenAI's API; "" for nothing.
	API API
	// Model is the name that the server knows the model by, Key the token it asks for.
	Model, Key string
	// Timeout is the wall time of one attempt, Attempts how often a call is tried.
	Timeout  time.Duration
	Attempts int
	// Wait is the time before the second attempt; it doubles from one to the next.
	Wait time.Duration
	// Turns is how many calls are under way at a time; 0 means 16.
	Turns int
	// Budget bounds the attempts of all calls together, of several servers perhaps; nil:
	// any number.
	Budget *Budget
	// Cache is a folder that keeps chat answers by what was asked, "" for none.
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

// Cost is what calls took.
type Cost struct {
	Calls, Failed       int // attempts, and calls that gave no answer after all of them
	TokensIn, TokensOut int // as the server counts them
	Time                time.Duration
}

// usage is the tokens of a call, as the server counts them.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
}

// under is the address of one of the API's calls; beside that of one of the server's own.
func (s *Server) under(path string) string { return strings.TrimRight(s.URL, "/") + path }

func (s *Server) beside(path string) string {
	return strings.TrimSuffix(strings.TrimRight(s.URL, "/"), "/v1") + path
}

// exchange posts a body until read is content with the answer, or the attempts or the
// budget are used up. The error is a *CallError, or ctx's.
func (s *Server) exchange(ctx context.Context, timeout time.Duration, url string, body []byte, read func(text []byte) (usage, *CallError)) (cost Cost, err error) {
	began := time.Now()
	defer func() { cost.Time = time.Since(began) }()
	if err := s.takeTurn(ctx); err != nil {
		return cost, err
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
		var text []byte
		if text, failure = s.attempt(ctx, timeout, url, body); failure == nil {
			var used usage
			used, failure = read(text)
			cost.TokensIn += used.Prompt
			cost.TokensOut += used.Completion
		}
		if ctx.Err() != nil {
			return cost, ctx.Err()
		}
		if failure == nil {
			return cost, nil
		}
		failure.Tries = try
		if !failure.again || try == s.Attempts {
			break
		}
		if err := sleep(ctx, max(wait, min(failure.after, time.Minute))); err != nil {
			return cost, err
		}
		wait *= 2
	}
	cost.Failed++
	return cost, failure
}

func (s *Server) takeTurn(ctx context.Context) error {
	s.turnsSet.Do(func() { s.turns = make(chan struct{}, s.Concurrency()) })
	select {
	case s.turns <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Concurrency is how many calls are under way at a time.
func (s *Server) Concurrency() int { return cmp.Or(s.Turns, 16) }

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

// maxAnswerBytes bounds what is read of an answer.
const maxAnswerBytes = 8 << 20

// attempt is one request.
func (s *Server) attempt(ctx context.Context, timeout time.Duration, url string, body []byte) ([]byte, *CallError) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, &CallError{Fault: Refused, Message: err.Error()}
	}
	request.Header.Set("Content-Type", "application/json")
	if s.Key != "" {
		request.Header.Set("Authorization", "Bearer "+s.Key)
	}
	// The fault of a connection that gave no whole answer.
	broken := func(err error) *CallError {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return &CallError{Fault: Stalled, Message: fmt.Sprintf("no answer in %v", timeout), again: true}
		}
		return &CallError{Fault: Unreachable, Message: err.Error(), again: true}
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, broken(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes+1))
	switch {
	case err != nil:
		return nil, broken(err)
	case len(text) > maxAnswerBytes:
		return nil, &CallError{Fault: Garbled, Message: fmt.Sprintf("the answer has more than %d bytes", maxAnswerBytes)}
	case response.StatusCode != http.StatusOK:
		return nil, refusal(response, text)
	}
	return text, nil
}
