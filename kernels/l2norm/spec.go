package l2norm

import (
	"math"

	"caper/engine"
)

// Unit length, as the gated delta rule wants of its keys and queries (Yang et al.,
// "Gated delta networks", 2024, section 3.3). For each head, with n = (sum x^2 + eps)^-1/2:
//
//	y = n x
//	dx = n (dy - y <y, dy>)
//
// Note the sum of squares, where RMSNorm takes their mean.

func specForward(o *op) {
	for i := range o.x.Rows {
		for h := range o.heads {
			n := inverseNorm(o, i, h)
			for c := h * o.dim; c < (h+1)*o.dim; c++ {
				o.y.Set(i, c, n*o.x.At(i, c))
			}
		}
	}
}

func specBackward(o *op, dx, dy *engine.Tensor) {
	for i := range o.x.Rows {
		for h := range o.heads {
			n := inverseNorm(o, i, h)
			var along float64
			for c := h * o.dim; c < (h+1)*o.dim; c++ {
				along += n * o.x.At(i, c) * dy.At(i, c)
			}
			for c := h * o.dim; c < (h+1)*o.dim; c++ {
				dx.Set(i, c, dx.At(i, c)+n*(dy.At(i, c)-n*o.x.At(i, c)*along))
			}
		}
	}
}

func inverseNorm(o *op, row, head int) float64 {
	var squares float64
	for c := head * o.dim; c < (head+1)*o.dim; c++ {
		squares += o.x.At(row, c) * o.x.At(row, c)
	}
	return 1 / math.Sqrt(squares+o.eps)
}
