package grpo

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"caper/train/run"
)

// childConfig is the environment variable that turns the test binary into a training run:
// it names a configuration file. The child waits after every step for a byte on stdin, so
// that its parent can kill it at a step of its choice.
const childConfig = "CAPER_GRPO_CHILD"

func TestMain(m *testing.M) {
	path := os.Getenv(childConfig)
	if path == "" {
		code := m.Run()
		if w, err := makeWorld(); err == nil {
			os.RemoveAll(filepath.Dir(w.Bench))
		}
		os.Exit(code)
	}
	c, err := LoadConfig(path, nil)
	if err == nil {
		step := func(done, _ int, _ []run.Figure) {
			fmt.Println(done)
			os.Stdin.Read(make([]byte, 1))
		}
		_, err = Train(context.Background(), c, Options{Options: run.Options{Resume: true, Progress: progress(step)}})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// progress calls a function after every step.
type progress func(done, total int, shown []run.Figure)

func (p progress) Step(done, total int, shown []run.Figure) { p(done, total, shown) }

// child runs a training in a process of its own: for some steps, after which it is killed
// within a moment, or to its end.
func child(t *testing.T, config string, steps int, moment time.Duration) {
	t.Helper()
	in, stdin, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	var errors strings.Builder
	k := exec.CommandContext(t.Context(), os.Args[0])
	k.Env = append(os.Environ(), childConfig+"="+config)
	k.Stdin, k.Stderr = in, &errors
	stdout, err := k.StdoutPipe()
	if err == nil {
		err = k.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	in.Close()
	lines := bufio.NewScanner(stdout)
	for n := 1; lines.Scan(); n++ {
		stdin.Write([]byte("\n"))
		if n == steps {
			time.Sleep(moment)
			k.Process.Kill()
		}
	}
	if err := k.Wait(); err != nil && steps == 0 {
		t.Fatalf("%v: %s", err, errors.String())
	}
}

// Killed ten times at moments drawn at random and resumed each time, a run ends with the
// same weights, optimiser, state and answers as one that was left alone.
func TestKilledAndResumed(t *testing.T) {
	c := smallConfig(t, "train.max_steps=36", "train.checkpoint_every=2", "train.validation_split=dev", "train.validate_every=3",
		"reward.kind=clause", "reward.model="+newWorld(t).PRM, "policy.kl=0.01", "policy.entropy_target=0.5", "policy.passes=2", "train.threads=2")
	folder := t.TempDir()
	config := func(name string) (dir, path string) {
		c.Train.Out = filepath.Join(folder, name)
		path = filepath.Join(folder, name+".toml")
		if err := os.WriteFile(path, []byte(c.Text()), 0o644); err != nil {
			t.Fatal(err)
		}
		return c.Train.Out, path
	}
	whole, path := config("whole")
	started := time.Now()
	child(t, path, 0, 0)
	step := time.Since(started) / 36
	killed, path := config("killed")
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 10 {
		child(t, path, 2+r.IntN(3), time.Duration(r.Int64N(int64(step))))
	}
	child(t, path, 0, 0)
	t.Logf("seed %d", seed)
	a, b := runFiles(t, killed), runFiles(t, whole)
	for name := range b {
		if a[name] != b[name] {
			t.Errorf("%s differs or is missing", name)
		}
	}
	for name := range a {
		if _, ok := b[name]; !ok {
			t.Errorf("%s is left over", name)
		}
	}
	if len(b) < 10 {
		t.Errorf("only %d files: %v", len(b), b)
	}
}

// runFiles are the files of a run folder, without what names the folder or tells the time.
func runFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == run.ConfigName || d.Name() == "metrics.jsonl" {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	lines, err := run.ReadMetrics[Metrics](dir)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, m := range lines {
		m.Seconds, m.Waited, m.SampledPerSec, m.TokensPerSecond = nil, nil, 0, 0
		fmt.Fprintf(&text, "%+v %v %v %v %v %v\n", m.Outcomes, value(m.Loss), value(m.Reward), value(m.KL), value(m.EntropyWeight), value(m.ValidationEX))
	}
	all["metrics.jsonl"] = text.String()
	return all
}

func value(x *float64) float64 {
	if x == nil {
		return -1
	}
	return *x
}
