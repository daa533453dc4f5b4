package dapo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"caper/train/curriculum"
	"caper/train/grpo"
	"caper/train/grpo/toy"
	"caper/train/run"
)

// childConfig is the environment variable that turns the test binary into a training: it
// names a configuration file. The child says how far it is and waits for a byte on stdin
// each time, so that its parent can kill it where it likes.
const childConfig = "CAPER_DAPO_CHILD"

func TestMain(m *testing.M) {
	path := os.Getenv(childConfig)
	if path == "" {
		os.Exit(m.Run())
	}
	c, err := LoadConfig(path, nil)
	if err == nil {
		wait := func() {
			fmt.Println("going on")
			os.Stdin.Read(make([]byte, 1))
		}
		o := Options{Planned: func(int, *curriculum.Table, string) { wait() }}
		o.Resume, o.Progress = true, progress(wait)
		_, err = Train(context.Background(), c, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// progress calls a function after every step.
type progress func()

func (p progress) Step(int, int, []run.Figure) { p() }

func smallConfig(t *testing.T, w toy.World, overrides ...string) Config {
	t.Helper()
	c, err := LoadConfig("", append([]string{
		"model.path=" + w.Policy, "train.bench=" + w.Bench, "train.out=" + filepath.Join(t.TempDir(), "run"), "train.max_steps=4", "train.checkpoint_every=2",
		"train.batch_questions=2", "train.lr=1e-3", "train.threads=1", "train.micro_batch_tokens=2048", "rollout.max_tokens=40", "rollout.samples=4",
		"rollout.cache_tokens=8192", "rollout.log_every=1", "reward.workers=2", "reward.overlong_buffer=8", "curriculum.samples=8",
		"second.max_steps=3", "second.lr=5e-4", "second.samples=6", "second.high=1", "train.validation_split=dev", "train.validate_every=2",
	}, overrides...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func world(t *testing.T) toy.World {
	t.Helper()
	w, err := toy.Make(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// child runs a training in a process of its own: to its end, or until it has gone on some
// times, after which it is killed within a moment. It returns how often it went on.
func child(t *testing.T, config string, times int, moment time.Duration) (went int) {
	t.Helper()
	in, stdin, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	var said strings.Builder
	k := exec.CommandContext(t.Context(), os.Args[0])
	k.Env = append(os.Environ(), childConfig+"="+config)
	k.Stdin, k.Stderr = in, &said
	stdout, err := k.StdoutPipe()
	if err == nil {
		err = k.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	in.Close()
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		stdin.Write([]byte("\n"))
		if went++; went == times {
			time.Sleep(moment)
			k.Process.Kill()
		}
	}
	if err := k.Wait(); err != nil && times == 0 {
		t.Fatalf("%v: %s", err, said.String())
	}
	return went
}

// Both stages train, the second from the first's model and with its own settings; a training
// that is killed at random and resumed has the tables, weights and answers of one that was
// not.
func TestTwoStagesKilledAndResumed(t *testing.T) {
	w := world(t)
	folder := t.TempDir()
	write := func(name string) (dir, path string) {
		c := smallConfig(t, w, "train.out="+filepath.Join(folder, name))
		path = filepath.Join(folder, name+".toml")
		if err := os.WriteFile(path, []byte(c.Text()), 0o644); err != nil {
			t.Fatal(err)
		}
		return c.Train.Out, path
	}
	whole, path := write("whole")
	started := time.Now()
	steps := child(t, path, 0, 0)
	step := time.Since(started) / time.Duration(steps)
	killed, path := write("killed")
	seed := rand.Uint64()
	t.Logf("seed %d, %d steps of %v", seed, steps, step)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 6 {
		child(t, path, 1+r.IntN(4), time.Duration(r.Int64N(int64(step))))
	}
	child(t, path, 0, 0)
	a, b := results(t, whole), results(t, killed)
	for name, text := range a {
		if b[name] != text {
			t.Errorf("%s differs or is missing", name)
		}
	}
	for _, name := range []string{"curriculum-1/table.jsonl", "stage-1/model/model.safetensors", "curriculum-2/table.txt", "stage-2/model/model.safetensors", "stage-2/rollouts.jsonl"} {
		if a[name] == "" {
			t.Errorf("no %s", name)
		}
	}
	second, err := grpo.LoadConfig(filepath.Join(whole, "stage-2", run.ConfigName), nil)
	if err != nil {
		t.Fatal(err)
	}
	if second.Model.Path != filepath.Join(whole, "stage-1", "model") || second.Train.LR != 5e-4 || second.Rollout.Samples != 6 ||
		second.Policy.EntropyTarget != 0.2 || second.Policy.KL != 0 || second.Policy.ClipHigh != 0.28 || second.Policy.ClipLow != 0.2 {
		t.Errorf("the second stage's configuration: %+v", second)
	}
	items, err := curriculum.Read(filepath.Join(whole, "curriculum-1", curriculum.TableName))
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, i := range items {
		sum += i.Weight
	}
	if sum < 1-1e-9 || sum > 1+1e-9 {
		t.Errorf("weights sum to %g", sum)
	}
}

// results are the files of a run folder that do not tell the time or name the folder.
func results(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		if err != nil || d.IsDir() || d.Name() == run.ConfigName || d.Name() == "metrics.jsonl" || strings.Contains(name, "checkpoints") || strings.HasPrefix(d.Name(), "stage-") {
			return err
		}
		text, err := os.ReadFile(path)
		all[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A plan alone trains nothing; the training goes on from it, and no other configuration may.
func TestPlanOnly(t *testing.T) {
	w := world(t)
	c := smallConfig(t, w, "second.epochs=0", "train.max_steps=1")
	var table *curriculum.Table
	o := Options{PlanOnly: true, Planned: func(_ int, planned *curriculum.Table, _ string) { table = planned }}
	out, err := Train(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Stages) != 1 || out.Stages[0].Run != nil || out.Stages[0].Drawn == 0 || table.Drawn() != out.Stages[0].Drawn {
		t.Errorf("planned: %+v", out)
	}
	t.Log(table.Text())
	if _, err := os.Stat(filepath.Join(c.Train.Out, "stage-1")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a stage was begun: %v", err)
	}
	if _, err := Train(t.Context(), c, Options{}); err == nil || !strings.Contains(err.Error(), "--resume") {
		t.Errorf("the folder is taken: %v", err)
	}
	other := smallConfig(t, w, "second.epochs=0", "train.max_steps=1", "curriculum.anchors=0.5", "train.out="+c.Train.Out)
	resume := Options{}
	resume.Resume = true
	if _, err := Train(t.Context(), other, resume); err == nil || !strings.Contains(err.Error(), "curriculum.anchors") {
		t.Errorf("another configuration: %v", err)
	}
	out, err = Train(t.Context(), c, resume)
	if err != nil || out.Stages[0].Run == nil || out.Stages[0].Run.Steps != 1 || out.ModelDir == "" {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestConfiguration(t *testing.T) {
	for word, want := range map[string]string{
		"curriculum.samples=1":     "curriculum.samples",
		"second.low=0.9":           "second.high",
		"policy.clip_low=2":        "policy.clip_low",
		"train.curriculum=t.jsonl": "caper train grpo",
		"curriculum.sibling=true":  "curriculum.siblings",
	} {
		if _, err := LoadConfig("", []string{word}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", word, err)
		}
	}
}
