package main

import (
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// Every command shows an example of itself.
func TestHelp(t *testing.T) {
	parser, err := kong.New(&commands{}, kong.Name("caper"))
	if err != nil {
		t.Fatal(err)
	}
	leaves := parser.Model.Leaves(false)
	if len(leaves) < 10 {
		t.Fatalf("%d commands", len(leaves))
	}
	for _, leaf := range leaves {
		words := append(strings.Fields(leaf.Path()), "--help")
		r := caper(t, words...)
		if r.status != 0 || r.stderr != "" {
			t.Errorf("%v: status %d: %s", words, r.status, r.stderr)
		}
		_, example, ok := strings.Cut(r.stdout, "Example:")
		if !ok || !strings.Contains(example, "caper "+strings.TrimPrefix(leaf.Path(), "caper ")) {
			t.Errorf("%v: no example of the command in %q", words, r.stdout)
		}
	}
	if r := caper(t); r.status != 0 || !strings.Contains(r.stdout, "Commands:") {
		t.Errorf("no arguments: status %d: %q", r.status, r.stdout)
	}
}

// Wrong use is status 2 with one line that says what is wrong and where to look.
func TestWrongUse(t *testing.T) {
	w := openWorkshop(t)
	out := filepath.Join(t.TempDir(), "out")
	annotate := []string{"annotate", "--bench", w.bench, "--split", "train", "--rollouts", w.rollouts, "--out", out}
	evaluate := []string{"eval", "ex", "--bench", w.bench, "--split", "train", "--pred", w.rollouts, "--out", out}
	config := writeFile(t, filepath.Join(t.TempDir(), "c.toml"), "[train]\nlr = 'fast'\n")
	for _, k := range []struct {
		arguments []string
		want      []string
	}{
		{[]string{"nonsense"}, []string{"nonsense", "caper --help"}},
		{[]string{"plan", "--model", "10B"}, []string{"10B", "27B"}},
		{[]string{"plan", "--model", "9B", "--card", "H300"}, []string{"H300", "H200", "--memory"}},
		{[]string{"plan", "--model", "9B", "--tokens", "1"}, []string{"--tokens 1", "from 2 to"}},
		{[]string{"exec", "--db", w.rollouts, "--rows", "0", "SELECT 1"}, []string{"--rows 0", "from 1 to", "caper exec --help"}},
		{[]string{"exec", "--db", w.rollouts, "--timeout", "0s", "SELECT 1"}, []string{"--timeout 0s", "above 0"}},
		{append(annotate, "--timeout", "0s"), []string{"--timeout 0s"}},
		{[]string{"sample", "--samples", "0", out}, []string{"--samples 0", "from 1 to 1000", "caper sample write --help"}},
		{append(annotate, "--timeout", "100h"), []string{"--timeout 100h", "at most 24h"}},
		{append(annotate, "--workers=-3"), []string{"--workers -3", "from 1 to 1024", "0 for one per core"}},
		{append(annotate, "--workers", "many"), []string{"--workers", "many"}},
		{append(annotate, "--inject=-1"), []string{"--inject -1", "from 0 to"}},
		{append(annotate, "--inject", "-1"), []string{"--inject -1", "from 0 to"}},
		{append(annotate, "--workers", "-1"), []string{"--workers -1", "from 1 to"}},
		{append(annotate, "--timeout", "-1s"), []string{"--timeout -1s", "above 0"}},
		{append(annotate, "--inject", "--json"), []string{"--inject", "--json"}},
		{append(annotate, "-1"), []string{"-1"}},
		{[]string{"score", "--model", out, "--in", out, "--out", out, "--threads", "-2"}, []string{"--threads -2", "from 1 to"}},
		{[]string{"plan", "--model", "9B", "--mfu", "-.5"}, []string{"--mfu -0.5"}},
		{append(annotate, "--seed", "-1"), []string{"--seed", "-1"}},
		{append(annotate, "--cache-size", "1e9"), []string{"--cache-size", "1e9", "GiB"}},
		{append(annotate, "--cache-size", "99999999999GiB"), []string{"--cache-size"}},
		{append(annotate, "--shard", "1/2abc"), []string{"--shard 1/2abc", "i/n"}},
		{append(annotate, "--shard=-1/2"), []string{"--shard -1/2", "i/n"}},
		{append(annotate, "--db", "nope"), []string{"--db nope", "split train", "it has"}},
		{append(annotate, "--not-db", "nope"), []string{"--not-db nope", "split train", "it has"}},
		{append(evaluate, "--db", "nope"), []string{"--db nope"}},
		{append(evaluate, "--workers=-3"), []string{"--workers -3", "caper eval ex --help"}},
		{append(evaluate, "--timeout=-1s"), []string{"--timeout -1s"}},
		{[]string{"inspect", w.rollouts, "--examples=-1"}, []string{"--examples -1"}},
		{[]string{"localize", "--model", out, "--tuples", out, "--threads=-1"}, []string{"--threads -1"}},
		{[]string{"score", "--model", out, "--in", out, "--out", out, "--threads", "5000"}, []string{"--threads 5000"}},
		{[]string{"score", "--model", out, "--in", out, "--out", out, "--aggregate", "max"}, []string{"--aggregate", "mean", "min"}},
		{[]string{"train", "prm", "train.tuples=x", "train.out=" + out, "model.hidden_size=0"}, []string{"model.hidden_size = 0", "override"}},
		{[]string{"train", "prm", "train.batch_pairs=0"}, []string{"train.batch_pairs = 0", "override"}},
		{[]string{"train", "prm", "--config", config}, []string{config + ":2: train.lr: want a number"}},
		{[]string{"exec", "--two\nlines"}, []string{"two", "caper exec --help"}},
		{[]string{"train"}, []string{"prm", "caper train --help"}},
		{[]string{"annotate"}, []string{"--bench", "--out", "--rollouts", "caper annotate --help"}},
		{[]string{"annotate", "--rollouts"}, []string{"--rollouts", "no file"}},
		{append(annotate, "--granularity", "fine"), []string{"--granularity", "top", "nested"}},
		{append(annotate, "--shard", "3/3"), []string{"--shard 3/3", "i/n"}},
		{append(annotate, "--shard", "half"), []string{"--shard half", "i/n"}},
		{append(annotate, "--wrong"), []string{"--wrong"}},
		{append(annotate[:len(annotate)-1:len(annotate)-1], w.rollouts), []string{"--out " + w.rollouts, "another file"}},
		{append(evaluate[:len(evaluate)-1:len(evaluate)-1], w.rollouts), []string{"--out " + w.rollouts, "another file"}},
		{[]string{"score", "--model", out, "--in", config, "--out", config}, []string{"--out " + config}},
		{[]string{"tokenize", "--tokenizer", out, "--in", config, "--out", config}, []string{"--out " + config}},
		{[]string{"trajectories", "--bench", w.bench, "--in", config, "--out", config}, []string{"--out " + config}},
		{[]string{"eval", "ex", "--bench", w.bench, "--pred", w.rollouts, "--rule", "kind", "--out", out}, []string{"kind", "test-suite", "strict"}},
		{[]string{"train", "prm", "train.lr=fast"}, []string{"train.lr=fast"}},
		{[]string{"train", "prm", "train.epoch=3"}, []string{"train.epoch", "train.epochs"}},
		{[]string{"train", "prm", "epochs"}, []string{"epochs", "section.key=value"}},
		{[]string{"demo", "--out", w.bench}, []string{w.bench, "not empty"}},
	} {
		r := caper(t, k.arguments...)
		if r.status != exitUsage {
			t.Errorf("%v: status %d", k.arguments, r.status)
		}
		oneLine(t, k.arguments, r, k.want)
	}
	if _, ok := listing(t, filepath.Dir(out))[out]; ok {
		t.Error("an output was left behind")
	}
}

// oneLine checks that a failed command said one clear line, on stderr, and that names no
// file twice.
func oneLine(t *testing.T, arguments []string, r result, want []string) {
	t.Helper()
	if !strings.HasPrefix(r.stderr, "caper: ") || strings.Count(r.stderr, "\n") != 1 || !strings.HasSuffix(r.stderr, "\n") || r.stdout != "" {
		t.Errorf("%v: stderr %q, stdout %q", arguments, r.stderr, r.stdout)
	}
	for _, word := range strings.Fields(r.stderr) {
		if path := strings.TrimRight(word, ":,;"); filepath.IsAbs(path) && strings.Contains(strings.Replace(r.stderr, path, "", 1), path+": ") {
			t.Errorf("%v: %q names %s twice", arguments, r.stderr, path)
		}
	}
	for _, part := range want {
		if !strings.Contains(r.stderr, part) {
			t.Errorf("%v: %q does not name %q", arguments, r.stderr, part)
		}
	}
}

// oneDocument parses stdout as one JSON object.
func oneDocument(t *testing.T, r result) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(r.stdout))
	var document map[string]any
	if err := d.Decode(&document); err != nil {
		t.Fatalf("stdout %q: %v", r.stdout, err)
	}
	if _, err := d.Token(); err != io.EOF {
		t.Errorf("stdout goes on after the document: %q", r.stdout)
	}
	return document
}
