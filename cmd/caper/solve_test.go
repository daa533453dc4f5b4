package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// candidatesOf makes three generators' candidates out of gold: a right one, one that is
// spelled wrong, one of another query; and gives the lines of the first questions.
func candidatesOf(t *testing.T, w workshop) (lines []string) {
	t.Helper()
	for i, text := range linesOf(readFile(t, w.rollouts)) {
		if i == 12 {
			break
		}
		for source, change := range map[string]func(string) string{
			"a": func(s string) string { return s },
			"b": func(s string) string { return s + " -- the same" },
			"c": func(s string) string { return strings.Replace(s, "SELECT ", "SELECT nosuch, ", 1) },
		} {
			var r map[string]any
			if err := json.Unmarshal([]byte(text), &r); err != nil {
				t.Fatal(err)
			}
			r["source"], r["sql"] = source, change(r["gold"].(string))
			line, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, string(line))
		}
	}
	slices.Sort(lines)
	return lines
}

func linesOf(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

// withoutCost drops what differs from run to run.
func withoutCost(t *testing.T, text string) string {
	t.Helper()
	var out strings.Builder
	for _, line := range linesOf(text) {
		var r map[string]json.RawMessage
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		delete(r, "cost")
		clean, _ := json.Marshal(r)
		out.Write(append(clean, '\n'))
	}
	return out.String()
}

// The order of lines, a second copy of them, gold, and the number of workers change
// nothing of what is chosen.
func TestSolveSelect(t *testing.T) {
	w := openWorkshop(t)
	dir := t.TempDir()
	all := candidatesOf(t, w)
	choose := func(name string, lines []string, more ...string) string {
		in := writeFile(t, filepath.Join(dir, name+".in"), strings.Join(lines, "\n")+"\n")
		out := filepath.Join(dir, name+".jsonl")
		must(t, append([]string{"solve", "select", "--bench", w.bench, "--split", "train", "--candidates", in, "--out", out}, more...)...)
		return withoutCost(t, readFile(t, out))
	}
	want := choose("one", all)
	if strings.Contains(want, "nosuch") || strings.Contains(want, `"source":"c"`) {
		t.Errorf("a query that does not run was taken:\n%s", want)
	}
	reversed := slices.Clone(all)
	slices.Reverse(reversed)
	var noGold []string
	for _, line := range all {
		var r map[string]any
		json.Unmarshal([]byte(line), &r)
		r["gold"], r["verdict"] = "SELECT 1", "correct"
		text, _ := json.Marshal(r)
		noGold = append(noGold, string(text))
	}
	for name, lines := range map[string][]string{"reversed": reversed, "twice": append(reversed, all...), "gold": noGold} {
		if got := choose(name, lines); got != want {
			t.Errorf("%s: other lines:\n%s\nwant\n%s", name, got, want)
		}
	}
	if got := choose("workers", all, "--workers", "1"); got != want {
		t.Error("one worker chooses otherwise")
	}

	in := writeFile(t, filepath.Join(dir, "in"), strings.Join(all, "\n"))
	r := must(t, "solve", "select", "--bench", w.bench, "--split", "train", "--candidates", in, "--out", filepath.Join(dir, "x"), "--explain")
	for _, part := range []string{"class 1: 2 candidates by 2 groups", "error: no such column: nosuch", "only-class: all candidates"} {
		if !strings.Contains(r.stdout, part) {
			t.Errorf("the explanation lacks %q:\n%.2000s", part, r.stdout)
		}
	}
}

// All three stages, with a model server that errs, chats and judges; a second run
// finds all of it done.
func TestSolve(t *testing.T) {
	w := openWorkshop(t)
	calls := 0
	h := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		calls++
		text := "Certainly!\n```sql\nSELECT 1\n```"
		switch {
		case calls%7 == 0:
			http.Error(rw, "overloaded", http.StatusServiceUnavailable)
			return
		case strings.Contains(string(body), "A, B or TIE"):
			text = "TIE"
		}
		quoted, _ := json.Marshal(text)
		fmt.Fprintf(rw, `{"choices":[{"message":{"content":%s}}]}`, quoted)
	}))
	defer h.Close()
	dir := t.TempDir()
	in := writeFile(t, filepath.Join(dir, "in.jsonl"), strings.Join(candidatesOf(t, w), "\n"))
	out := filepath.Join(dir, "solved")
	arguments := []string{"solve", "--bench", w.bench, "--split", "train", "--candidates", in, "--out", out, "--workers", "1",
		"--server", h.URL, "--generator", "server:name=ge,style=ddl,n=1", "--corrector", "server", "--judge", "server"}
	r := must(t, arguments...)
	for _, part := range []string{"candidates.jsonl; ", "mended", "chosen.jsonl"} {
		if !strings.Contains(r.stderr, part) {
			t.Errorf("stderr lacks %q: %s", part, r.stderr)
		}
	}
	if !strings.Contains(readFile(t, filepath.Join(out, "repaired.jsonl")), `"by":"model"`) {
		t.Error("the corrector was not asked")
	}
	if chosen := linesOf(readFile(t, filepath.Join(out, "chosen.jsonl"))); len(chosen) < 12 {
		t.Errorf("%d lines", len(chosen))
	}
	before := calls
	if r := caper(t, arguments...); r.status != exitFailed || !strings.Contains(r.stderr, "--resume") {
		t.Errorf("over a finished run: %+v", r)
	}
	must(t, append(arguments, "--resume")...)
	if calls != before {
		t.Errorf("%d more calls", calls-before)
	}
}

// Our own model as a generator: the same seed, the same candidates.
func TestSolveCandidatesOfModel(t *testing.T) {
	w := openWorkshop(t)
	model := languageModel(t, false)
	dir := t.TempDir()
	write := func(name string) string {
		out := filepath.Join(dir, name)
		must(t, "solve", "candidates", "--bench", w.bench, "--split", "dev", "--generator", "model:name=sp,n=2,temperature=1,max_tokens=6,path="+model, "--out", out)
		return withoutCost(t, readFile(t, out))
	}
	one := write("one")
	if one != write("two") {
		t.Error("a second run writes other candidates")
	}
	if !strings.Contains(one, `"source":"sp"`) || !strings.Contains(one, `"style":"compact"`) {
		t.Errorf("no provenance: %.300s", one)
	}
}

// The study's whole is what solve does, and its oracle counts any right candidate: here
// all, since gold is among them.
func TestSolveAblate(t *testing.T) {
	w := openWorkshop(t)
	dir := t.TempDir()
	in := writeFile(t, filepath.Join(dir, "in.jsonl"), strings.Join(candidatesOf(t, w), "\n"))
	r := must(t, "solve", "ablate", "--bench", w.bench, "--split", "train", "--candidates", in, "--out", filepath.Join(dir, "table.md"),
		"--specialist", "c", "--json")
	var rows []struct {
		Part, Variant   string
		Correct, Oracle int
		Comparison      struct{ Questions int }
		Candidates      int
		Cost            struct{ Executions int }
	}
	if err := json.Unmarshal([]byte(r.stdout), &rows); err != nil {
		t.Fatal(err)
	}
	by := map[string]int{}
	for i, row := range rows {
		by[row.Part+" "+row.Variant] = i
	}
	whole, sp, both := rows[0], rows[by["pool, at equal k sp"]], rows[by["pool, at equal k sp+ge"]]
	n := whole.Comparison.Questions
	switch {
	case n < 3 || whole.Part != "whole" || whole.Oracle != n || whole.Correct != n:
		t.Errorf("%+v", whole)
	case sp.Correct >= n || sp.Candidates != n || both.Candidates != n: // one a question: c, which does not run
		t.Errorf("%+v, %+v", sp, both)
	case by["lifecycle drop"] == 0 || by["selector majority"] == 0 || by["selector s_rm"] != 0:
		t.Errorf("variants %v", by)
	}
	if table := linesOf(readFile(t, filepath.Join(dir, "table.md"))); len(table) != len(rows)+2 {
		t.Errorf("%q", table)
	}
}

func TestSolveWrongUse(t *testing.T) {
	w := openWorkshop(t)
	out := filepath.Join(t.TempDir(), "out")
	base := []string{"--bench", w.bench, "--split", "train", "--out", out}
	for _, c := range []struct {
		arguments []string
		says      string
	}{
		{[]string{"solve", "select", "--candidates", w.rollouts, "--judge", "prm"}, "--model is missing"},
		{[]string{"solve", "select", "--candidates", w.rollouts, "--judge", "server"}, "--server is missing"},
		{[]string{"solve", "select", "--candidates", w.rollouts, "--margin", "3"}, "--margin 3"},
		{[]string{"solve", "select", "--candidates", w.rollouts, "--judge", "server", "--server", "localhost"}, "http://"},
		{[]string{"solve", "repair", "--candidates", w.rollouts, "--corrector", "server"}, "--server is missing"},
		{[]string{"solve", "repair", "--candidates", w.rollouts, "--lifecycle", "unified"}, "--corrector is missing"},
		{[]string{"solve", "candidates"}, "--generator is missing"},
		{[]string{"solve", "candidates", "--generator", "oracle:n=1"}, "want server:... or model:..."},
		{[]string{"solve", "candidates", "--generator", "server:n=0,url=http://x"}, "n=0"},
		{[]string{"solve", "candidates", "--generator", "server:style=long,url=http://x"}, "compact or ddl"},
		{[]string{"solve", "candidates", "--generator", "server:n=1"}, "url is missing"},
		{[]string{"solve", "candidates", "--generator", "model:n=1"}, "path is missing"},
		{[]string{"solve", "candidates", "--generator", "server:url=http://x", "--demonstrations", "train"}, "name a training split"},
	} {
		if r := caper(t, append(c.arguments, base...)...); r.status != exitUsage || !strings.Contains(r.stderr, c.says) {
			t.Errorf("%v: %+v", c.arguments, r)
		}
	}
}
