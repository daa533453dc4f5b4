package embedding

import (
	_ "embed"
	"fmt"

	"caper/engine"
)

//go:embed op.cu
var text string

var (
	source   = engine.NewKernelText("kernels/embedding/op.cu", text)
	forward  = source.Kernel("embedding_forward")
	order    = source.Kernel("embedding_order")
	backward = source.Kernel("embedding_backward")
)

func cudaForward(t *engine.Tape, o *op) {
	t.Launch(forward, engine.ColumnBlocks(len(o.ids), o.y.Cols, 8, 256), t.Args().
		Tensor(o.table).Ptr(t.Ints(o.ids)).Tensor(o.y).Int(o.y.Cols).Stride(o.table).Stride(o.y))
}

// cudaBackward sorts rows by their ids and has one block add up those of one id.
func cudaBackward(t *engine.Tape, o *op, dtable, dy *engine.Tensor) {
	if !dtable.IsFloat32() {
		panic(fmt.Sprintf("embedding: on a GPU the table %s must be a parameter to have a gradient", o.table))
	}
	n := len(o.ids)
	ids, sorted, uses := t.Ints(o.ids), t.Workspace(4*n), t.Workspace(4*n)
	t.Launch(order, engine.Blocks((n+7)/8, 256), t.Args().Ptr(ids).Ptr(sorted).Ptr(uses).Int(n))
	t.Launch(backward, engine.ColumnBlocks(n, dy.Cols, 8, 128), t.Args().
		Tensor(dy).Ptr(ids).Ptr(sorted).Ptr(uses).Tensor(dtable).Int(dy.Cols).Stride(dy).Stride(dtable))
}
