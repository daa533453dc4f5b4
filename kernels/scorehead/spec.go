package scorehead

import "caper/engine"

// The head of a sequence classifier, without bias:
//
//	y_il = <h_row(i), w_l>
//	dh_row(i) = sum_l dy_il w_l    dw_l = sum_i dy_il h_row(i)

func specForward(o *op) {
	for i, r := range o.rows {
		for l := range o.w.Rows {
			var sum float64
			for c := range o.w.Cols {
				sum += o.hidden.At(int(r), c) * o.w.At(l, c)
			}
			o.y.Set(i, l, sum)
		}
	}
}

// specBackward adds to dhidden and dw, each of which may be nil.
func specBackward(o *op, dhidden, dw, dy *engine.Tensor) {
	for i, row := range o.rows {
		r := int(row)
		for l := range o.w.Rows {
			for c := range o.w.Cols {
				if dhidden != nil {
					dhidden.Set(r, c, dhidden.At(r, c)+dy.At(i, l)*o.w.At(l, c))
				}
				if dw != nil {
					dw.Set(l, c, dw.At(l, c)+dy.At(i, l)*o.hidden.At(r, c))
				}
			}
		}
	}
}
