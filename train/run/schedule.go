package run

import "math"

// learningRate returns the rate of step (from 0) of total: a linear rise over the
// warm-up, then half a cosine down to the minimum.
func (c Train) learningRate(step, total int) float64 {
	warmup := int(math.Ceil(c.Warmup * float64(total)))
	if step < warmup {
		return c.LR * float64(step+1) / float64(warmup)
	}
	progress := float64(step-warmup) / float64(max(1, total-warmup))
	floor := c.LR * c.MinLRRatio
	return floor + (c.LR-floor)*(1+math.Cos(math.Pi*min(1, progress)))/2
}
