package solve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"caper/data"
	"caper/model/remote"
)

// answering is a server's answer with one text.
func answering(text string) string {
	quoted, _ := json.Marshal(text)
	return fmt.Sprintf(`{"choices":[{"message":{"role":"assistant","content":%s}}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`, quoted)
}

// stub is a server whose n-th answer, from 1 on, is what serve writes.
func stub(t *testing.T, serve func(n int64, w http.ResponseWriter, r *http.Request)) (*remote.Server, *atomic.Int64) {
	t.Helper()
	var calls atomic.Int64
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(calls.Add(1), w, r) }))
	t.Cleanup(h.Close)
	s := remote.NewServer(h.URL+"/v1/", "m")
	s.Timeout, s.Wait = 30*time.Second, time.Millisecond // long: a busy machine is no fault of the server
	return s, &calls
}

// A judge that errs, stalls or says neither is a tie, and never the end of a run.
func TestServerJudge(t *testing.T) {
	candidates := []*Examined{{Candidate: rollout("a", "SELECT 1")}, {Candidate: rollout("b", "SELECT 2")}}
	prompt := func(data.Question) (string, error) { return "t(a int)\nquestion: which?\n", nil }
	for _, c := range []struct {
		name  string
		serve func(n int64, w http.ResponseWriter, r *http.Request)
		want  float64
	}{
		{"prefers SELECT 2", func(_ int64, w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			word := "A"
			if strings.Index(string(body), "SELECT 2") > strings.Index(string(body), "SELECT 1") {
				word = "B"
			}
			io.WriteString(w, answering("<think>A or B? A!</think>The better one is "+word+"."))
		}, 0},
		{"always the first", func(_ int64, w http.ResponseWriter, _ *http.Request) { io.WriteString(w, answering("A")) }, 0.5},
		{"says nonsense", func(_ int64, w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, answering("I cannot help with that."))
		}, 0.5},
		{"fails", func(_ int64, w http.ResponseWriter, _ *http.Request) { http.Error(w, "oh", 500) }, 0.5},
	} {
		s, _ := stub(t, c.serve)
		s.Attempts = 2
		scores, cost, err := (&ServerJudge{Server: s, Prompt: prompt}).Compare(context.Background(), data.Question{}, candidates)
		if err != nil || scores[0] != c.want || scores[0]+scores[1] != 1 || cost.Calls < 2 {
			t.Errorf("%s: %v, %+v, %v", c.name, scores, cost, err)
		}
	}
}

// Report 12: chat text around SQL made the parser reject half of the answers.
func TestReport12(t *testing.T) {
	const query = "SELECT name FROM maker WHERE id = 1"
	for _, text := range []string{
		query, query + ";", "```sql\n" + query + "\n```", "Sure! Here is the query:\n```sql\n" + query + ";\n```\nIt lists names.",
		"```\n" + query, "The answer is: " + query, query + "\n\nThis query selects the name.", "<think>maybe SELECT id FROM car?</think>\n" + query,
		"First I select the maker. Then:\n" + query, "```python\nprint(1)\n```\n```sql\n" + query + "\n```", query + "; SELECT 2",
		"With this in mind, " + query,
	} {
		if got := ExtractSQL(text); got != query {
			t.Errorf("%q\n  gives %q", text, got)
		}
	}
	for _, text := range []string{"", "I do not know.", "```\nno\n```", "Please select the one you want."} {
		if got := ExtractSQL(text); got != "" {
			t.Errorf("%q gives %q", text, got)
		}
	}
}
