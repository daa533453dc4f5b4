package eval

import "math"

// outcome is how one ranking of a fault's candidates turned out.
type outcome struct {
	top1       float64 // probability that the faulty candidate is first
	reciprocal float64 // expected reciprocal of its rank
}

// rank ranks candidates by ascending score and looks where the faulty one is.
// Candidates of equal score are in random order; the outcome is the exact
// expectation over these orders. NaN ranks last.
func rank(scores []float64, faulty int) outcome {
	own := worstNaN(scores[faulty])
	before, tied := 0, 0
	for _, s := range scores {
		switch s = worstNaN(s); {
		case s < own:
			before++
		case s == own:
			tied++
		}
	}
	o := outcome{}
	if before == 0 {
		o.top1 = 1 / float64(tied)
	}
	for r := before + 1; r <= before+tied; r++ {
		o.reciprocal += 1 / float64(r) / float64(tied)
	}
	return o
}

func worstNaN(score float64) float64 {
	if math.IsNaN(score) {
		return math.Inf(1)
	}
	return score
}
