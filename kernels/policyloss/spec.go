package policyloss

import (
	"math"

	"caper/engine"
)

// The specification, in float64. It is what runs on every device but a GPU: a batch has
// some thousands of sampled tokens, and their loss is worth the digits.
//
//	rho = exp(new - old), new - old within [-20, 20]
//	S   = min(rho A, clip(rho, 1 - Low, 1 + High) A); where A < 0: max(S, DualClip A)
//	k3  = exp(ref - new) - (ref - new) - 1
//	L   = sum Weight (-S + KL k3)
//
//	dL/dnew = Weight (-rho A where S = rho A, else 0, + KL (1 - exp(ref - new)))
//
// Source: Schulman et al. 2017 (arXiv 1707.06347, equation 7); GRPO, Shao et al. 2024
// (arXiv 2402.03300, equations 3 and 4); the two bounds, DAPO (Yu et al. 2025, arXiv
// 2503.14476, equation 10). The bound on new - old keeps one token of an outdated policy
// from making the loss infinite.

// mostApart bounds |new - old|.
const mostApart = 20

// term returns a token's loss, before its weight, and its slope by the log-prob.
func (o Options) term(k Token, logProb float64) (loss, slope float64) {
	if k.Advantage != 0 {
		a := float64(k.Advantage)
		ratio := math.Exp(min(max(logProb-float64(k.Old), -mostApart), mostApart))
		loss, slope = -ratio*a, -ratio*a
		if clipped := -min(max(ratio, 1-o.Low), 1+o.High) * a; clipped > loss {
			loss, slope = clipped, 0
		}
		if bound := -o.DualClip * a; o.DualClip > 0 && a < 0 && loss > bound {
			loss, slope = bound, 0
		}
	}
	if o.KL != 0 {
		q := min(max(float64(k.Reference)-logProb, -mostApart), mostApart)
		loss += o.KL * (math.Expm1(q) - q)
		slope -= o.KL * math.Expm1(q)
	}
	return loss, slope
}

// Clipped reports that a token's advantage moves nothing, since its ratio is past a bound.
func (o Options) Clipped(k Token, logProb float64) bool {
	o.KL = 0
	_, slope := o.term(k, logProb)
	return k.Advantage != 0 && slope == 0
}

func specForward(logProbs *engine.Tensor, tokens []Token, o Options) float64 {
	sum := 0.0
	for i, k := range tokens {
		if k.Weight != 0 {
			loss, _ := o.term(k, logProbs.At(i, 0))
			sum += float64(k.Weight) * loss
		}
	}
	return sum
}

// specBackward adds scale dL/dnew to d.
func specBackward(logProbs *engine.Tensor, tokens []Token, o Options, scale float64, d *engine.Tensor) {
	for i, k := range tokens {
		if k.Weight != 0 {
			_, slope := o.term(k, logProbs.At(i, 0))
			d.Set(i, 0, d.At(i, 0)+scale*float64(k.Weight)*slope)
		}
	}
}
