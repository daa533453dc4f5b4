package causalconv

import (
	"math"

	"caper/engine"
)

// The specification, in float64. X[-1], X[-2], ... of a row are the rows before it
// on its path, zero before the start of the sequence:
//
//	p[t,c] = sum_{j<K} w[c,j] X[t-K+1+j, c]          y = p sigma(p)
//	dp     = dy sigma(p) (1 + p (1 - sigma(p)))
//	dw[c,j] = sum_t dp[t,c] X[t-K+1+j, c]
//	dX[s,c] = sum of w[c,j] dp[t,c] over all t, j with t-K+1+j = s
//
// Source: the causal convolution of Mamba and Gated DeltaNet (Yang et al. 2024,
// arXiv 2412.06464, section 3.4), depthwise, without bias.

func specForward(x, w, y *engine.Tensor, tree *engine.Tree) {
	for t := range x.Rows {
		for c := range x.Cols {
			p := specConvolve(x, w, tree, t, c)
			y.F64[t*y.Stride+c] = p * sigmoid(p)
		}
	}
}

func specConvolve(x, w *engine.Tensor, tree *engine.Tree, t, c int) float64 {
	p := 0.0
	row := int32(t)
	for j := w.Cols - 1; j >= 0 && row >= 0; j-- {
		p += w.F64[c*w.Stride+j] * x.F64[int(row)*x.Stride+c]
		row = tree.Previous(row)
	}
	return p
}

// specBackward adds to dx and dw, either of which may be nil.
func specBackward(x, w, dy, dx, dw *engine.Tensor, tree *engine.Tree) {
	for t := range x.Rows {
		for c := range x.Cols {
			p := specConvolve(x, w, tree, t, c)
			s := sigmoid(p)
			dp := dy.F64[t*dy.Stride+c] * s * (1 + p*(1-s))
			row := int32(t)
			for j := w.Cols - 1; j >= 0 && row >= 0; j-- {
				if dx != nil {
					dx.F64[int(row)*dx.Stride+c] += w.F64[c*w.Stride+j] * dp
				}
				if dw != nil {
					dw.F64[c*dw.Stride+j] += dp * x.F64[int(row)*x.Stride+c]
				}
				row = tree.Previous(row)
			}
		}
	}
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
