package lowrank

import "caper/engine"

// With a [R, in], b [out, R] and a factor s (LoRA: Hu et al. 2021, arXiv 2106.09685):
//
//	u = s x a^T             y += u b^T
//	db = dy^T u             du = dy b
//	da = s du^T x           dx = s du a

func specForward(o *op) {
	for i := range o.x.Rows {
		for r := range o.a.Rows {
			var sum float64
			for k := range o.x.Cols {
				sum += o.x.At(i, k) * o.a.At(r, k)
			}
			o.u.Set(i, r, o.scale*sum)
		}
		for j := range o.y.Cols {
			sum := o.y.At(i, j)
			for r := range o.a.Rows {
				sum += o.u.At(i, r) * o.b.At(j, r)
			}
			o.y.Set(i, j, sum)
		}
	}
}

// specBackward adds to dx, da and db, each of which may be nil.
func specBackward(o *op, dx, da, db, dy *engine.Tensor) {
	for i := range o.x.Rows {
		for r := range o.a.Rows {
			var du float64
			for j := range dy.Cols {
				du += dy.At(i, j) * o.b.At(j, r)
				if db != nil {
					db.Set(j, r, db.At(j, r)+dy.At(i, j)*o.u.At(i, r))
				}
			}
			for k := range o.x.Cols {
				if da != nil {
					da.Set(r, k, da.At(r, k)+o.scale*du*o.x.At(i, k))
				}
				if dx != nil {
					dx.Set(i, k, dx.At(i, k)+o.scale*du*o.a.At(r, k))
				}
			}
		}
	}
}
