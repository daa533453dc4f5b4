package main

import (
	"bufio"
	"encoding/json"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"caper/data"
)

// served starts caper serve on a free port and returns its address once it says it.
func served(t *testing.T, arguments ...string) (c *exec.Cmd, address string) {
	t.Helper()
	c = process(t, append([]string{"serve", "--listen", "127.0.0.1:0"}, arguments...)...)
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill() })
	for said := bufio.NewScanner(stderr); said.Scan(); {
		if address, _, ok := strings.Cut(said.Text(), " answers"); ok {
			return c, address
		}
	}
	t.Fatalf("serve %v never answers: %v", arguments, c.Wait())
	return nil, ""
}

// posted sends a JSON document and reads the answer's into another.
func posted(t *testing.T, url string, body, into any) int {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Post(url, "application/json", strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode
}

// The service asks a file of candidates, scores clauses as caper score does, and ends with
// status 0 at the first signal.
func TestServe(t *testing.T) {
	w := openWorkshop(t, "tuples", "model")
	c, address := served(t, "--bench", w.bench, "--split", "train", "--candidates", w.rollouts, "--model", w.model(), "--judge", "prm", "--device", "cpu")
	var r data.Rollout
	if err := json.Unmarshal([]byte(lines(readFile(t, w.rollouts))[0]), &r); err != nil {
		t.Fatal(err)
	}
	question := map[string]any{"db_id": r.DBID, "question": r.Question, "evidence": r.Evidence}
	var answer struct {
		SQL        string
		Candidates []struct{ SQL string }
	}
	if status := posted(t, address+"/api/ask", question, &answer); status != 200 || answer.SQL == "" || len(answer.Candidates) != 3 {
		t.Errorf("%d %+v", status, answer)
	}

	out := filepath.Join(t.TempDir(), "scores.jsonl")
	must(t, "score", "--model", w.model(), "--bench", w.bench, "--split", "train", "--in", w.rollouts, "--out", out, "--device", "cpu")
	type scores struct {
		Score   float64
		Clauses []struct{ Score float64 }
	}
	var want scores
	if err := json.Unmarshal([]byte(lines(readFile(t, out))[0]), &want); err != nil {
		t.Fatal(err)
	}
	var got struct{ Queries []scores }
	question["sql"] = []string{r.SQL}
	if status := posted(t, address+"/api/score", question, &got); status != 200 || len(got.Queries) != 1 {
		t.Fatalf("%d %+v", status, got)
	}
	near := func(a, b float64) bool { return a-b < 1e-4 && b-a < 1e-4 } // batches of other sizes sum in another order
	for k, c := range want.Clauses {
		if !near(c.Score, got.Queries[0].Clauses[k].Score) || !near(want.Score, got.Queries[0].Score) {
			t.Errorf("%+v, and caper score says %+v", got.Queries[0], want)
		}
	}

	c.Process.Signal(syscall.SIGTERM)
	stuck := time.AfterFunc(30*time.Second, func() { c.Process.Kill() })
	if err := c.Wait(); err != nil || !stuck.Stop() {
		t.Errorf("at a signal: %v", err)
	}
}

func TestServeRefuses(t *testing.T) {
	w := openWorkshop(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	empty := t.TempDir()
	writeFile(t, filepath.Join(empty, "tables.json"), "[]")
	for _, c := range []struct {
		status    int
		says      string
		arguments []string
	}{
		{exitFailed, "another program has this port", []string{"--bench", w.bench, "--listen", taken.Addr().String()}},
		{exitUsage, "CAPER_SERVE_TOKEN", []string{"--bench", w.bench, "--listen", "0.0.0.0:0"}},
		{exitUsage, "CAPER_SERVE_TOKEN", []string{"--bench", w.bench, "--listen", ":0"}},
		{exitUsage, "HOST:PORT", []string{"--bench", w.bench, "--listen", "8080"}},
		{exitFailed, "has no databases", []string{"--bench", empty}},
	} {
		if r := caper(t, append([]string{"serve"}, c.arguments...)...); r.status != c.status || !strings.Contains(r.stderr, c.says) {
			t.Errorf("%v: %+v", c.arguments, r)
		}
	}
}
