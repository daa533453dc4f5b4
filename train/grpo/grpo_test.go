package grpo

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"caper/model"
	"caper/train/reward"
	"caper/train/rollout"
	"caper/train/run"
	"caper/train/settings"
)

func train(t testing.TB, c Config) (Outcome, []Metrics) {
	t.Helper()
	out, err := Train(t.Context(), c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	lines, err := run.ReadMetrics[Metrics](c.Train.Out)
	if err != nil {
		t.Fatal(err)
	}
	return out, lines
}

// opened returns a run that is ready for its first step.
func opened(t *testing.T, c Config) *trainer {
	t.Helper()
	r, err := open(t.Context(), c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.close)
	return r
}

// step takes one step and returns its line.
func step(t *testing.T, r *trainer) Metrics {
	t.Helper()
	if _, err := r.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	lines, err := run.ReadMetrics[Metrics](r.config.Train.Out)
	if err != nil {
		t.Fatal(err)
	}
	return lines[len(lines)-1]
}

func weightsNow(r *trainer) (all []float32) {
	for _, p := range r.Model.Params() {
		values := make([]float32, p.Rows*p.Cols)
		p.Read(values)
		all = append(all, values...)
	}
	return all
}

// A policy gets better at what it is rewarded for: right results, whatever else. Token
// rewards of a reward model without a clue, and an adapter of so small a model, only have to
// come to their end.
func TestRunsGetBetter(t *testing.T) {
	w := newWorld(t)
	for name, overrides := range map[string][]string{
		"sparse": {"reward.kind=sparse"},
		"arctic": {"reward.kind=arctic"},
		"clause": {"reward.kind=clause", "reward.model=" + w.PRM},
		"token":  {"reward.kind=token", "reward.model=" + w.PRM, "reward.lambda_c=0.1"},
		"lora":   {"lora.rank=8", "train.lr=2e-3", "policy.kl=0.001"},
		"DAPO":   {"policy.clip_high=0.28", "rollout.dynamic_batches=3", "train.batch_questions=3", "reward.overlong_buffer=10", "policy.passes=2"},
	} {
		t.Run(name, func(t *testing.T) {
			c := smallConfig(t, append([]string{"train.max_steps=40", "train.batch_questions=6", "train.lr=2e-3", "policy.kl=0", "policy.normalisation=sample", "train.weight_decay=0",
				"train.validation_split=dev", "train.validate_every=20"}, overrides...)...)
			out, lines := train(t, c)
			first, last := 0.0, 0.0
			for _, m := range lines {
				if m.EX != nil && m.Step <= 5 {
					first += *m.EX / 5
				}
				if m.EX != nil && m.Step > 35 {
					last += *m.EX / 5
				}
				if m.ValidationEX == nil && (m.Seconds["step"] <= 0 || m.Waited == nil || m.Length == nil || len(m.Outcomes) == 0) {
					t.Errorf("step %d: %+v", m.Step, m)
				}
			}
			t.Logf("EX of samples %.3f, at the end %.3f; validation %.3f", first, last, out.BestEX)
			if learns := name != "token" && name != "lora"; learns && (first > 0.9 || last < first+0.05 || out.BestEX < first) {
				t.Errorf("EX of samples %.3f, at the end %.3f; validation %.3f", first, last, out.BestEX)
			}
			for _, dir := range []string{out.ModelDir, out.LastDir} {
				if _, err := os.Stat(filepath.Join(dir, "config.json")); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// The number of threads changes no bit of a run.
func TestThreadsChangeNothing(t *testing.T) {
	var want []float32
	for _, threads := range []string{"1", "2", "3"} {
		c := smallConfig(t, "reward.kind=clause", "reward.model="+newWorld(t).PRM, "policy.kl=0.01", "train.threads="+threads)
		r := opened(t, c)
		for range 3 {
			step(t, r)
		}
		if got := weightsNow(r); want == nil {
			want = got
		} else if !slices.Equal(got, want) {
			t.Errorf("%s threads give other weights", threads)
		}
	}
}

// fixed is a source of given answers, of some of which a part is missing.
type fixed struct {
	texts  func(q int) []string
	lost   map[string]int
	words  func(text string) []int32
	asked  [][]int
	broken error
}

func (f *fixed) Groups(_ context.Context, _ int, questions []rollout.Question) iter.Seq2[rollout.Group, error] {
	var asked []int
	for _, q := range questions {
		asked = append(asked, q.Index)
	}
	f.asked = append(f.asked, asked)
	return func(yield func(rollout.Group, error) bool) {
		for _, q := range slices.Backward(questions) { // groups come in any order
			g := rollout.Group{Question: q.Index, Lost: f.lost}
			for _, text := range f.texts(q.Index) {
				g.Samples = append(g.Samples, rollout.Sample{Text: text, Tokens: f.words(text)})
			}
			if !yield(g, nil) {
				return
			}
		}
		if f.broken != nil {
			yield(rollout.Group{}, f.broken)
		}
	}
}

func (f *fixed) Update(context.Context, *model.Model, int) error { return nil }

func (r *trainer) use(f *fixed) {
	end, _ := r.Model.Tokenizer.ID("<|im_end|>")
	f.words = func(text string) []int32 { return append(r.Model.Tokenizer.EncodeText(text, nil), end) }
	r.collector.source = f
}

// answersTo are right and wrong answers to a question of the tests' benchmark.
func answersTo(r *trainer, q int, right, wrong int) (texts []string) {
	for range right {
		texts = append(texts, r.collector.questions[q].Gold)
	}
	for range wrong {
		texts = append(texts, "SELECT 0")
	}
	return texts
}

// A group that is smaller than the others, or that did not come, shifts none of them: each
// answer keeps its own question's reward.
func TestReport61PartialGroups(t *testing.T) {
	r := opened(t, smallConfig(t, "train.batch_questions=6"))
	f := &fixed{lost: map[string]int{"time out": 1}, texts: func(q int) []string {
		switch q {
		case 1:
			return nil
		case 3:
			return answersTo(r, q, 1, 0)
		}
		return answersTo(r, q, 1, 2)
	}}
	r.use(f)
	var took phases
	groups, err := r.collector.collect(t.Context(), 1, []int{0, 1, 2, 3, 4, 5}, &took)
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range groups {
		if g.question != i || len(g.answers) != len(f.texts(i)) {
			t.Fatalf("group %d is of question %d with %d answers", i, g.question, len(g.answers))
		}
		for k, a := range g.answers {
			if a.Correct() != (k == 0) || a.Text != g.samples[k].Text {
				t.Errorf("question %d, answer %d: %s for %q", i, k, a.Verdict, a.Text)
			}
		}
		if signal := i != 1 && i != 3; (g.advantages != nil) != signal {
			t.Errorf("question %d: advantages %v", i, g.advantages)
		}
	}
	m := step(t, r)
	if m.Groups != 4 || m.NoSignal != 1 || m.Empty != 1 || m.Lost["time out"] != 6 || m.Samples != 13 {
		t.Errorf("%+v", m)
	}
	if m.Histogram[1] != 5 || m.Histogram[0] != 1 {
		t.Errorf("groups by right answers: %v", m.Histogram)
	}
}

// Groups without a signal are no part of the loss, and so of what it is divided by: with
// them or without, the update is the same.
func TestReport63GroupsOfEqualReward(t *testing.T) {
	var want []float32
	for _, questions := range []int{2, 6} {
		r := opened(t, smallConfig(t, "train.batch_questions=6", "policy.normalisation=sample"))
		r.use(&fixed{texts: func(q int) []string {
			if q < 2 {
				return answersTo(r, q, 1, 2)
			}
			return answersTo(r, q, 3, 0)
		}})
		var took phases
		var asked []int
		for q := range questions {
			asked = append(asked, q)
		}
		groups, err := r.collector.collect(t.Context(), 1, asked, &took)
		if err != nil {
			t.Fatal(err)
		}
		var m Metrics
		r.describe(&m, groups)
		if err := r.learn(&m, groups); err != nil {
			t.Fatal(err)
		}
		if m.NoSignal != questions-2 || m.Groups != 2 {
			t.Errorf("%d groups with a signal, %d without", m.Groups, m.NoSignal)
		}
		if got := weightsNow(r); want == nil {
			want = got
		} else if !slices.Equal(got, want) {
			t.Error("groups without a signal change the update")
		}
	}
}

// A step without any signal changes no weight and is counted; dynamic sampling looks for
// other questions, and asks none twice.
func TestGroupsWithoutSignal(t *testing.T) {
	r := opened(t, smallConfig(t, "train.batch_questions=2", "rollout.dynamic_batches=2"))
	f := &fixed{texts: func(q int) []string { return answersTo(r, q, 0, 3) }}
	r.use(f)
	before := weightsNow(r)
	m := step(t, r)
	if !slices.Equal(before, weightsNow(r)) || r.state.Step != 1 || r.state.Updates != 0 || m.NoSignal != 4 || m.Groups != 0 || m.Batches != 2 {
		t.Errorf("updates %d, %+v", r.state.Updates, m)
	}
	f.texts = func(q int) []string { return answersTo(r, q, 1, 2) }
	f.asked = nil
	if m := step(t, r); m.Groups != 2 || m.Batches != 1 || r.state.Updates != 1 {
		t.Errorf("%+v", m)
	}
	// Of six questions, five are equal: all are asked, each once.
	r = opened(t, smallConfig(t, "train.batch_questions=4", "rollout.dynamic_batches=9"))
	f = &fixed{texts: func(q int) []string { return answersTo(r, q, min(q, 1), 2) }}
	f.texts = func(q int) []string {
		if q == 5 {
			return answersTo(r, q, 1, 2)
		}
		return answersTo(r, q, 3, 0)
	}
	r.use(f)
	m = step(t, r)
	all := slices.Sorted(slices.Values(slices.Concat(f.asked...)))
	if !reflect.DeepEqual(all, []int{0, 1, 2, 3, 4, 5}) || m.Groups != 1 || m.NoSignal != 5 {
		t.Errorf("asked %v; %+v", f.asked, m)
	}
}

// What goes wrong in one question's rewards is not another's.
func TestReport62MissingRewardsOfAStep(t *testing.T) {
	r := opened(t, smallConfig(t, "train.batch_questions=6"))
	r.use(&fixed{texts: func(q int) []string { return answersTo(r, q, 1, 2) }})
	r.collector.questions[2].Gold = "SELECT a FROM gone"
	m := step(t, r)
	if m.Missing["gold_error"] != 3 || m.Groups != 5 || m.Empty != 1 || *m.EX != 1.0/3 {
		t.Errorf("%+v", m)
	}
}

func TestSourceFails(t *testing.T) {
	// Where no answer has a reward, step after step, the run ends.
	poor := opened(t, smallConfig(t, "train.max_bad_steps=2"))
	poor.use(&fixed{texts: func(int) []string { return nil }, lost: map[string]int{"refused": 6}})
	step(t, poor)
	if _, err := poor.Step(t.Context()); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("%v", err)
	}
	r := opened(t, smallConfig(t))
	broken := errors.New("the server is gone")
	r.use(&fixed{texts: func(q int) []string { return answersTo(r, q, 1, 2) }, broken: broken})
	if _, err := r.Step(t.Context()); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	// An interrupted step did not happen.
	r = opened(t, smallConfig(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Step(ctx); err != nil || r.state.Step != 0 || r.state.Next != 0 {
		t.Errorf("%v, state %+v", err, r.state)
	}
}

// The entropy bonus is there only below the target, and its weight moves by delta.
func TestEntropyBonus(t *testing.T) {
	r := &trainer{}
	r.config.Policy = Policy{EntropyTarget: 1, EntropyDelta: 0.1, EntropyMax: 0.25}
	if r.entropyBonus() == nil && r.state.EntropyWeight != 0 {
		t.Error("a bonus without weight")
	}
	for i, want := range []float64{0.1, 0.2, 0.25, 0.25} {
		if r.adjustEntropy(0.5); r.state.EntropyWeight != want {
			t.Errorf("step %d below the target: weight %g, want %g", i, r.state.EntropyWeight, want)
		}
	}
	// A token rarer than the policy's tokens are is made more likely.
	if shift := r.entropyBonus(); shift == nil || shift(-2) <= 0 || shift(-0.1) >= 0 {
		t.Error("the bonus does not raise the entropy")
	}
	r.adjustEntropy(2)
	if r.entropyBonus() != nil || r.state.EntropyWeight != 0.15 {
		t.Errorf("above the target: weight %g", r.state.EntropyWeight)
	}
}

func TestAnswersAreReadable(t *testing.T) {
	c := smallConfig(t, "train.max_steps=2", "reward.kind=clause", "reward.model="+newWorld(t).PRM)
	train(t, c)
	text, err := os.ReadFile(filepath.Join(c.Train.Out, answersName))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != 2*3*6 || !strings.Contains(lines[0], `"verdict":`) || !strings.Contains(string(text), `"advantage":`) || !strings.Contains(string(text), `"kind":"SELECT"`) {
		t.Errorf("%d lines, the first: %s", len(lines), lines[0])
	}
}

func TestMistakes(t *testing.T) {
	for override, want := range map[string]string{
		"reward.kind=dense": "reward.kind", "rollout.samples=1": "rollout.samples", "policy.advantage=mean": "policy.advantage",
		"policy.normalisation=group": "policy.normalisation", "policy.dual_clip=0.5": "policy.dual_clip", "reward.overlong_buffer=512": "reward.overlong_buffer",
		"policy.clip_lo=1": "policy.clip_low", "rollout.max_tokens=9000": "rollout.max_tokens",
	} {
		_, err := LoadConfig("", []string{override})
		if err == nil || !errors.As(err, new(*settings.Error)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", override, err)
		}
	}
	w := newWorld(t)
	for _, overrides := range [][]string{
		{"reward.kind=clause"}, {"model.path=" + w.PRM}, {"train.split=none"}, {"reward.kind=clause", "reward.model=" + w.Policy}, {"rollout.max_prompt=3"}, {"train.bench=" + w.Policy},
	} {
		if _, err := Train(t.Context(), smallConfig(t, overrides...), Options{}); !errors.As(err, new(*settings.Error)) {
			t.Errorf("%q: %v", overrides, err)
		}
	}
}

// The reward model is given the same prompt as in its training, and its scores are watched
// beside a reward that does not use them.
func TestWatchedRewardModel(t *testing.T) {
	r := opened(t, smallConfig(t, "reward.kind=sparse", "reward.model="+newWorld(t).PRM))
	m := step(t, r)
	if m.Agreement == nil || m.Agreement.PRM <= 0 || len(m.Kinds) == 0 || len(r.state.Watch.Steps) != 1 {
		t.Errorf("%+v", m)
	}
	if r.collector.crediting.kind != reward.Sparse || r.collector.crediting.options.Clauses != 0 {
		t.Errorf("%+v", r.collector.crediting)
	}
}

// Answers drawn ahead are those of the questions that come next, and the state that is
// saved is that of a run in which none were under way.
func TestAhead(t *testing.T) {
	steps := func(ahead bool) (asked [][]int, states []state) {
		r := opened(t, smallConfig(t, "train.batch_questions=4"))
		r.config.Rollout.Ahead = ahead
		f := &fixed{texts: func(q int) []string { return answersTo(r, q, 1, 2) }}
		r.use(f)
		for range 4 {
			if m := step(t, r); m.Groups != 4 {
				t.Errorf("%+v", m)
			}
			s := r.state
			s.Watch = reward.Watch{}
			states = append(states, s)
		}
		if (r.ahead != nil) == (r.state.Step == r.Total) && ahead {
			t.Error("answers are drawn for a step that does not come, or for none")
		}
		return f.asked, states
	}
	asked, states := steps(false)
	aheadAsked, aheadStates := steps(true)
	if !reflect.DeepEqual(asked, aheadAsked) {
		t.Errorf("questions %v, ahead %v", asked, aheadAsked)
	}
	for i := range states {
		if states[i].Next != aheadStates[i].Next || states[i].Epoch != aheadStates[i].Epoch {
			t.Errorf("after step %d: %+v, ahead %+v", i+1, states[i], aheadStates[i])
		}
	}
}

// Tokens that were drawn from older weights count by how likely they are now, up to a cap.
func TestImportanceWeights(t *testing.T) {
	l := &learner{importance: 2}
	s := &sample{tokens: make([]int32, 3), advantages: []float32{1, 1, -1}, old: []float32{-1, -1, -1}, drawn: []float32{-1, -3, -0.5}}
	for i, want := range []float32{1, 2, -0.60653067} {
		if k := l.token(s, i, 1, nil); k.Advantage < want-1e-6 || k.Advantage > want+1e-6 {
			t.Errorf("token %d counts %g, want %g", i, k.Advantage, want)
		}
	}
}
