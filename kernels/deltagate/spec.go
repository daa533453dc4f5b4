package deltagate

import (
	"math"

	"caper/engine"
)

// The specification, in float64, for token t and head h:
//
//	g    = -exp(aLog) softplus(a + dtBias)       beta = sigma(b)
//	da   = dg (-exp(aLog)) sigma(a + dtBias)     db = dbeta beta (1 - beta)
//	ddtBias = sum_t da                           daLog = sum_t dg g
//
// softplus(x) is x above 20, as in the models this must agree with.
// Source: Yang et al. 2024 (arXiv 2412.06464), the decay of Mamba2 (Dao and Gu
// 2024, arXiv 2405.21060).

func specForward(a, b, aLog, dtBias, g, beta *engine.Tensor) {
	for t := range a.Rows {
		for h := range a.Cols {
			x := a.F64[t*a.Stride+h] + dtBias.F64[h]
			g.F64[t*g.Stride+h] = -math.Exp(aLog.F64[h]) * softplus(x)
			beta.F64[t*beta.Stride+h] = sigmoid(b.F64[t*b.Stride+h])
		}
	}
}

// specDecayBackward adds the gradients of g's inputs; each may be nil.
func specDecayBackward(a, aLog, dtBias, g, dg, da, daLog, ddtBias *engine.Tensor) {
	for t := range a.Rows {
		for h := range a.Cols {
			d := dg.F64[t*dg.Stride+h]
			dx := d * -math.Exp(aLog.F64[h]) * sigmoid(a.F64[t*a.Stride+h]+dtBias.F64[h])
			if da != nil {
				da.F64[t*da.Stride+h] += dx
			}
			if ddtBias != nil {
				ddtBias.F64[h] += dx
			}
			if daLog != nil {
				daLog.F64[h] += d * g.F64[t*g.Stride+h]
			}
		}
	}
}

// specBetaBackward adds the gradient of b.
func specBetaBackward(beta, dbeta, db *engine.Tensor) {
	for t := range beta.Rows {
		for h := range beta.Cols {
			s := beta.F64[t*beta.Stride+h]
			db.F64[t*db.Stride+h] += dbeta.F64[t*dbeta.Stride+h] * s * (1 - s)
		}
	}
}

func softplus(x float64) float64 {
	if x > 20 {
		return x
	}
	return math.Log1p(math.Exp(x))
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
