package sampling

import (
	"cmp"
	"math"
	"slices"
)

// The specification, in float64, for logits x, temperature T and a uniform u:
//
//	LogProb = x_token - log sum_j exp(x_j)             over all of the row
//	w_j     = exp((x_j - max x) / T)                   over the words
//	TopK: keep w_j >= the k-th largest
//	TopP: of what is kept, in falling order, until the sum reaches p times the kept
//	      sum; and those equal to the last one
//	MinP: keep w_j >= min-p (the largest is 1)
//	token   = the first, by id, whose sum of kept w up to it exceeds u times their sum
//	Drawn   = log (w_token / sum of kept w)

func specRun(o *op) {
	for i := range o.draws {
		d := &o.draws[i]
		row := make([]float64, o.logits.Cols)
		for j := range row {
			row[j] = o.logits.At(int(d.Row), j)
		}
		specDraw(d, row, o.words)
	}
}

func specDraw(d *Draw, row []float64, words int) {
	d.Token, d.LogProb, d.Drawn = -1, 0, 0
	top, sum := slices.Max(row), 0.0
	for _, x := range row {
		sum += math.Exp(x - top)
	}
	lse := top + math.Log(sum)
	best := 0
	for j := range words {
		if row[j] > row[best] {
			best = j
		}
	}
	if math.IsNaN(lse) || math.IsInf(lse, 0) || math.IsInf(row[best], 0) {
		return
	}
	if d.Temperature == 0 {
		d.Token, d.LogProb = int32(best), float32(row[best]-lse)
		return
	}
	w := specWeights(d, row[:words], row[best])
	kept, reached := 0.0, 0.0
	for _, x := range w {
		kept += x
	}
	for j, x := range w {
		if reached += x; x > 0 {
			d.Token = int32(j)
			if reached > d.Uniform*kept {
				break
			}
		}
	}
	d.LogProb = float32(row[d.Token] - lse)
	d.Drawn = float32(math.Log(w[d.Token] / kept))
}

// specWeights returns the words' weights, 0 for those that a filter drops.
func specWeights(d *Draw, row []float64, top float64) []float64 {
	w := make([]float64, len(row))
	for j, x := range row {
		w[j] = math.Exp((x - top) / d.Temperature)
	}
	keep := func(least float64) {
		for j := range w {
			if row[j] < least {
				w[j] = 0
			}
		}
	}
	falling := slices.Clone(row)
	slices.SortFunc(falling, func(a, b float64) int { return cmp.Compare(b, a) })
	if k := int(d.TopK); k > 0 && k < len(falling) {
		keep(falling[k-1])
	}
	if d.TopP > 0 && d.TopP < 1 {
		kept, reached := 0.0, 0.0
		for _, x := range w {
			kept += x
		}
		for _, x := range falling {
			if reached += math.Exp((x - top) / d.Temperature); reached >= d.TopP*kept {
				keep(x)
				break
			}
		}
	}
	for j := range w {
		if w[j] < d.MinP {
			w[j] = 0
		}
	}
	return w
}
