package rotary

import (
	"math"

	"caper/engine"
)

// Per head, RMSNorm as in kernels/rmsnorm, then the rotary embedding (Su et al.,
// "RoFormer", 2021, section 3.4.2) of its first R elements in the half-split pairing
// (j, j + R/2), with a = position * theta^(-2j/R):
//
//	r = (mean x^2 + eps)^-1/2    n = r x    u = n g    g = w or 1 + w
//	y_j = u_j cos a - u_j+R/2 sin a
//	y_j+R/2 = u_j+R/2 cos a + u_j sin a
//
// Backwards du is dy rotated by -a; then
//
//	dx = r (du g - n mean(du g n))    dw = sum over rows and heads of du n

func specForward(o *op) {
	for i := range o.x.Rows {
		for h := range o.Heads {
			r := inverseRMS(o, i, h)
			u := make([]float64, o.Dim)
			for c := range u {
				u[c] = o.x.At(i, h*o.HeadStride+c) * r * (o.offset() + o.w.At(0, c))
			}
			rotate(u, o, i, 1)
			for c := range u {
				o.y.Set(i, h*o.Dim+c, u[c])
			}
		}
	}
}

// specBackward adds to dx and dw, each of which may be nil.
func specBackward(o *op, dx, dw, dy *engine.Tensor) {
	for i := range o.x.Rows {
		for h := range o.Heads {
			du := make([]float64, o.Dim)
			for c := range du {
				du[c] = dy.At(i, h*o.Dim+c)
			}
			rotate(du, o, i, -1)
			specBackwardNorm(o, dx, dw, du, i, h)
		}
	}
}

func specBackwardNorm(o *op, dx, dw *engine.Tensor, du []float64, i, h int) {
	r, at := inverseRMS(o, i, h), h*o.HeadStride
	var mean float64
	for c := range du {
		mean += du[c] * (o.offset() + o.w.At(0, c)) * o.x.At(i, at+c) * r / float64(o.Dim)
	}
	for c := range du {
		n := o.x.At(i, at+c) * r
		if dx != nil {
			dx.Set(i, at+c, dx.At(i, at+c)+r*(du[c]*(o.offset()+o.w.At(0, c))-n*mean))
		}
		if dw != nil {
			dw.Set(0, c, dw.At(0, c)+du[c]*n)
		}
	}
}

// rotate turns the pairs of u by sign times their angles at row i.
func rotate(u []float64, o *op, i int, sign float64) {
	half := o.RotaryDims / 2
	for j := range half {
		sin, cos := math.Sincos(sign * angle(int(o.positions[i]), j, o.RotaryDims, o.Theta))
		u[j], u[j+half] = u[j]*cos-u[j+half]*sin, u[j+half]*cos+u[j]*sin
	}
}

func inverseRMS(o *op, row, head int) float64 {
	var squares float64
	for c := head * o.HeadStride; c < head*o.HeadStride+o.Dim; c++ {
		squares += o.x.At(row, c) * o.x.At(row, c)
	}
	return 1 / math.Sqrt(squares/float64(o.Dim)+o.Eps)
}
