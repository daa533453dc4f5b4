package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// answering is a server's answer with one text.
func answering(text string) string {
	quoted, _ := json.Marshal(text)
	return fmt.Sprintf(`{"choices":[{"message":{"role":"assistant","content":%s}}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`, quoted)
}

// stub is a server whose n-th answer, from 1 on, is what serve writes.
func stub(t *testing.T, serve func(n int64, w http.ResponseWriter, r *http.Request)) (*Server, *atomic.Int64) {
	t.Helper()
	var calls atomic.Int64
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(calls.Add(1), w, r) }))
	t.Cleanup(h.Close)
	s := NewServer(h.URL+"/v1/", "m")
	s.Timeout, s.Wait = 30*time.Second, time.Millisecond // long: a busy machine is no fault of the server
	return s, &calls
}

var hello = Call{Messages: []Message{{Role: "user", Content: "hello"}}, N: 1}

// Whatever a server does is a typed fault, tried again where that may help.
func TestServerFaults(t *testing.T) {
	for _, c := range []struct {
		name  string
		serve func(n int64, w http.ResponseWriter, r *http.Request)
		fault Fault // "" where the call succeeds in the end
		calls int64
	}{
		{"answers", func(_ int64, w http.ResponseWriter, _ *http.Request) { io.WriteString(w, answering("hi")) }, "", 1},
		{"fails twice", func(n int64, w http.ResponseWriter, _ *http.Request) {
			if n < 3 {
				http.Error(w, "overloaded", http.StatusServiceUnavailable)
				return
			}
			io.WriteString(w, answering("hi"))
		}, "", 3},
		{"always fails", func(_ int64, w http.ResponseWriter, _ *http.Request) { http.Error(w, "oh", 500) }, Busy, 4},
		{"asks to wait", func(n int64, w http.ResponseWriter, _ *http.Request) {
			if n == 1 {
				w.Header().Set("Retry-After", "1")
				http.Error(w, "slow down", http.StatusTooManyRequests)
				return
			}
			io.WriteString(w, answering("hi"))
		}, "", 2},
		{"refuses", func(_ int64, w http.ResponseWriter, _ *http.Request) { http.Error(w, "no such model", 404) }, Refused, 1},
		{"stalls", func(_ int64, _ http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-time.After(5 * time.Second):
			}
		}, Stalled, 4},
		{"stalls in the middle", func(_ int64, w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, `{"choices":[`)
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(5 * time.Second):
			}
		}, Stalled, 4},
		{"hangs up", func(_ int64, w http.ResponseWriter, _ *http.Request) {
			c, _, _ := w.(http.Hijacker).Hijack()
			c.Close()
		}, Unreachable, 4},
		{"answers a page", func(_ int64, w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>welcome</html>") }, Garbled, 4},
		{"answers another object", func(_ int64, w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"choices":"none"}`) }, Garbled, 4},
		{"answers nothing", func(_ int64, w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"choices":[]}`) }, Garbled, 4},
		{"answers null", func(_ int64, w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"choices":[{"message":{"content":null}}]}`)
		}, Garbled, 4},
		{"never ends", func(_ int64, w http.ResponseWriter, _ *http.Request) {
			for range 9 {
				io.WriteString(w, strings.Repeat(" ", 1<<20))
			}
		}, Garbled, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, calls := stub(t, c.serve)
			if c.fault == Stalled {
				s.Timeout = 300 * time.Millisecond
			}
			answers, cost, err := s.Ask(context.Background(), hello)
			var failure *CallError
			switch {
			case c.fault == "" && (err != nil || answers[0] != "hi" || cost.TokensIn != 7 || cost.TokensOut != 3 || cost.Failed != 0):
				t.Errorf("%v, %+v, %v", answers, cost, err)
			case c.fault != "" && (!errors.As(err, &failure) || failure.Fault != c.fault || int64(failure.Tries) != c.calls || cost.Failed != 1):
				t.Errorf("%v, %+v, want %s after %d tries", err, cost, c.fault, c.calls)
			}
			if calls.Load() != c.calls || int64(cost.Calls) != c.calls {
				t.Errorf("%d calls, %+v, want %d", calls.Load(), cost, c.calls)
			}
		})
	}
}

func TestServerUnreachable(t *testing.T) {
	s := NewServer("http://127.0.0.1:1", "m")
	s.Wait, s.Attempts = time.Millisecond, 2
	var failure *CallError
	if _, _, err := s.Ask(context.Background(), hello); !errors.As(err, &failure) || failure.Fault != Unreachable || failure.Tries != 2 {
		t.Error(err)
	}
}

// The budget bounds attempts, of all calls together, and the caller can end a wait.
func TestServerBudgetAndCancellation(t *testing.T) {
	s, calls := stub(t, func(_ int64, w http.ResponseWriter, _ *http.Request) { http.Error(w, "oh", 500) })
	s.Budget = NewBudget(6)
	for range 3 {
		s.Ask(context.Background(), hello)
	}
	var failure *CallError
	if _, _, err := s.Ask(context.Background(), hello); !errors.As(err, &failure) || failure.Fault != Spent || calls.Load() != 6 {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
	s.Budget, s.Wait = nil, time.Hour
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := s.Ask(ctx, hello); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// What was asked once is not asked again, and other questions are.
func TestServerCache(t *testing.T) {
	s, calls := stub(t, func(n int64, w http.ResponseWriter, _ *http.Request) { io.WriteString(w, answering(fmt.Sprint(n))) })
	s.Cache = t.TempDir()
	other := hello
	other.Temperature = 0.5
	for i, want := range []struct {
		call Call
		text string
	}{{hello, "1"}, {hello, "1"}, {other, "2"}, {hello, "1"}} {
		answers, _, err := s.Ask(context.Background(), want.call)
		if err != nil || answers[0] != want.text {
			t.Errorf("call %d: %v, %v", i, answers, err)
		}
	}
	if calls.Load() != 2 {
		t.Errorf("%d calls", calls.Load())
	}
}
