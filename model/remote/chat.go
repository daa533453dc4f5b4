package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"caper/model/safetensors"
)

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

// Ask calls the server's chat completions until it answers or the attempts or the budget
// are used up. The error is a *CallError, or ctx's.
func (s *Server) Ask(ctx context.Context, c Call) (answers []string, cost Cost, err error) {
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
	cost, err = s.exchange(ctx, s.Timeout, s.under("/chat/completions"), body, func(text []byte) (used usage, failure *CallError) {
		answers, used, failure = readMessages(text)
		return used, failure
	})
	if err != nil {
		return nil, cost, err
	}
	s.keep(body, answers)
	return answers, cost, nil
}

// readMessages takes the texts out of an answer. One without any is garbled.
func readMessages(text []byte) ([]string, usage, *CallError) {
	var answer struct {
		Choices []struct {
			Message struct {
				Content *string `json:"content"`
			} `json:"message"`
		} `json:"choices"`
		Usage usage `json:"usage"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, usage{}, garbled("%v", err)
	}
	var texts []string
	for _, c := range answer.Choices {
		if c.Message.Content != nil {
			texts = append(texts, *c.Message.Content)
		}
	}
	if len(texts) == 0 {
		return nil, answer.Usage, garbled("the answer has no choices with a message")
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
	if text, err := json.Marshal(answers); err == nil {
		safetensors.WriteText(s.place(body), text)
	}
}
