package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"caper/data"
)

func lines(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

// The tuple file is the same bytes with any number of workers, and that of a
// benchmark's shards together.
func TestAnnotate(t *testing.T) {
	w := openWorkshop(t)
	dir := t.TempDir()
	annotate := func(name string, more ...string) (string, result) {
		out := filepath.Join(dir, name)
		r := must(t, append([]string{"annotate", "--bench", w.bench, "--split", "train", "--out", out}, more...)...)
		return readFile(t, out), r
	}
	one, r := annotate("one", "--rollouts", w.rollouts, "--workers", "1")
	if !regexp.MustCompile(`rollouts +60\n`).MatchString(r.stderr) || r.stdout != "" {
		t.Errorf("%+v", r)
	}
	if three, _ := annotate("three", "--rollouts", w.rollouts, "--workers", "3"); three != one {
		t.Error("three workers write other bytes than one")
	}
	if again, _ := annotate("one", "--rollouts", w.rollouts); again != one {
		t.Error("a second run writes other bytes")
	}
	if other, _ := annotate("seed", "--rollouts", w.rollouts, "--seed", "2"); other == one {
		t.Error("another seed draws the same mutants")
	}

	var union []string
	for i := range 3 {
		shard, _ := annotate("shard", "--rollouts", w.rollouts, "--shard", fmt.Sprintf("%d/3", i))
		union = append(union, lines(shard)...)
	}
	whole := lines(one)
	slices.Sort(union)
	slices.Sort(whole)
	if !slices.Equal(union, whole) {
		t.Errorf("three shards hold %d tuples, the whole %d", len(union), len(whole))
	}

	// Rollouts in two files, given in either way, are the rollouts of one.
	all := lines(readFile(t, w.rollouts))
	first := writeFile(t, filepath.Join(dir, "in 1.jsonl"), strings.Join(all[:25], "\n")+"\n")
	second := writeFile(t, filepath.Join(dir, "in 2.jsonl"), strings.Join(all[25:], "\n")+"\n")
	for _, words := range [][]string{{"--rollouts", first, second}, {"--rollouts", first, "--rollouts", second}, {"--rollouts=" + first, "--workers", "2", "--rollouts=" + second}} {
		if two, _ := annotate("two", words...); two != one {
			t.Errorf("%q: other tuples than from one file", words)
		}
	}

	_, r = annotate("json", "--rollouts", w.rollouts, "--json")
	if d := oneDocument(t, r); d["rollouts"] != 60.0 || d["tuples"] != float64(len(whole)) {
		t.Errorf("summary %v of %d tuples", d, len(whole))
	}
	for path := range listing(t, dir) {
		if strings.HasSuffix(path, ".tmp") {
			t.Errorf("%s is left over", path)
		}
	}
}

// Relative paths are those of the folder in which the command runs.
func TestRelativePaths(t *testing.T) {
	w := openWorkshop(t)
	t.Chdir(filepath.Dir(w.bench))
	out := filepath.Join(t.TempDir(), "out.jsonl")
	relative, err := filepath.Rel(filepath.Dir(w.bench), out)
	if err != nil {
		t.Fatal(err)
	}
	must(t, "eval", "ex", "--bench", "bench", "--split", "train", "--pred", "bench/rollouts/train.jsonl", "--out", relative)
	if n := len(lines(readFile(t, out))); n != 60 {
		t.Errorf("%d verdicts", n)
	}
}

// An emptied benchmark is filled, and its gold annotated.
func TestSampleFill(t *testing.T) {
	w := openWorkshop(t)
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "filled")
	for _, name := range []string{"tables.json", "train.json"} {
		writeFile(t, filepath.Join(dir, name), readFile(t, filepath.Join(w.bench, name)))
	}
	s := oneDocument(t, must(t, "sample", "fill", dir, "--out", out, "--rows", "30", "--json"))
	if s["questions"] != 20.0 || s["returning"].(float64) < 18 {
		t.Errorf("%v", s)
	}
	a := oneDocument(t, must(t, "annotate", "--bench", out, "--split", "train", "--rollouts", filepath.Join(out, "rollouts", "train.jsonl"),
		"--out", filepath.Join(dir, "tuples.jsonl"), "--json"))
	if a["correct"] != 20.0 || a["mutants_accepted"].(float64) < 3*20 {
		t.Errorf("%v", a)
	}
	if r := caper(t, "sample", "fill", dir, "--out", out); r.status != exitFailed || !strings.Contains(r.stderr, "not empty") {
		t.Errorf("%+v", r)
	}
}

func TestEvalEX(t *testing.T) {
	w := openWorkshop(t)
	out := filepath.Join(t.TempDir(), "verdicts.jsonl")
	r := must(t, "eval", "ex", "--bench", w.bench, "--split", "train", "--pred", w.rollouts, "--rule", "strict", "--out", out, "--json")
	counts := map[string]int{}
	for i, line := range lines(readFile(t, out)) {
		var v struct {
			ID      data.QuestionID `json:"question_id"`
			Source  string
			Verdict string
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil || v.ID.IsZero() || v.Source == "" {
			t.Fatalf("line %d: %s: %v", i+1, line, err)
		}
		counts[v.Verdict]++
	}
	d := oneDocument(t, r)
	verdicts, _ := d["verdicts"].(map[string]any)
	if d["count"] != 60.0 || d["ex"] != float64(counts["correct"])/60 || counts["correct"] == 0 || counts["wrong"] == 0 {
		t.Errorf("%v of %v", d, counts)
	}
	for verdict, n := range verdicts {
		if n != float64(counts[verdict]) {
			t.Errorf("%s: %v in the summary, %d in the file", verdict, n, counts[verdict])
		}
	}

	// A gold file in Spider's format is right about itself.
	gold := filepath.Join(filepath.Dir(out), "gold.sql")
	bench, err := data.OpenBenchmark(w.bench, "spider")
	if err != nil {
		t.Fatal(err)
	}
	defer bench.Close()
	questions, err := bench.Questions("train")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, q := range questions {
		fmt.Fprintf(&text, "%s\t%s\n", q.Gold, q.DBID)
	}
	writeFile(t, gold, text.String())
	r = must(t, "eval", "ex", "--bench", w.bench, "--split", "train", "--pred", gold, "--rule", "bird", "--out", out, "--json")
	if d := oneDocument(t, r); d["ex"] != 1.0 || d["count"] != float64(len(questions)) {
		t.Errorf("gold against itself: %v", d)
	}
}

// A model trained by one command serves the others.
func TestTrainedModelServesTheOtherCommands(t *testing.T) {
	w := openWorkshop(t, "tuples", "model")
	dir := t.TempDir()

	r := must(t, "localize", "--model", w.model(), "--tuples", w.tuples, "--baselines", "--balanced", "--json", "--threads", "1")
	d := oneDocument(t, r)
	baselines, _ := d["baselines"].(map[string]any)
	for _, name := range []string{"random", "first", "longest", "frequent"} {
		b, _ := baselines[name].(map[string]any)
		if top1, ok := b["top1"].(float64); !ok || top1 < 0 || top1 > 1 {
			t.Errorf("baselines.%s.top1 = %v", name, b["top1"])
		}
	}
	if n, _ := d["count"].(float64); n < 20 || d["top1"] == nil || d["mrr"] == nil {
		t.Errorf("%v", d)
	}
	balanced := writeFile(t, filepath.Join(dir, "balanced.json"), r.stdout)
	if r := must(t, "localize", "--model", w.model(), "--tuples", w.tuples, w.tuples); r.stdout != "" || !strings.Contains(r.stderr, "Clause-PRM") {
		t.Errorf("%+v", r)
	}

	scores := filepath.Join(dir, "scores.jsonl")
	must(t, "score", "--model", w.model(), "--bench", w.bench, "--split", "train", "--in", w.rollouts, "--out", scores)
	rollouts := lines(readFile(t, w.rollouts))
	for i, line := range lines(readFile(t, scores)) {
		var s struct {
			SQL     string
			Clauses []struct {
				Start, End int
				Kind       string
				Score      float64
			}
			EndScore *float64 `json:"end_score"`
			Score    *float64
		}
		var before struct{ SQL string }
		if err := json.Unmarshal([]byte(rollouts[i]), &before); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(line), &s); err != nil || s.EndScore == nil || s.Score == nil || s.SQL != before.SQL {
			t.Fatalf("line %d: %s: %v", i+1, line, err)
		}
		at := 0
		for _, c := range s.Clauses {
			if c.Start != at || c.End <= at || c.Kind == "" {
				t.Errorf("line %d: clauses do not partition the query: %+v", i+1, s.Clauses)
			}
			at = c.End
		}
	}
	// A line's own prompt needs no benchmark, and scores the same.
	withPrompt := filepath.Join(dir, "prompted.jsonl")
	tuple := lines(readFile(t, w.tuples))[0]
	var p struct{ Prompt, SQLRejected string }
	if err := json.Unmarshal([]byte(strings.Replace(tuple, "sql_rejected", "SQLRejected", 1)), &p); err != nil {
		t.Fatal(err)
	}
	in, err := json.Marshal(map[string]string{"question_id": "q", "db_id": "d", "prompt": p.Prompt, "sql": p.SQLRejected})
	if err != nil {
		t.Fatal(err)
	}
	must(t, "score", "--model", w.model(), "--in", writeFile(t, filepath.Join(dir, "in.jsonl"), string(in)+"\n"), "--out", withPrompt)
	if text := readFile(t, withPrompt); !strings.Contains(text, "end_score") {
		t.Error(text)
	}

	page := filepath.Join(dir, "report.html")
	must(t, "report", w.run, "--localize", "test="+balanced, "--out", page)
	if text := readFile(t, page); !strings.Contains(text, "</html>") {
		t.Errorf("report of %d bytes", len(text))
	}
	if r := must(t, "inspect", w.tuples); !strings.Contains(r.stdout, "By clause") || !strings.Contains(r.stdout, "Margins") {
		t.Error(r.stdout)
	}
	for _, path := range []string{w.model(), filepath.Join(w.model(), "model.safetensors"), filepath.Join(w.run, "checkpoints", "step-4")} {
		if r := must(t, "inspect", path); !strings.Contains(r.stdout, "score.weight") || !strings.Contains(r.stdout, "elements") {
			t.Errorf("%s: %s", path, r.stdout)
		}
	}
}

func TestTrainPRM(t *testing.T) {
	w := openWorkshop(t, "tuples")
	run := filepath.Join(t.TempDir(), "run")
	words := append([]string{"train", "prm"}, w.training(run)...)
	printed := must(t, append(words, "--print-config")...)
	if !strings.Contains(printed.stdout, "hidden_size = 16") {
		t.Error(printed.stdout)
	}
	if _, err := os.Stat(run); !os.IsNotExist(err) {
		t.Error("--print-config made the run folder")
	}
	d := oneDocument(t, must(t, append(words, "--json")...))
	if d["steps"] != 4.0 || d["model"] != filepath.Join(run, "model") {
		t.Errorf("%v", d)
	}
	must(t, append(words, "--resume")...) // finished: nothing to do

	// The printed configuration is one to start from.
	config := writeFile(t, filepath.Join(filepath.Dir(run), "c.toml"), printed.stdout)
	again := filepath.Join(filepath.Dir(run), "again")
	r := must(t, "train", "prm", "--config", config, "train.out="+again, "train.holdout_databases=0")
	if strings.Contains(r.stderr, "-100") {
		t.Errorf("a Top-1 without validation: %s", r.stderr)
	}
}

// Ids decode to the text they came from, in its composed form, added tokens
// included.
func TestTokenizeRoundTrip(t *testing.T) {
	w := openWorkshop(t, "tuples", "model")
	tokenizer := filepath.Join(w.model(), "tokenizer.json")
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	texts := []string{"", "SELECT name FROM t<|clause|>WHERE 1<|im_end|>", "naïve Łódź 日本 \U0001F600", "a\r\n\tb\x00", "<|im_end"}
	drawn := rapid.StringOf(rapid.RuneFrom([]rune("<|>\n\t \"\\"), unicode.Latin, unicode.Han, unicode.Digit))
	for seed := range 300 {
		texts = append(texts, drawn.Example(seed))
	}
	var in strings.Builder
	for i, text := range texts {
		line, err := json.Marshal(map[string]any{"text": text, "keep": i})
		if err != nil {
			t.Fatal(err)
		}
		in.Write(append(line, '\n'))
	}
	writeFile(t, path("in"), in.String())
	must(t, "tokenize", "--tokenizer", tokenizer, "--in", path("in"), "--out", path("one"), "--threads", "1")
	r := must(t, "tokenize", "--tokenizer", tokenizer, "--in", path("in"), "--out", path("ids"), "--threads", "3")
	if readFile(t, path("one")) != readFile(t, path("ids")) {
		t.Error("three threads write other bytes than one")
	}
	if !strings.HasPrefix(r.stderr, fmt.Sprintf("%d lines, ", len(texts))) || !strings.HasSuffix(r.stderr, " MB/s, 3 threads\n") {
		t.Errorf("%+v", r)
	}
	must(t, "tokenize", "--tokenizer", tokenizer, "--in", path("ids"), "--out", path("out"), "--decode")
	for i, line := range lines(readFile(t, path("out"))) {
		var back struct {
			Text string
			IDs  []int32
			Keep int
		}
		if err := json.Unmarshal([]byte(line), &back); err != nil || back.Text != norm.NFC.String(texts[i]) || back.Keep != i {
			t.Errorf("%q became %s: %v", texts[i], line, err)
		}
	}

	// An added token is one id.
	writeFile(t, path("in"), "{\"text\":\"<|clause|>\"}\n")
	must(t, "tokenize", "--tokenizer", tokenizer, "--in", path("in"), "--out", path("ids"))
	var ids struct{ IDs []int32 }
	if err := json.Unmarshal([]byte(readFile(t, path("ids"))), &ids); err != nil || len(ids.IDs) != 1 {
		t.Errorf("%+v: %v", ids, err)
	}
}

func TestExec(t *testing.T) {
	w := openWorkshop(t)
	databases, err := filepath.Glob(filepath.Join(w.bench, "database", "*", "*.sqlite"))
	if err != nil || len(databases) == 0 {
		t.Fatalf("databases %v: %v", databases, err)
	}
	exec := func(words ...string) result {
		return caper(t, append([]string{"exec", "--db", databases[0]}, words...)...)
	}
	if r := exec("SELECT 7 AS a, NULL AS b"); r.status != 0 || !strings.Contains(r.stdout, "7") || !strings.Contains(r.stdout, "NULL") || !strings.Contains(r.stderr, "1 row in ") {
		t.Errorf("%+v", r)
	}
	r := exec("SELECT x'00ff' AS a, 1e999 AS b, 'ü' AS c, NULL AS d, 2.5 UNION ALL SELECT 1, 2, 3, 4, 5", "--json", "--rows", "1")
	want := map[string]any{"columns": []any{"a", "b", "c", "d", "2.5"}, "rows": []any{[]any{"x'00ff'", "Inf", "ü", nil, 2.5}}, "truncated": true}
	d := oneDocument(t, r)
	delete(d, "elapsed_ms")
	if !reflect.DeepEqual(d, want) {
		t.Errorf("%v", d)
	}
	if r := exec("SELECT 'two\nlines' AS a"); len(lines(r.stdout)) != 2 {
		t.Errorf("%+v", r)
	}
	before := readFile(t, databases[0])
	const endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT count(*) FROM n"
	for _, words := range [][]string{
		{"SELECT nothing FROM nowhere"}, {"SELEC 1"}, {"SELECT\n1\nFROM"}, {""}, {"SELECT 1; SELECT 2"}, {"ATTACH 'x' AS y"}, {"PRAGMA query_only = 0"},
		{"CREATE TABLE t (a)"}, {"SELECT zeroblob(400000000)"}, {endless, "--timeout", "100ms"},
	} {
		r := exec(words...)
		if r.status != exitFailed {
			t.Errorf("%q: status %d", words, r.status)
		}
		oneLine(t, words, r, nil)
	}
	if readFile(t, databases[0]) != before {
		t.Error("the database changed")
	}
}
