package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// A Parquet file serves every command that reads tuples as JSON Lines do.
func TestParquetTuples(t *testing.T) {
	w := openWorkshop(t, "tuples", "model")
	dir := t.TempDir()
	parquet := filepath.Join(dir, "tuples.parquet")
	must(t, "annotate", "--bench", w.bench, "--split", "train", "--rollouts", w.rollouts, "--out", parquet)
	if text := readFile(t, parquet); !strings.HasPrefix(text, "PAR1") {
		t.Fatalf("it begins with %q", text[:4])
	}
	for _, command := range [][]string{
		{"inspect", "--examples", "7"},
		{"inspect", "--json"},
		{"localize", "--model", w.model(), "--baselines", "--json", "--threads", "1", "--training", w.tuples, "--tuples"},
	} {
		lines, columns := must(t, append(command, w.tuples)...), must(t, append(command, parquet)...)
		if lines.stdout != columns.stdout {
			t.Errorf("%v: with JSON Lines\n%s\nwith Parquet\n%s", command, lines.stdout, columns.stdout)
		}
	}
	run := filepath.Join(dir, "run")
	same := w
	same.tuples = parquet
	must(t, append([]string{"train", "prm"}, same.training(run)...)...)
	weights := filepath.Join("model", "model.safetensors")
	if readFile(t, filepath.Join(run, weights)) != readFile(t, filepath.Join(w.run, weights)) {
		t.Error("training on Parquet gives another model")
	}
}

// The summary goes to a file too, and a second run finds every result of the first.
func TestSummaryAndCache(t *testing.T) {
	w := openWorkshop(t)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	annotate := func(out string) result {
		return must(t, "annotate", "--bench", w.bench, "--split", "train", "--rollouts", w.rollouts, "--out", at(out), "--cache", at("cache"),
			"--cache-size", "16MiB", "--summary", at("summary.json"), "--json")
	}
	first := annotate("first.jsonl")
	if first.stdout != readFile(t, at("summary.json")) {
		t.Errorf("on stdout %s, in the file %s", first.stdout, readFile(t, at("summary.json")))
	}
	kept := listing(t, at("cache"))
	if second := annotate("second.jsonl"); second.stdout != first.stdout || readFile(t, at("second.jsonl")) != readFile(t, at("first.jsonl")) {
		t.Error("results that were kept give other tuples")
	}
	// What ran into the clock on a busy machine is not kept, and runs again.
	again, fresh, bytes := listing(t, at("cache")), 0, 0
	for path, text := range again {
		bytes += len(text)
		if _, ok := kept[path]; !ok {
			fresh += len(text)
		}
	}
	if len(kept) != 2 || fresh*100 > bytes {
		t.Errorf("%d segments, and the second run added %d of %d bytes; want one, in which it finds everything", len(kept)-1, fresh, bytes)
	}
}

// Only the tuples asked for are shown.
func TestInspectFilters(t *testing.T) {
	w := openWorkshop(t, "tuples")
	r := must(t, "inspect", w.tuples, "--clause", "where", "--operator", "where", "--examples", "1000")
	counts := oneDocument(t, must(t, "inspect", w.tuples, "--clause", "where", "--operator", "where", "--json"))
	if n := strings.Count(r.stdout, "\n  - "); n == 0 || float64(n) != counts["tuples"] {
		t.Errorf("%d examples of %v tuples", n, counts["tuples"])
	}
	if byClause, _ := counts["by_clause"].(map[string]any); len(byClause) != 1 || byClause["WHERE"] != counts["tuples"] {
		t.Errorf("by clause: %v", byClause)
	}
	none := caper(t, "inspect", w.tuples, "--operator", "nope")
	if none.status != exitFailed {
		t.Errorf("status %d", none.status)
	}
	oneLine(t, []string{"inspect"}, none, []string{"nope", w.tuples})
}
