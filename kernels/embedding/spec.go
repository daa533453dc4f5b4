package embedding

import "caper/engine"

// A look-up: y_r = E_id(r), so dE_v = sum over the rows r with id(r) = v of dy_r.

func specForward(o *op) {
	for r, id := range o.ids {
		for c := range o.y.Cols {
			o.y.Set(r, c, o.table.At(int(id), c))
		}
	}
}

func specBackward(o *op, dtable, dy *engine.Tensor) {
	for r, id := range o.ids {
		for c := range dy.Cols {
			dtable.Set(int(id), c, dtable.At(int(id), c)+dy.At(r, c))
		}
	}
}
