package linear

import "caper/engine"

func cudaBackward(t *engine.Tape, o *op, dx, dw, dy *engine.Tensor) {
	if dx != nil {
		t.GPU().MatMul(dx, plain(dy), plain(o.w), !dx.Fresh())
	}
	if dw != nil {
		t.GPU().MatMul(dw, transposed(dy), plain(o.x), true)
	}
}
