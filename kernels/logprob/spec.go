package logprob

import (
	"math"

	"caper/engine"
)

// The specification, in float64, for pair n of row i and target c:
//
//	z = W h_i        y_n = z_c - log sum_j exp(z_j)
//	dz_j = dy_n ([j = c] - softmax(z)_j)
//	dh_i += W^T dz        dW += dz h_i^T
//
// Source: the log-likelihood of a softmax; that its gradient needs no stored logits,
// Wijmans et al. 2024 (arXiv 2411.09009).

func specForward(hidden, head *engine.Tensor, rows, targets []int32, y *engine.Tensor) {
	z := make([]float64, head.Rows)
	for n, c := range targets {
		lse := specLogits(hidden, head, rows[n], z)
		y.F64[n*y.Stride] = z[c] - lse
	}
}

// specLogits fills in the logits of a row and returns the logarithm of the sum of
// their exponentials.
func specLogits(hidden, head *engine.Tensor, row int32, z []float64) float64 {
	top := math.Inf(-1)
	h := hidden.F64[int(row)*hidden.Stride:]
	for j := range z {
		z[j] = 0
		for i := range hidden.Cols {
			z[j] += head.F64[j*head.Stride+i] * h[i]
		}
		top = math.Max(top, z[j])
	}
	sum := 0.0
	for _, x := range z {
		sum += math.Exp(x - top)
	}
	return top + math.Log(sum)
}

// specBackward adds to dhidden and dhead, either of which may be nil.
func specBackward(hidden, head *engine.Tensor, rows, targets []int32, dy, dhidden, dhead *engine.Tensor) {
	z := make([]float64, head.Rows)
	for n, c := range targets {
		d := dy.F64[n*dy.Stride]
		if d == 0 {
			continue
		}
		lse := specLogits(hidden, head, rows[n], z)
		row := int(rows[n])
		for j := range z {
			dz := -d * math.Exp(z[j]-lse)
			if j == int(c) {
				dz += d
			}
			for i := range hidden.Cols {
				if dhidden != nil {
					dhidden.F64[row*dhidden.Stride+i] += dz * head.F64[j*head.Stride+i]
				}
				if dhead != nil {
					dhead.F64[j*dhead.Stride+i] += dz * hidden.F64[row*hidden.Stride+i]
				}
			}
		}
	}
}
