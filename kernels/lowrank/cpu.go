package lowrank

import "caper/engine"

// On the CPU the products are the engine's. Only u and du, which have R columns, are
// scaled here.

func cpuForward(t *engine.Tape, o *op) {
	engine.MatMul(t.Device(), o.u, plain(o.x), transposed(o.a), false)
	scale(o.u, o.scale)
	engine.MatMul(t.Device(), o.y, plain(o.u), transposed(o.b), true)
}

func cpuBackward(t *engine.Tape, o *op, dx, da, db, dy *engine.Tensor) {
	if db != nil {
		engine.MatMul(t.Device(), db, transposed(dy), plain(o.u), true)
	}
	if dx == nil && da == nil {
		return
	}
	du := gradientOfU(t, o)
	engine.MatMul(t.Device(), du, plain(dy), plain(o.b), false)
	scale(du, o.scale)
	if da != nil {
		engine.MatMul(t.Device(), da, transposed(du), plain(o.x), true)
	}
	if dx != nil {
		engine.MatMul(t.Device(), dx, plain(du), plain(o.a), true)
	}
}

func gradientOfU(t *engine.Tape, o *op) *engine.Tensor { return t.New(o.x.Rows, o.a.Rows) }

// scale multiplies a contiguous matrix.
func scale(x *engine.Tensor, factor float64) {
	for i := range x.F32 {
		x.F32[i] *= float32(factor)
	}
}

func plain(x *engine.Tensor) engine.Operand { return engine.Operand{Tensor: x} }

func transposed(x *engine.Tensor) engine.Operand {
	return engine.Operand{Tensor: x, Transposed: true}
}
