package main

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"caper/data/sample"
)

// result is what a command left for its caller.
type result struct {
	status         int
	stdout, stderr string
}

// caper runs a command line in this process.
func caper(t *testing.T, arguments ...string) result {
	t.Helper()
	var r result
	r.stdout = captured(t, &os.Stdout, func() {
		r.stderr = captured(t, &os.Stderr, func() { r.status = execute(arguments) })
	})
	return r
}

// captured returns what do writes to a standard stream.
func captured(t *testing.T, stream **os.File, do func()) string {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "stream")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	before := *stream
	*stream = f
	defer func() { *stream = before }()
	do()
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// must is caper for a command that cannot fail.
func must(t *testing.T, arguments ...string) result {
	t.Helper()
	r := caper(t, arguments...)
	if r.status != 0 {
		t.Fatalf("caper %s: status %d: %s", strings.Join(arguments, " "), r.status, r.stderr)
	}
	return r
}

// workshop is a small benchmark with its rollouts, tuples and a trained model,
// made once by the commands themselves and only read by the tests.
type workshop struct {
	bench, rollouts, tuples, run string
}

func (w workshop) model() string { return filepath.Join(w.run, "model") }

// workshopFolder is removed by TestMain.
var workshopFolder string

func TestMain(m *testing.M) {
	if os.Getenv(asCaper) != "" {
		os.Exit(execute(os.Args[1:]))
	}
	status := m.Run()
	if workshopFolder != "" {
		os.RemoveAll(workshopFolder)
	}
	os.Exit(status)
}

var makeWorkshop = sync.OnceValues(func() (workshop, error) {
	dir, err := os.MkdirTemp("", "caper-workshop-")
	if err != nil {
		return workshop{}, err
	}
	workshopFolder = dir
	w := workshop{
		bench: filepath.Join(dir, "bench"), tuples: filepath.Join(dir, "tuples.jsonl"), run: filepath.Join(dir, "run"),
	}
	w.rollouts = sample.RolloutPath(w.bench, sample.Train)
	o := sample.DefaultOptions()
	o.TrainDatabases, o.TestDatabases, o.NewWordsDatabases, o.Questions, o.DevQuestions, o.LargeRows = 4, 1, 1, 5, 1, 50
	if _, err := sample.Write(context.Background(), w.bench, o); err != nil {
		return w, err
	}
	_, err = sample.WriteRollouts(context.Background(), w.bench, sample.RolloutOptions{Seed: 1, Samples: 1})
	return w, err
})

// openWorkshop returns the workshop with the named stages done: "tuples", "model".
func openWorkshop(t *testing.T, stages ...string) workshop {
	t.Helper()
	w, err := makeWorkshop()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(w.tuples); err != nil && len(stages) > 0 {
		must(t, "annotate", "--bench", w.bench, "--split", "train", "--rollouts", w.rollouts, "--out", w.tuples)
	}
	if _, err := os.Stat(w.run); err != nil && slices.Contains(stages, "model") {
		must(t, append([]string{"train", "prm"}, w.training(w.run)...)...)
	}
	return w
}

// training is the arguments of a run of seconds.
func (w workshop) training(out string) []string {
	return []string{
		"train.tuples=" + w.tuples, "train.out=" + out,
		"model.hidden_size=16", "model.num_hidden_layers=2", "model.full_attention_interval=2", "model.intermediate_size=32",
		"model.num_attention_heads=2", "model.num_key_value_heads=1", "model.head_dim=8",
		"model.linear_num_key_heads=2", "model.linear_num_value_heads=2", "model.linear_key_head_dim=8", "model.linear_value_head_dim=8",
		"model.vocab_size=400", "train.max_steps=4", "train.holdout_databases=0.25", "train.threads=1",
	}
}

// listing is every path below dir with its content.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		files[path] = ""
		if e.Type().IsRegular() {
			text, err := os.ReadFile(path)
			files[path] = string(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func writeFile(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
