package annotate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"caper/data"
)

// manyRollouts is a stream of n correct and failing queries, some of them twice.
func manyRollouts(n int) iter.Seq2[data.Rollout, error] {
	return func(yield func(data.Rollout, error) bool) {
		for i := range n {
			gold := fmt.Sprintf("SELECT name FROM owner WHERE id IN (SELECT owner_id FROM pet WHERE weight > %d) OR id > %d", i%7, i)
			wrong := strings.Replace(gold, "weight", "owner_id", 1)
			r := petRollouts(gold, []string{gold, wrong, gold}[i%3])[0]
			r.QuestionID, r.Question = data.IndexID(i-i%11), fmt.Sprint("which of ", i-i%11, "?")
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Names of the environment of TestWriteAsChild.
const (
	childBench  = "CAPER_TEST_BENCH"
	childOutput = "CAPER_TEST_OUTPUT"
)

const childRollouts = 900

// TestWriteAsChild is not a test: it is the process that TestKilled kills.
func TestWriteAsChild(t *testing.T) {
	if os.Getenv(childBench) == "" {
		t.Skip("runs inside TestKilled only")
	}
	bench, err := data.OpenBenchmark(os.Getenv(childBench), "spider")
	if err != nil {
		t.Fatal(err)
	}
	defer bench.Close()
	checkpointInterval = 3 * time.Millisecond
	fmt.Println("ready")
	if _, err := Write(t.Context(), bench, manyRollouts(childRollouts), DefaultOptions(), Output{Path: os.Getenv(childOutput), Resume: true}); err != nil {
		t.Fatal(err)
	}
}

// A run that is killed ten times at random moments and resumed leaves the same
// bytes as one that is left alone, in both formats, and nothing beside them.
func TestKilled(t *testing.T) {
	bench := petBenchmark(t)
	for _, name := range []string{"tuples.jsonl", "tuples.parquet"} {
		t.Run(name, func(t *testing.T) {
			alone := filepath.Join(t.TempDir(), name)
			began := time.Now()
			if _, err := Write(t.Context(), bench, manyRollouts(childRollouts), DefaultOptions(), Output{Path: alone}); err != nil {
				t.Fatal(err)
			}
			took := time.Since(began)

			killed := filepath.Join(t.TempDir(), name)
			random := rand.New(rand.NewPCG(uint64(took), 0))
			kills, resumed := 0, 0
			for kills < 10 {
				if _, err := os.Stat(killed + ".journal"); err == nil {
					resumed++
				}
				if !killedAfter(t, bench.Dir, killed, time.Duration(random.Int64N(int64(took/10)))) {
					break
				}
				kills++
			}
			if _, err := os.Stat(killed); err != nil && killedAfter(t, bench.Dir, killed, time.Hour) {
				t.Fatal("the last run did not end")
			}
			t.Logf("%d kills, %d times resumed, of a run of %v", kills, resumed, took)
			want, err := os.ReadFile(alone)
			if err != nil {
				t.Fatal(err)
			}
			if have, err := os.ReadFile(killed); err != nil || string(have) != string(want) {
				t.Errorf("%d bytes after %d kills, %d without: %v", len(have), kills, len(want), err)
			}
			if left, _ := filepath.Glob(killed + ".*"); len(left) > 0 {
				t.Errorf("left over: %q", left)
			}
		})
	}
}

// killedAfter runs TestWriteAsChild and kills it after the delay, or reports that
// it came to its end before.
func killedAfter(t *testing.T, bench, out string, delay time.Duration) bool {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestWriteAsChild$")
	child.Env = append(os.Environ(), childBench+"="+bench, childOutput+"="+out)
	pipe, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(pipe)
	said.Scan()
	timer := time.AfterFunc(delay, func() { child.Process.Kill() })
	defer timer.Stop()
	var text strings.Builder
	for said.Scan() {
		text.WriteString(said.Text() + "\n")
	}
	err = child.Wait()
	if err != nil && child.ProcessState.Exited() {
		t.Fatalf("%v: %s", err, text.String())
	}
	return err != nil
}

// failingAt is a stream that ends in an error.
func failingAt(n int, err error) iter.Seq2[data.Rollout, error] {
	return func(yield func(data.Rollout, error) bool) {
		for r := range manyRollouts(n) {
			if !yield(r, nil) {
				return
			}
		}
		yield(data.Rollout{}, err)
	}
}

// What is done is kept when a run stops, and taken up only by a run that would do
// the same. The summary is that of the whole.
func TestResume(t *testing.T) {
	defer func(before time.Duration) { checkpointInterval = before }(checkpointInterval)
	checkpointInterval = 0
	bench := petBenchmark(t)
	const all, some = 100, 40
	o := DefaultOptions()
	write := func(rollouts iter.Seq2[data.Rollout, error], o Options, out Output) (Summary, error) {
		return Write(t.Context(), bench, rollouts, o, out)
	}
	path := func(name string) string { return filepath.Join(t.TempDir(), name) }
	whole, err := write(manyRollouts(all), o, Output{Path: path("whole.jsonl"), Resume: true})
	if err != nil {
		t.Fatal(err)
	}

	out := Output{Path: path("tuples.jsonl"), Settings: map[string]string{"split": "dev"}}
	broken := errors.New("line 41 is broken")
	if _, err := write(failingAt(some, broken), o, out); !errors.Is(err, broken) || !strings.Contains(err.Error(), "--resume") {
		t.Fatal(err)
	}
	if _, err := write(manyRollouts(all), o, out); !errors.Is(err, data.ErrUnfinished) || !strings.Contains(err.Error(), "--resume") {
		t.Errorf("a new run over an unfinished one: %v", err)
	}
	out.Resume = true
	seed := o
	seed.Seed = 7
	if _, err := write(manyRollouts(all), seed, out); err == nil || !strings.Contains(err.Error(), "Seed") {
		t.Errorf("another seed: %v", err)
	}
	split := out
	split.Settings = map[string]string{"split": "train"}
	if _, err := write(manyRollouts(all), o, split); err == nil || !strings.Contains(err.Error(), "begun with split dev, not train") {
		t.Errorf("another split: %v", err)
	}
	if _, err := write(manyRollouts(some-1), o, out); err == nil || !strings.Contains(err.Error(), "only 39") {
		t.Errorf("fewer rollouts: %v", err)
	}
	other := func(yield func(data.Rollout, error) bool) {
		for r, err := range manyRollouts(all) {
			r.SQL = strings.Replace(r.SQL, "weight > 3", "weight > 4", 1)
			if !yield(r, err) {
				return
			}
		}
	}
	if _, err := write(other, o, out); err == nil || !strings.Contains(err.Error(), "not those") {
		t.Errorf("other rollouts: %v", err)
	}

	// Interrupted once more, then to the end with another number of workers.
	ctx, cancel := context.WithCancel(t.Context())
	stop := out
	stop.Progress = func(s *Summary) {
		if s.Rollouts == some+20 {
			cancel()
		}
	}
	if _, err := Write(ctx, bench, manyRollouts(all), o, stop); err == nil || errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "rollouts are done") {
		t.Errorf("interrupted: %v", err)
	}
	o.Workers = 3
	have, err := write(manyRollouts(all), o, out)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole, have); diff != "" {
		t.Errorf("the summary of a resumed run: %s", diff)
	}
}

// A run of a moment that fails leaves nothing behind.
func TestShortRunLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	broken := errors.New("broken")
	if _, err := Write(t.Context(), petBenchmark(t), failingAt(3, broken), DefaultOptions(), Output{Path: filepath.Join(dir, "t.jsonl")}); err != broken {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
}
