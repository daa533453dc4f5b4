package gatednorm

import (
	"math"

	"caper/engine"
)

// The output norm of a gated delta net (Yang et al., "Gated delta networks", 2024,
// figure 1). For each head, with r = (mean x^2 + eps)^-1/2, n = r x and s the logistic
// function, silu(z) = z s(z):
//
//	y = n w silu(z)
//	u = dy silu(z)    dx = r (u w - n mean(u w n))    dw = sum over rows and heads of u n
//	dz = dy n w s(z) (1 + z (1 - s(z)))

func specForward(o *op) {
	for i := range o.x.Rows {
		for at := 0; at < o.x.Cols; at += o.dim {
			r := inverseRMS(o, i, at)
			for c := range o.dim {
				o.y.Set(i, at+c, o.x.At(i, at+c)*r*o.w.At(0, c)*silu(o.z.At(i, at+c)))
			}
		}
	}
}

// specBackward adds to dx, dz and dw, each of which may be nil.
func specBackward(o *op, dx, dz, dw, dy *engine.Tensor) {
	for i := range o.x.Rows {
		for at := 0; at < o.x.Cols; at += o.dim {
			specBackwardHead(o, dx, dz, dw, dy, i, at)
		}
	}
}

func specBackwardHead(o *op, dx, dz, dw, dy *engine.Tensor, i, at int) {
	r := inverseRMS(o, i, at)
	var mean float64
	for c := range o.dim {
		u := dy.At(i, at+c) * silu(o.z.At(i, at+c))
		mean += u * o.w.At(0, c) * o.x.At(i, at+c) * r / float64(o.dim)
	}
	for c := range o.dim {
		d, n, z, w := dy.At(i, at+c), o.x.At(i, at+c)*r, o.z.At(i, at+c), o.w.At(0, c)
		u := d * silu(z)
		if dx != nil {
			dx.Set(i, at+c, dx.At(i, at+c)+r*(u*w-n*mean))
		}
		if dz != nil {
			s := logistic(z)
			dz.Set(i, at+c, dz.At(i, at+c)+d*n*w*s*(1+z*(1-s)))
		}
		if dw != nil {
			dw.Set(0, c, dw.At(0, c)+u*n)
		}
	}
}

func inverseRMS(o *op, row, at int) float64 {
	var squares float64
	for c := range o.dim {
		squares += o.x.At(row, at+c) * o.x.At(row, at+c)
	}
	return 1 / math.Sqrt(squares/float64(o.dim)+o.eps)
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
func silu(x float64) float64     { return x * logistic(x) }
