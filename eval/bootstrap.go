package eval

import (
	"math/rand/v2"
	"slices"
)

// Interval is a 95 % interval: the lower and the upper end.
type Interval [2]float64

// sample is a set of measured faults, gathered for the bootstrap: a statistic of
// it is a mean of columns (one per ranking and measure), either over faults or,
// when balanced, over strata of equal weight. Questions are what is resampled,
// because the faults of one question share its difficulty.
type sample struct {
	columns   int
	strata    int
	questions []tally
}

// tally sums up the faults of a question in each stratum.
type tally []stratumTally

type stratumTally struct {
	stratum int
	count   float64
	sums    []float64 // by column
}

// sampler builds a sample.
type sampler struct {
	sample
	index map[string]int // of questions
}

func newSampler(columns, strata int) *sampler {
	return &sampler{sample: sample{columns: columns, strata: strata}, index: map[string]int{}}
}

// add adds a fault of a question, in a stratum, with its values by column.
func (s *sampler) add(question string, stratum int, values []float64) {
	i, ok := s.index[question]
	if !ok {
		i = len(s.questions)
		s.index[question] = i
		s.questions = append(s.questions, nil)
	}
	t := &s.questions[i]
	at := slices.IndexFunc(*t, func(x stratumTally) bool { return x.stratum == stratum })
	if at < 0 {
		at = len(*t)
		*t = append(*t, stratumTally{stratum: stratum, sums: make([]float64, s.columns)})
	}
	x := &(*t)[at]
	x.count++
	for c, v := range values {
		x.sums[c] += v
	}
}

// accumulator adds up tallies and takes the mean of each column.
type accumulator struct {
	counts []float64   // by stratum
	sums   [][]float64 // by stratum and column
	means  []float64
}

func newAccumulator(s *sample) *accumulator {
	a := &accumulator{counts: make([]float64, s.strata), means: make([]float64, s.columns)}
	for range s.strata {
		a.sums = append(a.sums, make([]float64, s.columns))
	}
	return a
}

func (a *accumulator) reset() {
	clear(a.counts)
	for _, sums := range a.sums {
		clear(sums)
	}
}

func (a *accumulator) add(t tally) {
	for _, x := range t {
		a.counts[x.stratum] += x.count
		sums := a.sums[x.stratum]
		for c, v := range x.sums {
			sums[c] += v
		}
	}
}

// mean returns the mean of each column: the mean of the strata's means. A
// stratum without faults, which a resample may have, has no say.
func (a *accumulator) mean() []float64 {
	clear(a.means)
	filled := 0.0
	for stratum, count := range a.counts {
		if count == 0 {
			continue
		}
		filled++
		for c, v := range a.sums[stratum] {
			a.means[c] += v / count
		}
	}
	for c := range a.means {
		a.means[c] /= max(filled, 1)
	}
	return a.means
}

// mean returns the statistic of the sample itself.
func (s *sample) mean() []float64 {
	a := newAccumulator(s)
	for _, t := range s.questions {
		a.add(t)
	}
	return a.mean()
}

// resample returns the statistic of n resamples of the questions, by column and
// resample. Resample i depends on nothing but the seed, i and the sample, so that
// all columns, and with them their differences, are paired.
func (s *sample) resample(n int, seed uint64) [][]float64 {
	replicates := make([][]float64, s.columns)
	a := newAccumulator(s)
	for i := range n {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		a.reset()
		for range s.questions {
			a.add(s.questions[random.IntN(len(s.questions))])
		}
		for c, m := range a.mean() {
			replicates[c] = append(replicates[c], m)
		}
	}
	return replicates
}

// interval returns the 95 % percentile interval of replicates.
func interval(replicates []float64) Interval {
	if len(replicates) == 0 {
		return Interval{}
	}
	sorted := slices.Sorted(slices.Values(replicates))
	last := float64(len(sorted) - 1)
	return Interval{sorted[int(0.025*last+0.5)], sorted[int(0.975*last+0.5)]}
}
