package rmsnorm

import (
	"math"

	"caper/engine"
)

// RMSNorm (Zhang and Sennrich, "Root mean square layer normalization", 2019), with
// the gain g = w, or g = 1 + w as Qwen3.5 stores it:
//
//	r = (mean x^2 + eps)^-1/2    n = r x    y = n g
//
//	dx = r (dy g - n mean(dy g n))
//	dw = sum over rows of dy n

func specForward(o *op) {
	for i := range o.x.Rows {
		r := inverseRMS(o.x, i, o.eps)
		for c := range o.x.Cols {
			o.y.Set(i, c, o.x.At(i, c)*r*(o.offset+o.w.At(0, c)))
		}
	}
}

// specBackward adds to dx and dw, each of which may be nil.
func specBackward(o *op, dx, dw, dy *engine.Tensor) {
	for i := range o.x.Rows {
		r := inverseRMS(o.x, i, o.eps)
		var mean float64
		for c := range o.x.Cols {
			mean += dy.At(i, c) * (o.offset + o.w.At(0, c)) * o.x.At(i, c) * r / float64(o.x.Cols)
		}
		for c := range o.x.Cols {
			d, n := dy.At(i, c), o.x.At(i, c)*r
			if dx != nil {
				dx.Set(i, c, dx.At(i, c)+r*(d*(o.offset+o.w.At(0, c))-n*mean))
			}
			if dw != nil {
				dw.Set(0, c, dw.At(0, c)+d*n)
			}
		}
	}
}

func inverseRMS(x *engine.Tensor, row int, eps float64) float64 {
	var squares float64
	for c := range x.Cols {
		squares += x.At(row, c) * x.At(row, c)
	}
	return 1 / math.Sqrt(squares/float64(x.Cols)+eps)
}
