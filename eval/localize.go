package eval

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"caper/model"
)

// Scorer scores the clauses of queries; model.Scorer is one.
type Scorer interface {
	Score([]model.Request) [][]model.Scores
}

// scoreBatch is the number of prompts scored between two looks at the context.
const scoreBatch = 16

// ScoreFaults returns the score of every candidate of every fault: one for each
// clause, then one for the end. Faults with the same prompt are scored together.
// progress, if not nil, hears how many faults are done. It stops with the
// context's error.
func ScoreFaults(ctx context.Context, s Scorer, faults []Fault, progress func(done int)) ([][]float64, error) {
	var prompts []string
	byPrompt := map[string][]int{}
	for i := range faults {
		prompt := faults[i].Prompt
		if byPrompt[prompt] == nil {
			prompts = append(prompts, prompt)
		}
		byPrompt[prompt] = append(byPrompt[prompt], i)
	}
	scores := make([][]float64, len(faults))
	done := 0
	for batch := range slices.Chunk(prompts, scoreBatch) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var requests []model.Request
		for _, prompt := range batch {
			r := model.Request{Prompt: prompt}
			for _, i := range byPrompt[prompt] {
				r.Queries = append(r.Queries, faults[i].Units[:faults[i].Clauses()])
			}
			requests = append(requests, r)
		}
		for p, queries := range s.Score(requests) {
			for q, i := range byPrompt[batch[p]] {
				got := queries[q]
				if len(got.Clauses) != faults[i].Clauses() {
					return nil, fmt.Errorf("localize: the model gave %d scores for the %d clauses of %q",
						len(got.Clauses), faults[i].Clauses(), faults[i].Units)
				}
				scores[i] = append(slices.Clone(got.Clauses), got.End)
				done++
			}
		}
		if progress != nil {
			progress(done)
		}
	}
	return scores, nil
}

// LocalizeOptions say how Localize weighs and resamples. Zero values choose.
type LocalizeOptions struct {
	// Balanced gives every clause kind the same weight, so that knowing which
	// kinds fail often gains nothing: each figure is the mean of the figures of
	// the kinds.
	Balanced bool
	// MinKind is the number of faults that a kind needs to have a say in a
	// balanced figure (10). A set of faults in which no kind has as many goes
	// by its largest kinds.
	MinKind int
	// Resamples is the number of bootstrap resamples (1000), Seed theirs.
	Resamples int
	Seed      uint64
}

// Measure is how well faults were localised by one ranking.
type Measure struct {
	// Top1 is the share of faults whose faulty clause ranks first, MRR the
	// mean of 1/rank; both expected over the random order of equal scores.
	Top1         float64  `json:"top1"`
	Top1Interval Interval `json:"top1_interval"`
	MRR          float64  `json:"mrr"`
	MRRInterval  Interval `json:"mrr_interval"`
}

// Comparison is how well a model localised a set of faults, and how well the
// baselines did.
type Comparison struct {
	Measure
	// Count is the number of faults, without those of kinds that have no say
	// in a balanced figure; Questions that of the questions they come from.
	Count     int                        `json:"count"`
	Questions int                        `json:"questions"`
	Baselines map[string]BaselineMeasure `json:"baselines,omitempty"`
	// Best is the baseline with the highest Top1.
	Best string `json:"best_baseline,omitempty"`
}

// BaselineMeasure is how well a baseline did, and the model's lead over it,
// resampled pair by pair.
type BaselineMeasure struct {
	Measure
	Lead Measure `json:"lead"`
}

// Localization is the result of the localisation protocol: for all faults, and
// for those of each kind, number of clauses, source and operator. The operator
// "single" holds the single-verified real failures.
type Localization struct {
	Comparison
	Balanced bool `json:"balanced"`
	// Kinds are the kinds that have a say in the balanced figure of all faults.
	Kinds      []string              `json:"balanced_kinds,omitempty"`
	ByKind     map[string]Comparison `json:"by_kind"`
	ByClauses  map[string]Comparison `json:"by_clauses"`
	BySource   map[string]Comparison `json:"by_source"`
	ByOperator map[string]Comparison `json:"by_operator"`
}

// Localize evaluates the scores of faults, as ScoreFaults gives them, and of
// baselines, which may be nil.
func Localize(faults []Fault, scores [][]float64, baselines []Baseline, o LocalizeOptions) Localization {
	l := localizer{faults: faults, baselines: baselines, options: o}
	for i := range faults {
		l.values = append(l.values, l.measure(&faults[i], scores[i]))
	}
	all := make([]int, len(faults))
	for i := range all {
		all[i] = i
	}
	result := Localization{
		Comparison: l.compare(all),
		Balanced:   o.Balanced,
		ByKind:     l.by(func(f *Fault) string { return string(f.Kind()) }),
		ByClauses:  l.by(func(f *Fault) string { return strconv.Itoa(f.Clauses()) }),
		BySource:   l.by(func(f *Fault) string { return f.Source }),
		ByOperator: l.by(func(f *Fault) string { return f.Operator }),
	}
	if o.Balanced {
		result.Kinds = l.strata(all)
	}
	return result
}

// localizer holds what each fault's rankings gave.
type localizer struct {
	faults    []Fault
	baselines []Baseline
	options   LocalizeOptions
	// values are columns by fault: the model's Top1 and reciprocal rank, then
	// those of each baseline.
	values [][]float64
}

func (l *localizer) measure(f *Fault, scores []float64) []float64 {
	o := rank(scores, f.Faulty)
	values := []float64{o.top1, o.reciprocal}
	for _, b := range l.baselines {
		o := rank(b.Score(f), f.Faulty)
		values = append(values, o.top1, o.reciprocal)
	}
	return values
}

// by compares within each set of faults that have a key in common.
func (l *localizer) by(key func(*Fault) string) map[string]Comparison {
	sets := map[string][]int{}
	for i := range l.faults {
		k := key(&l.faults[i])
		sets[k] = append(sets[k], i)
	}
	comparisons := map[string]Comparison{}
	for k, set := range sets {
		comparisons[k] = l.compare(set)
	}
	return comparisons
}

// strata returns the kinds that a balanced figure of set is the mean over.
func (l *localizer) strata(set []int) []string {
	counts, largest := map[string]int{}, 0
	for _, i := range set {
		kind := string(l.faults[i].Kind())
		counts[kind]++
		largest = max(largest, counts[kind])
	}
	enough := l.options.MinKind
	if enough == 0 {
		enough = 10
	}
	var kinds []string
	for kind, count := range counts {
		if count >= min(enough, largest) {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// compare measures one set of faults.
func (l *localizer) compare(set []int) Comparison {
	kinds := []string{""}
	if l.options.Balanced {
		kinds = l.strata(set)
	}
	s := newSampler(2+2*len(l.baselines), len(kinds))
	count := 0
	for _, i := range set {
		f := &l.faults[i]
		stratum := 0
		if l.options.Balanced {
			stratum = slices.Index(kinds, string(f.Kind()))
		}
		if stratum >= 0 {
			s.add(f.Question, stratum, l.values[i])
			count++
		}
	}
	resamples := l.options.Resamples
	if resamples == 0 {
		resamples = 1000
	}
	mean, replicates := s.mean(), s.resample(resamples, l.options.Seed)
	c := Comparison{Measure: measureOf(mean, replicates, 0), Count: count, Questions: len(s.questions)}
	for i, b := range l.baselines {
		if c.Baselines == nil {
			c.Baselines = map[string]BaselineMeasure{}
		}
		at := 2 + 2*i
		m := BaselineMeasure{Measure: measureOf(mean, replicates, at), Lead: leadOf(mean, replicates, at)}
		c.Baselines[b.Name] = m
		if c.Best == "" || m.Top1 > c.Baselines[c.Best].Top1 {
			c.Best = b.Name
		}
	}
	return c
}

// measureOf reads the two columns of a ranking.
func measureOf(mean []float64, replicates [][]float64, at int) Measure {
	return Measure{mean[at], interval(replicates[at]), mean[at+1], interval(replicates[at+1])}
}

// leadOf is the model's columns less those at a place.
func leadOf(mean []float64, replicates [][]float64, at int) Measure {
	difference := func(c int) (float64, Interval) {
		paired := make([]float64, len(replicates[c]))
		for r := range paired {
			paired[r] = replicates[c][r] - replicates[at+c][r]
		}
		return mean[c] - mean[at+c], interval(paired)
	}
	var lead Measure
	lead.Top1, lead.Top1Interval = difference(0)
	lead.MRR, lead.MRRInterval = difference(1)
	return lead
}
