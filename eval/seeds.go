package eval

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Outcome is how one item of a test turned out in one run: a fault that was found
// (1) or not (0), a question answered right. The items of one question are
// resampled together; a stratum has a name where a balanced figure weighs it like
// any other.
type Outcome struct {
	Question string  `json:"question"`
	Stratum  string  `json:"stratum,omitempty"`
	Value    float64 `json:"value"`
}

// FaultOutcomes returns how each fault was localised by its scores, as ScoreFaults
// gives them: whether the faulty clause came first, in the stratum of its kind.
// Balanced leaves out the kinds that have no say in a balanced figure.
func FaultOutcomes(faults []Fault, scores [][]float64, o LocalizeOptions) []Outcome {
	l := localizer{faults: faults, options: o}
	all := make([]int, len(faults))
	for i := range all {
		all[i] = i
	}
	kinds := l.strata(all)
	var outcomes []Outcome
	for i := range faults {
		f := &faults[i]
		stratum := ""
		if o.Balanced {
			if stratum = string(f.Kind()); !slices.Contains(kinds, stratum) {
				continue
			}
		}
		outcomes = append(outcomes, Outcome{f.Question, stratum, rank(scores[i], f.Faulty).top1})
	}
	return outcomes
}

// SeedComparison is what a variant of a method gains over the reference, both run
// with the same seeds and tested on the same items.
type SeedComparison struct {
	// Reference and Variant are means over the seeds, with intervals.
	Reference, Variant                 float64
	ReferenceInterval, VariantInterval Interval
	// Difference is the variant's mean less the reference's.
	Difference float64
	Interval   Interval
}

// CompareSeeds compares two variants of a method, given the outcomes of each seed's
// run: reference[s] and variant[s] belong to the same seed and hold the same items
// in the same order. The intervals come of resampling questions and, where there
// are several, seeds: they hold for other questions and for other seeds.
func CompareSeeds(reference, variant [][]Outcome, resamples int, seed uint64) (SeedComparison, error) {
	seeds := len(reference)
	if seeds == 0 || len(variant) != seeds {
		return SeedComparison{}, fmt.Errorf("compare seeds: %d runs against %d: both sides need the same seeds", seeds, len(variant))
	}
	runs := append(slices.Clone(reference), variant...)
	s, err := alignOutcomes(runs)
	if err != nil {
		return SeedComparison{}, err
	}
	mean, replicates := s.mean(), s.resample(resamples, seed)
	var a, b, difference []float64
	for i := range resamples {
		random := rand.New(rand.NewPCG(seed, uint64(i)+1<<32))
		x, y := 0.0, 0.0
		for range seeds {
			drawn := random.IntN(seeds)
			x += replicates[drawn][i] / float64(seeds)
			y += replicates[seeds+drawn][i] / float64(seeds)
		}
		a, b, difference = append(a, x), append(b, y), append(difference, y-x)
	}
	c := SeedComparison{ReferenceInterval: interval(a), VariantInterval: interval(b), Interval: interval(difference)}
	for i := range seeds {
		c.Reference += mean[i] / float64(seeds)
		c.Variant += mean[seeds+i] / float64(seeds)
	}
	c.Difference = c.Variant - c.Reference
	return c, nil
}

// alignOutcomes makes a column of each run.
func alignOutcomes(runs [][]Outcome) (*sampler, error) {
	var strata []string
	for _, o := range runs[0] {
		if !slices.Contains(strata, o.Stratum) {
			strata = append(strata, o.Stratum)
		}
	}
	s := newSampler(len(runs), len(strata))
	for i, item := range runs[0] {
		values := make([]float64, len(runs))
		for r, run := range runs {
			if len(run) != len(runs[0]) || run[i].Question != item.Question || run[i].Stratum != item.Stratum {
				return nil, fmt.Errorf("compare seeds: run %d was tested on other items than run 0 (item %d): test all on the same", r, i)
			}
			values[r] = run[i].Value
		}
		s.add(item.Question, slices.Index(strata, item.Stratum), values)
	}
	return s, nil
}
