package linear

import "caper/engine"

// With w stored [out, in] as checkpoints do:
//
//	y = x w^T
//	dx = dy w    dw = dy^T x

func specForward(y, x, w *engine.Tensor) {
	for i := range y.Rows {
		for j := range y.Cols {
			var sum float64
			for k := range x.Cols {
				sum += x.At(i, k) * w.At(j, k)
			}
			y.Set(i, j, sum)
		}
	}
}

// specBackward adds to dx and dw, each of which may be nil.
func specBackward(dx, dw, dy, x, w *engine.Tensor) {
	for i := range dy.Rows {
		for j := range dy.Cols {
			for k := range x.Cols {
				if dx != nil {
					dx.Set(i, k, dx.At(i, k)+dy.At(i, j)*w.At(j, k))
				}
				if dw != nil {
					dw.Set(j, k, dw.At(j, k)+dy.At(i, j)*x.At(i, k))
				}
			}
		}
	}
}
