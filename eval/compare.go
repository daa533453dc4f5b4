package eval

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"caper/data"
)

// Verdicts are the verdicts of one system, by question.
type Verdicts struct {
	Name    string
	By      Evaluator
	Dataset string
	by      map[questionKey]judgedBy
}

// judgedBy is a verdict with the gold query that it rests on.
type judgedBy struct {
	verdict Verdict
	gold    string
}

// Add takes a question's verdict. A second one for the same question is an error.
func (v *Verdicts) Add(r data.Rollout, verdict Verdict) error {
	if v.by == nil {
		v.by = map[questionKey]judgedBy{}
	}
	key := keyOf(r)
	if _, ok := v.by[key]; ok {
		return fmt.Errorf("%s has several verdicts for question %s: choose one sample a question", v.Name, r.QuestionID)
	}
	v.by[key] = judgedBy{verdict, r.Gold}
	return nil
}

// ReadVerdicts splits the lines of a verdict file by source. All have to come from one
// evaluator and one benchmark. An error names the line.
func ReadVerdicts(path string) (map[string]*Verdicts, error) {
	sources := map[string]*Verdicts{}
	var first *Judged
	read := func(r data.Rollout) (none struct{}, err error) {
		j, err := verdictOf(r)
		if err != nil {
			return none, err
		}
		if first == nil {
			first = &j
		}
		switch {
		case !j.By.equal(first.By):
			return none, fmt.Errorf("judged %v, but lines before it %v: compare files of one kind", j.By, first.By)
		case j.Dataset != first.Dataset:
			return none, fmt.Errorf("dataset: %q, but lines before it are about %q: compare files of one benchmark", j.Dataset, first.Dataset)
		}
		return none, AddVerdict(sources, j)
	}
	for _, err := range data.ReadRolloutLines(path, read) {
		if err != nil {
			return nil, err
		}
	}
	return sources, nil
}

// AddVerdict adds a verdict to those of its source.
func AddVerdict(sources map[string]*Verdicts, j Judged) error {
	if sources[j.Source] == nil {
		sources[j.Source] = &Verdicts{Name: j.Source, By: j.By, Dataset: j.Dataset}
	}
	return sources[j.Source].Add(j.Rollout, j.Verdict)
}

// PairedComparison is how two systems differ on the questions that both answered and whose
// gold ran.
type PairedComparison struct {
	Evaluator
	A string `json:"a"`
	B string `json:"b"`
	// Questions counts those compared; the four below add up to it.
	Questions int `json:"questions"`
	OnlyA     int `json:"only_a"` // A correct, B not
	OnlyB     int `json:"only_b"`
	Both      int `json:"both"`
	Neither   int `json:"neither"`
	// Accuracies, and B's less A's with its bootstrap interval over questions.
	AccuracyA  float64  `json:"ex_a"`
	AccuracyB  float64  `json:"ex_b"`
	Difference float64  `json:"difference"`
	Interval   Interval `json:"interval"`
	// P is McNemar's exact two-sided p: were A and B equally good, how often would
	// the questions that only one got right split at least as unevenly?
	P float64 `json:"p"`
	// Left out: questions of one side only, and those whose gold did not run or whose
	// database could not be used.
	Unpaired     int `json:"unpaired"`
	GoldProblems int `json:"gold_problems"`
}

// errMixed begins the errors of verdicts that do not compare.
var errMixed = errors.New("the two were not judged alike")

// judgedAlike checks that two systems were judged in the same way.
func judgedAlike(a, b *Verdicts) error {
	switch {
	case !a.By.equal(b.By):
		return fmt.Errorf("%w: A %v, B %v", errMixed, a.By, b.By)
	case a.Dataset != b.Dataset:
		return fmt.Errorf("%w: A on %q, B on %q", errMixed, a.Dataset, b.Dataset)
	}
	return nil
}

// CompareVerdicts compares two systems; resamples and seed are the bootstrap's. It
// refuses two that were judged by other rules, on other benchmarks, or by other gold
// queries.
func CompareVerdicts(a, b *Verdicts, resamples int, seed uint64) (PairedComparison, error) {
	if err := judgedAlike(a, b); err != nil {
		return PairedComparison{}, err
	}
	c := PairedComparison{Evaluator: a.By, A: a.Name, B: b.Name, Unpaired: len(a.by) + len(b.by)}
	s := newSampler(2, 1)
	compareKeys := func(x, y questionKey) int {
		return slices.Compare([]string{x.db, x.id, x.text}, []string{y.db, y.id, y.text})
	}
	for _, key := range slices.SortedFunc(maps.Keys(a.by), compareKeys) {
		onA := a.by[key]
		onB, ok := b.by[key]
		if !ok {
			continue
		}
		if onA.gold != onB.gold {
			return c, fmt.Errorf("%w: question %s by two gold queries, %s and %s", errMixed, key.id, onA.gold, onB.gold)
		}
		va, vb := onA.verdict, onB.verdict
		c.Unpaired -= 2
		if !va.isJudgement() || !vb.isJudgement() {
			c.GoldProblems++
			continue
		}
		c.Questions++
		s.add(key.db+"\x00"+key.id+"\x00"+key.text, 0, []float64{score(va), score(vb)})
		switch {
		case va == Correct && vb == Correct:
			c.Both++
		case va == Correct:
			c.OnlyA++
		case vb == Correct:
			c.OnlyB++
		default:
			c.Neither++
		}
	}
	c.AccuracyA, c.AccuracyB = share(c.Both+c.OnlyA, c.Questions), share(c.Both+c.OnlyB, c.Questions)
	c.Difference, c.P = c.AccuracyB-c.AccuracyA, mcNemar(c.OnlyA, c.OnlyB)
	if c.Questions > 0 {
		replicates := s.resample(resamples, seed)
		for i := range replicates[0] {
			replicates[1][i] -= replicates[0][i]
		}
		c.Interval = interval(replicates[1])
	}
	return c, nil
}

// mcNemar is the two-sided probability of a split of a+b fair coins at least as uneven
// as a against b:
//
//	min(1, 2 * sum over k <= min(a, b) of C(a+b, k) / 2^(a+b))
func mcNemar(a, b int) float64 {
	n := a + b
	p := 0.0
	for k := range min(a, b) + 1 {
		p += math.Exp(logFactorial(n) - logFactorial(k) - logFactorial(n-k) - float64(n)*math.Ln2)
	}
	return math.Min(1, 2*p)
}

func logFactorial(n int) float64 {
	value, _ := math.Lgamma(float64(n) + 1)
	return value
}

// String is the comparison for people.
func (c PairedComparison) String() string {
	text := fmt.Sprintf("A %s: %.2f %%, B %s: %.2f %% of %d questions, %v\n", c.A, 100*c.AccuracyA, c.B, 100*c.AccuracyB, c.Questions, c.Evaluator) +
		fmt.Sprintf("  only A right %d, only B %d, both %d, neither %d\n", c.OnlyA, c.OnlyB, c.Both, c.Neither) +
		fmt.Sprintf("  B - A %+.2f points, 95 %% interval %+.2f to %+.2f; McNemar exact p = %.4g\n",
			100*c.Difference, 100*c.Interval[0], 100*c.Interval[1], c.P)
	if c.Unpaired+c.GoldProblems > 0 {
		text += fmt.Sprintf("  left out: %d verdicts for questions that the other side lacks, %d questions whose gold did not run or whose database cannot be used\n",
			c.Unpaired, c.GoldProblems)
	}
	return text
}
