package residual

import "caper/engine"

// The residual connection (He et al., "Deep residual learning", 2016, equation 1):
// s = x + y, so dx = ds and dy = ds.

func specForward(sum, x, y *engine.Tensor) {
	for r := range sum.Rows {
		for c := range sum.Cols {
			sum.Set(r, c, x.At(r, c)+y.At(r, c))
		}
	}
}

// specBackward adds to d, the gradient of one of the two; d may be nil.
func specBackward(d, dsum *engine.Tensor) {
	if d == nil {
		return
	}
	for r := range d.Rows {
		for c := range d.Cols {
			d.Set(r, c, d.At(r, c)+dsum.At(r, c))
		}
	}
}
