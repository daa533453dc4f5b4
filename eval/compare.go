package eval

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	"caper/data"
)

// Verdicts are the verdicts of one system, by question.
type Verdicts struct {
	Name string
	by   map[questionKey]Verdict
}

// Add takes a question's verdict. A second one for the same question is an error.
func (v *Verdicts) Add(r data.Rollout, verdict Verdict) error {
	if v.by == nil {
		v.by = map[questionKey]Verdict{}
	}
	key := keyOf(r)
	if _, ok := v.by[key]; ok {
		return fmt.Errorf("%s has several verdicts for question %s: choose one sample a question", v.Name, r.QuestionID)
	}
	v.by[key] = verdict
	return nil
}

// ReadVerdicts splits the lines of a verdict file by source. The error names the
// question of a line without a verdict.
func ReadVerdicts(lines iter.Seq2[data.Rollout, error]) (map[string]*Verdicts, error) {
	sources := map[string]*Verdicts{}
	for r, err := range lines {
		if err != nil {
			return nil, err
		}
		var verdict Verdict
		if json.Unmarshal(r.Extra["verdict"], &verdict) != nil || verdict == "" {
			return nil, fmt.Errorf("question %s of %s: no verdict: name the benchmark with --bench, so that it can be judged", r.QuestionID, r.Source)
		}
		if err := AddVerdict(sources, r, verdict); err != nil {
			return nil, err
		}
	}
	return sources, nil
}

// AddVerdict adds a verdict to those of its source.
func AddVerdict(sources map[string]*Verdicts, r data.Rollout, verdict Verdict) error {
	if sources[r.Source] == nil {
		sources[r.Source] = &Verdicts{Name: r.Source}
	}
	return sources[r.Source].Add(r, verdict)
}

// PairedComparison is how two systems differ on the questions that both answered and whose
// gold ran.
type PairedComparison struct {
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
	// Left out: questions of one side only, and those whose gold did not run.
	Unpaired     int `json:"unpaired"`
	GoldProblems int `json:"gold_problems"`
}

// CompareVerdicts compares two systems; resamples and seed are the bootstrap's.
func CompareVerdicts(a, b *Verdicts, resamples int, seed uint64) PairedComparison {
	c := PairedComparison{A: a.Name, B: b.Name, Unpaired: len(a.by) + len(b.by)}
	s := newSampler(2, 1)
	compareKeys := func(x, y questionKey) int {
		return slices.Compare([]string{x.db, x.id, x.text}, []string{y.db, y.id, y.text})
	}
	for _, key := range slices.SortedFunc(maps.Keys(a.by), compareKeys) {
		va := a.by[key]
		vb, ok := b.by[key]
		if !ok {
			continue
		}
		c.Unpaired -= 2
		if va.ofGold() || vb.ofGold() {
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
	return c
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
	text := fmt.Sprintf("A %s: %.2f %%, B %s: %.2f %% of %d questions\n", c.A, 100*c.AccuracyA, c.B, 100*c.AccuracyB, c.Questions) +
		fmt.Sprintf("  only A right %d, only B %d, both %d, neither %d\n", c.OnlyA, c.OnlyB, c.Both, c.Neither) +
		fmt.Sprintf("  B - A %+.2f points, 95 %% interval %+.2f to %+.2f; McNemar exact p = %.4g\n",
			100*c.Difference, 100*c.Interval[0], 100*c.Interval[1], c.P)
	if c.Unpaired+c.GoldProblems > 0 {
		text += fmt.Sprintf("  left out: %d verdicts for questions that the other side lacks, %d questions whose gold did not run\n",
			c.Unpaired, c.GoldProblems)
	}
	return text
}
