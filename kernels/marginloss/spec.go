package marginloss

import (
	"math"

	"caper/engine"
)

// The specification, in float64. It is what runs on every device but a GPU: a batch has
// some hundreds of pairs, and its loss is worth the digits.
//
//	z = s+ - s- - m Margin        w = Weight / sum(Weight)        n pairs
//	L = sum w log(1 + exp(-z)) + c/n sum (s+ + s-)^2
//	dL/ds+ = -w sigma(-z) + 2 c/n (s+ + s-)
//	dL/ds- = +w sigma(-z) + 2 c/n (s+ + s-)
//
// Source: CAPER's clause reward model; with the offset alone, Llama 2 (Touvron et
// al. 2023, arXiv 2307.09288, equation 2); the centring term, Eisenstein et al. 2023
// (arXiv 2312.09244).

func specForward(scores *engine.Tensor, pairs []Pair, o Options) float64 {
	loss := 0.0
	weights, count := o.denominators(pairs)
	for _, p := range pairs {
		chosen, rejected := scores.At(int(p.Chosen), 0), scores.At(int(p.Rejected), 0)
		if p.Weight != 0 {
			loss += float64(p.Weight) / weights * softplus(o.Offset*float64(p.Margin)-(chosen-rejected))
		}
		if o.Center != 0 {
			loss += o.Center / count * (chosen + rejected) * (chosen + rejected)
		}
	}
	return loss
}

// specBackward adds scale dL/dscores to ds.
func specBackward(scores *engine.Tensor, pairs []Pair, o Options, scale float64, ds *engine.Tensor) {
	weights, count := o.denominators(pairs)
	for _, p := range pairs {
		chosen, rejected := scores.At(int(p.Chosen), 0), scores.At(int(p.Rejected), 0)
		slope, pull := 0.0, 0.0
		if p.Weight != 0 {
			slope = float64(p.Weight) / weights * sigmoid(o.Offset*float64(p.Margin)-(chosen-rejected))
		}
		if o.Center != 0 {
			pull = 2 * o.Center / count * (chosen + rejected)
		}
		add(ds, p.Chosen, scale*(pull-slope))
		add(ds, p.Rejected, scale*(pull+slope))
	}
}

func (o Options) denominators(pairs []Pair) (weights, count float64) {
	weights, count = o.WeightSum, float64(o.PairCount)
	if weights == 0 {
		for _, p := range pairs {
			weights += float64(p.Weight)
		}
	}
	if count == 0 {
		count = float64(len(pairs))
	}
	return weights, count
}

func add(x *engine.Tensor, row int32, v float64) {
	x.Set(int(row), 0, x.At(int(row), 0)+v)
}

// softplus is log(1 + exp(x)) without overflow.
func softplus(x float64) float64 {
	return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x)))
}

// sigmoid is 1 / (1 + exp(-x)); the exponential may overflow to infinity, which
// gives 0.
func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
