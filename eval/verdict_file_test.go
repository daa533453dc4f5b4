package eval

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
	"github.com/google/go-cmp/cmp/cmpopts"

	"caper/data"
	"caper/eval/exactmatch"
)

// judging is a run of one measure into a verdict file.
type judging struct {
	databases shop
	rule      Rule
	settings  string
	progress  func(int)
}

func (j judging) write(ctx context.Context, path string, candidates iter.Seq2[data.Rollout, error]) (*ExecutionSummary, error) {
	summary := NewExecutionSummary(j.rule, NewGroups(nil, NewSchemas(j.databases)))
	o := ExecutionOptions{Rule: j.rule, Workers: 2, Schemas: NewSchemas(j.databases), Explain: true}
	out := VerdictFile{Path: path, Resume: true, Settings: map[string]string{"evaluator": j.settings}, Progress: j.progress}
	return summary, WriteVerdicts(ctx, out, candidates,
		func(ctx context.Context, rollouts iter.Seq2[data.Rollout, error], emit func(Judged) error) error {
			return Execute(ctx, j.databases, rollouts, o, emit)
		}, JudgedOf, summary.Add)
}

// quickCandidates are n of several verdicts, none of which takes long.
func quickCandidates(n int) iter.Seq2[data.Rollout, error] {
	return func(yield func(data.Rollout, error) bool) {
		for i := range n {
			r := data.Rollout{
				QuestionID: data.IndexID(i), DBID: []string{"shop", "shop", "damaged"}[i%3], Source: "s",
				Gold: "SELECT price FROM item", SQL: fmt.Sprintf("SELECT DISTINCT price FROM item WHERE price <> %d -- %d", i%4, i),
				Extra: data.Extra{"score": []byte("0.5")},
			}
			if i%5 == 0 {
				r.SQL = "SELECT"
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

const (
	childOutput     = "CAPER_TEST_OUTPUT"
	childCandidates = 6000
)

// TestWriteAsChild is not a test: it is the process that TestKilled kills.
func TestWriteAsChild(t *testing.T) {
	if os.Getenv(childOutput) == "" {
		t.Skip("runs inside TestKilled only")
	}
	checkpointInterval = 3 * time.Millisecond
	j := judging{databases: openShop(t), rule: Bird}
	fmt.Println("ready")
	if _, err := j.write(t.Context(), os.Getenv(childOutput), quickCandidates(childCandidates)); err != nil {
		t.Fatal(err)
	}
}

// A run that is killed at random moments and resumed leaves the same bytes as one that
// is left alone, and nothing beside them.
func TestKilled(t *testing.T) {
	alone, killed := filepath.Join(t.TempDir(), "v.jsonl"), filepath.Join(t.TempDir(), "v.jsonl")
	began := time.Now()
	want, err := judging{databases: openShop(t), rule: Bird}.write(t.Context(), alone, quickCandidates(childCandidates))
	if err != nil || want.Count != childCandidates || want.DatabaseProblems != childCandidates/3 {
		t.Fatalf("%+v %v", want, err)
	}
	took := time.Since(began)
	kills, resumed := 0, 0
	for kills < 12 && killedAfter(t, killed, time.Duration(rand.Int64N(int64(took/6)))) {
		kills++
		if _, err := os.Stat(killed + ".journal"); err == nil {
			resumed++
		}
	}
	if _, err := os.Stat(killed); err != nil && killedAfter(t, killed, time.Hour) {
		t.Fatal("the last run did not end")
	}
	t.Logf("%d kills, %d times resumed, of a run of %v", kills, resumed, took)
	if resumed == 0 {
		t.Error("nothing was ever resumed")
	}
	if have, want := readText(t, killed), readText(t, alone); have != want {
		t.Errorf("%d bytes after %d kills, %d without", len(have), kills, len(want))
	}
	if left, _ := filepath.Glob(killed + ".*"); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// killedAfter runs TestWriteAsChild and kills it after the delay, or reports that it
// came to its end before.
func killedAfter(t *testing.T, out string, delay time.Duration) bool {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestWriteAsChild$")
	child.Env = append(os.Environ(), childOutput+"="+out)
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

// What is judged is kept when a run stops, and taken up only by a run that would judge
// the same. The summary is that of the whole.
func TestResume(t *testing.T) {
	defer func(before time.Duration) { checkpointInterval = before }(checkpointInterval)
	checkpointInterval = 0
	const all, some = 60, 20
	path := filepath.Join(t.TempDir(), "v.jsonl")
	j := judging{databases: openShop(t), rule: TestSuite, settings: "a"}
	whole, err := j.write(t.Context(), path+".whole", quickCandidates(all))
	if err != nil {
		t.Fatal(err)
	}

	broken := errors.New("line 21 is broken")
	failing := func(yield func(data.Rollout, error) bool) {
		for r := range quickCandidates(some) {
			if !yield(r, nil) {
				return
			}
		}
		yield(data.Rollout{}, broken)
	}
	if _, err := j.write(t.Context(), path, failing); !errors.Is(err, broken) || !strings.Contains(err.Error(), "20 verdicts are kept beside") {
		t.Fatalf("a broken line: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := j.write(ctx, path, quickCandidates(all)); err == nil || !strings.Contains(err.Error(), "interrupted: 20 verdicts are kept") {
		t.Fatalf("interrupted: %v", err)
	}
	other := j
	other.settings = "b"
	if _, err := other.write(t.Context(), path, quickCandidates(all)); err == nil || !strings.Contains(err.Error(), `begun with evaluator "a", not "b"`) {
		t.Errorf("other settings: %v", err)
	}
	if _, err := j.write(t.Context(), path, quickCandidates(some-1)); err == nil || !strings.Contains(err.Error(), "candidate 20 is not") {
		t.Errorf("fewer candidates: %v", err)
	}
	changed := func(yield func(data.Rollout, error) bool) {
		for r, err := range quickCandidates(all) {
			if r.QuestionID == data.IndexID(7) {
				r.SQL += " "
			}
			if !yield(r, err) {
				return
			}
		}
	}
	if _, err := j.write(t.Context(), path, changed); err == nil || !strings.Contains(err.Error(), "candidate 8 is not") {
		t.Errorf("another candidate: %v", err)
	}
	out := VerdictFile{Path: path}
	if err := WriteVerdicts(t.Context(), out, quickCandidates(all), nil, JudgedOf, whole.Add); !errors.Is(err, data.ErrUnfinished) {
		t.Errorf("a new run over an unfinished one: %v", err)
	}

	judged := 0
	j.progress = func(int) { judged++ }
	have, err := j.write(t.Context(), path, quickCandidates(all))
	if err != nil || judged != all-some {
		t.Fatalf("%d judged: %v", judged, err)
	}
	if have.String() != whole.String() {
		t.Errorf("the summary of a resumed run: %s", cmp.Diff(whole.String(), have.String()))
	}
	if readText(t, path) != readText(t, path+".whole") {
		t.Error("the file of a resumed run differs")
	}
}

// Each measure reads its own lines.
func TestLinesReadBack(t *testing.T) {
	ctx, databases := t.Context(), openShop(t)
	readBack(t, JudgedOf, func(emit func(Judged) error) error {
		return Execute(ctx, databases, quickCandidates(9), ExecutionOptions{Rule: Bird, Workers: 1, Explain: true, Without: Bird.Quirks()[:1]}, emit)
	})
	readBack(t, SoftlyOf, func(emit func(Softly) error) error { return JudgeSoftly(ctx, databases, quickCandidates(9), 1, emit) })
	readBack(t, MatchedOf, func(emit func(Matched) error) error {
		o := MatchOptions{Schemas: NewSchemas(databases), Workers: 1, Script: exactmatch.Spider, Explain: true}
		return MatchExactly(ctx, quickCandidates(9), o, emit)
	})
	for _, score := range []EfficiencyScore{VES, RVES} {
		readBack(t, TimedOf, func(emit func(Timed) error) error {
			return MeasureEfficiency(ctx, databases, quickCandidates(9), EfficiencyOptions{Score: score, Repeats: 2, Workers: 1}, emit)
		})
	}
}

func readBack[T judgement](t *testing.T, read func(data.Rollout) (T, error), measure func(func(T) error) error) {
	t.Helper()
	err := measure(func(want T) error {
		have, err := read(want.Line())
		if diff := cmp.Diff(want, have, cmpopts.EquateEmpty(), cmp.AllowUnexported(data.QuestionID{})); diff != "" || err != nil {
			t.Errorf("%s %v", diff, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
