package grpo

import (
	"math"
	"slices"
	"strings"
	"testing"

	"caper/eval"
	"caper/kernels/policyloss"
	"caper/model/tokenizer"
	"caper/sql"
	"caper/train/policy"
	"caper/train/reward"
)

// words is a tokenizer whose tokens are bytes.
func words(t *testing.T) *tokenizer.Tokenizer {
	t.Helper()
	k, err := tokenizer.Train(func(func(string) bool) {}, tokenizer.TrainOptions{VocabSize: 257, Added: []string{"<|im_end|>"}})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// answer is a query with its end token, judged.
func answer(t *testing.T, text string, right bool, scores ...float64) *reward.Answer {
	t.Helper()
	k := words(t)
	end, ok := k.ID("<|im_end|>")
	if !ok {
		t.Fatal("no end token")
	}
	a := answerOf(k, text, append(k.EncodeText(text, nil), end))
	a.Verdict, a.Scores = eval.Wrong, scores
	if right {
		a.Verdict = eval.Correct
	}
	if len(scores) > 0 {
		a.Query, a.Clauses = text, sql.Clauses(text)
	}
	return a
}

func plain(kind reward.Kind) crediting {
	return crediting{kind: kind, options: kind.Policy(policy.DefaultOptions())}
}

func credit(t *testing.T, c crediting, answers ...*reward.Answer) [][]float32 {
	t.Helper()
	advantages, _, err := c.credit(answers)
	if err != nil {
		t.Fatal(err)
	}
	return advantages
}

const (
	long  = "SELECT a FROM t WHERE b"
	short = "SELECT a FROM t"
)

// Every token gets the advantage of the clause in which its first byte lies, in each mode.
func TestAdvantagesReachTheirTokens(t *testing.T) {
	for _, mode := range []policy.Mode{policy.Aligned, policy.Pooled, policy.StepRewards} {
		c := plain(reward.Clause)
		c.options.Mode = mode
		answers := []*reward.Answer{answer(t, long, true, 0.9, 0.5, 0.2), answer(t, short, false, 0.3, 0.6)}
		got := credit(t, c, answers...)
		var group []policy.Sample
		for _, a := range answers {
			s, _ := reward.Clause.Sample(a)
			group = append(group, s)
		}
		want, err := c.options.Advantages(group)
		if err != nil {
			t.Fatal(err)
		}
		from, where := strings.Index(long, "FROM"), strings.Index(long, "WHERE")
		for token, a := range got[0] {
			clause := 0
			if token >= from {
				clause = 1
			}
			if token >= where { // and the end token
				clause = 2
			}
			if a != float32(want[0][clause]) {
				t.Errorf("%s: token %d has %g, want clause %d's %g", mode, token, a, clause, want[0][clause])
			}
		}
		if len(got[0]) != len(long)+1 || len(got[1]) != len(short)+1 {
			t.Errorf("%s: %d and %d advantages", mode, len(got[0]), len(got[1]))
		}
	}
}

// With one clause each, or with the outcome alone, all tokens have GRPO's advantage, and
// the whole step's loss is GRPO's.
func TestSpecialCasesAreGRPO(t *testing.T) {
	sparse := []*reward.Answer{answer(t, long, true, 0.9, 0.5, 0.2), answer(t, short, false, 0.3, 0.6), answer(t, short, false, 0.1, 0.9), answer(t, long, false, 0.1, 0.2, 0.3)}
	single := []*reward.Answer{answer(t, "SELECT 1", true, 0.9), answer(t, "SELECT 22", false, 0.4), answer(t, "no query", false)}
	total := func(a *reward.Answer, o policy.Options) (sum float64) {
		s, _ := reward.Clause.Sample(a)
		for _, r := range o.Rewards(s) {
			sum += r
		}
		return sum
	}
	for name, c := range map[string]struct {
		answers []*reward.Answer
		kind    reward.Kind
	}{"sparse": {sparse, reward.Sparse}, "K = 1": {single, reward.Clause}} {
		crediting := plain(c.kind)
		got := credit(t, crediting, c.answers...)
		mean, square, n := 0.0, 0.0, float64(len(c.answers))
		for _, a := range c.answers {
			mean += total(a, crediting.options) / n
		}
		for _, a := range c.answers {
			square += math.Pow(total(a, crediting.options)-mean, 2) / n
		}
		loss := 0.0 // GRPO's of an on-policy step: the mean over samples of -A
		for i, a := range c.answers {
			want := (total(a, crediting.options) - mean) / (math.Sqrt(square) + 1e-6)
			loss -= want / n
			for token, advantage := range got[i] {
				if math.Abs(float64(advantage)-want) > 1e-6 {
					t.Errorf("%s: token %d of answer %d has %g, want %g", name, token, i, advantage, want)
				}
			}
		}
		if loss := loss; math.Abs(loss) > 1e-9 {
			t.Errorf("%s: GRPO's advantages sum to %g", name, loss)
		}
	}
}

func TestReport60AdvantagesAreBounded(t *testing.T) {
	one := []*reward.Answer{answer(t, short, true, 0, 0), answer(t, short, false, 0, 0), answer(t, short, false, 0, 0), answer(t, short, false, 0, 0)}
	for _, a := range credit(t, plain(reward.Sparse), one...) {
		if most := slices.Max(a); most > 1.7321 { // (1 - 1/4) / sqrt(3/16) = sqrt(3)
			t.Errorf("advantage %g from rewards [1 0 0 0], want sqrt(3) at most", most)
		}
	}
	// Equal as a whole, different by clause: the deviation of the whole is 0.
	swapped := []*reward.Answer{answer(t, short, false, 0.2, 0.8), answer(t, short, false, 0.8, 0.2)}
	c := plain(reward.Clause)
	c.most = 5
	for _, advantages := range credit(t, c, swapped...) {
		for _, a := range advantages {
			if a > 5 || a < -5 {
				t.Errorf("advantage %g, want 5 at most", a)
			}
		}
	}
}

// An answer without a reward changes nothing for the others of its group.
func TestReport62MissingRewardsTakeNoPart(t *testing.T) {
	whole := []*reward.Answer{answer(t, long, true, 0.9, 0.5, 0.2), answer(t, short, false, 0.3, 0.6)}
	missing := answer(t, long, true, math.NaN(), 0.5, 0.2)
	missing.Missing = "score"
	want := credit(t, plain(reward.Clause), whole...)
	got := credit(t, plain(reward.Clause), whole[0], missing, whole[1])
	if got[1] != nil || !slices.Equal(got[0], want[0]) || !slices.Equal(got[2], want[1]) {
		t.Errorf("advantages with a missing reward: %v; without: %v", got, want)
	}
	if got := credit(t, plain(reward.Clause), missing, missing); got != nil {
		t.Errorf("a group without any reward: %v", got)
	}
}

// Each group is compared with itself alone: another one changes nothing.
func TestReport64AdvantagesAreOfTheGroup(t *testing.T) {
	easy := []*reward.Answer{answer(t, short, true, 0.9, 0.9), answer(t, short, true, 0.9, 0.8)}
	hard := []*reward.Answer{answer(t, short, true, 0.1, 0.1), answer(t, short, false, 0.1, 0.1)}
	for _, group := range [][]*reward.Answer{easy, hard} {
		for _, advantages := range credit(t, plain(reward.Clause), group...) {
			if advantages[0] == 0 {
				t.Errorf("no advantage in %v", advantages)
			}
		}
		sum := 0.0
		for _, advantages := range credit(t, plain(reward.Clause), group...) {
			sum += float64(advantages[0])
		}
		if math.Abs(sum) > 1e-5 {
			t.Errorf("advantages of a group's first clauses sum to %g, want 0", sum)
		}
	}
}

// Advantages are normalised by the group and by nothing else: what the loss multiplies by
// is (R - mean)/deviation, whatever the scale of the rewards.
func TestReport65NormalisedOnce(t *testing.T) {
	group := []*reward.Answer{answer(t, short, true, 0, 0), answer(t, short, false, 0, 0)}
	for _, scale := range []float64{0.1, 1, 10} {
		c := plain(reward.Sparse)
		c.options.Execution = scale
		got := credit(t, c, group...)
		if math.Abs(float64(got[0][0])-1) > 1e-4 || math.Abs(float64(got[1][0])+1) > 1e-4 {
			t.Errorf("lambda_e %g: advantages %g and %g, want 1 and -1", scale, got[0][0], got[1][0])
		}
	}
	samples := []*sample{{tokens: make([]int32, 2), advantages: []float32{1, 1}, old: []float32{-1, -1}}}
	l := &learner{loss: policyloss.Options{Low: 0.2, High: 0.2}}
	if k := l.token(samples[0], 0, 0.5, nil); k.Advantage != 1 || k.Weight != 0.5 {
		t.Errorf("the loss sees %+v, want the advantage as it is", k)
	}
}

// DAPO's overlong penalty: none up to longest - buffer, -1 at longest.
func TestOverlongPenalty(t *testing.T) {
	c := plain(reward.Sparse)
	c.longest, c.buffer = 100, 20
	for length, want := range map[int]float64{1: 0, 80: 0, 90: -0.5, 100: -1} {
		if got := c.penalty(length); got != want {
			t.Errorf("%d tokens: %g, want %g", length, got, want)
		}
	}
	c.longest, c.buffer = 24, 8
	got := credit(t, c, answer(t, long, false, 0, 0, 0), answer(t, short, false, 0, 0)) // 24 and 16 tokens
	if got == nil || got[0][0] >= 0 || got[1][0] <= 0 {
		t.Errorf("of two wrong answers the overlong one has %v", got)
	}
}

func TestTokensOverText(t *testing.T) {
	k := words(t)
	tokens := k.EncodeText("  SELECT 1", nil)
	a := answerOf(k, "SELECT 1", tokens)
	if a.Ends[0] != 0 || a.Ends[1] != 0 || a.Ends[2] != 1 || a.Ends[len(a.Ends)-1] != len("SELECT 1") {
		t.Errorf("a trimmed text: ends %v", a.Ends)
	}
}
