package lowrank

import (
	_ "embed"

	"caper/engine"
)

//go:embed op.cu
var text string

var cudaScale = engine.NewKernelText("kernels/lowrank/op.cu", text).Kernel("lowrank_scale")

// On a GPU the products are cuBLASLt's. Only u and du, which have R columns, are scaled here.

func cudaForward(t *engine.Tape, o *op) {
	t.GPU().MatMul(o.u, plain(o.x), transposed(o.a), false)
	scaleOn(t, o.u, o.scale)
	t.GPU().MatMul(o.y, plain(o.u), transposed(o.b), true)
}

func cudaBackward(t *engine.Tape, o *op, dx, da, db, dy *engine.Tensor) {
	if db != nil {
		t.GPU().MatMul(db, transposed(dy), plain(o.u), true)
	}
	if dx == nil && da == nil {
		return
	}
	du := gradientOfU(t, o)
	t.GPU().MatMul(du, plain(dy), plain(o.b), false)
	scaleOn(t, du, o.scale)
	if da != nil {
		t.GPU().MatMul(da, transposed(du), plain(o.x), true)
	}
	if dx != nil {
		t.GPU().MatMul(dx, plain(du), plain(o.a), true)
	}
}

// scaleOn multiplies a matrix on the tape's GPU.
func scaleOn(t *engine.Tape, x *engine.Tensor, factor float64) {
	t.Launch(cudaScale, engine.ColumnBlocks(x.Rows, x.Cols, 8, 256), t.Args().Tensor(x).Int(x.Cols).Stride(x).Float(factor))
}
