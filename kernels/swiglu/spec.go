package swiglu

import (
	"math"

	"caper/engine"
)

// With m = silu(g) u, silu(x) = x s(x) and s the logistic function (Shazeer, "GLU
// variants improve transformer", 2020, equation 6):
//
//	du = dm silu(g)
//	dg = dm u s(g) (1 + g (1 - s(g)))

func specForward(y, gate, up *engine.Tensor) {
	for r := range y.Rows {
		for c := range y.Cols {
			y.Set(r, c, silu(gate.At(r, c))*up.At(r, c))
		}
	}
}

// specBackward adds to dgate and dup, each of which may be nil.
func specBackward(dgate, dup, dy, gate, up *engine.Tensor) {
	for r := range dy.Rows {
		for c := range dy.Cols {
			d, g, u := dy.At(r, c), gate.At(r, c), up.At(r, c)
			if dup != nil {
				dup.Set(r, c, dup.At(r, c)+d*silu(g))
			}
			if dgate != nil {
				s := logistic(g)
				dgate.Set(r, c, dgate.At(r, c)+d*u*s*(1+g*(1-s)))
			}
		}
	}
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
func silu(x float64) float64     { return x * logistic(x) }
