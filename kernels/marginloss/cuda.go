package marginloss

import (
	_ "embed"
	"unsafe"

	"caper/cuda"
	"caper/engine"
)

//go:embed op.cu
var text string

var (
	source   = engine.NewKernelText("kernels/marginloss/op.cu", text)
	forward  = source.Kernel("marginloss_forward")
	backward = source.Kernel("marginloss_backward")
)

// pairsOn returns the pairs' copy on the GPU: four numbers of 32 bits each.
func (o *op) pairsOn(t *engine.Tape) cuda.Ptr {
	return t.Ints(unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(o.pairs))), 4*len(o.pairs)))
}

// options adds the loss's constants.
func (o *op) options(a *engine.Args) *engine.Args {
	weights, count := o.o.denominators(o.pairs)
	return a.Float(o.o.Offset).Float(o.o.Center / max(count, 1)).Float(weights)
}

func cudaForward(t *engine.Tape, o *op) {
	a := t.Args().Tensor(o.scores).Stride(o.scores).Ptr(o.pairsOn(t)).Int(len(o.pairs)).Tensor(o.loss)
	t.Launch(forward, engine.Blocks(1, 256), o.options(a))
}

func cudaBackward(t *engine.Tape, o *op, dscores, dloss *engine.Tensor) {
	a := t.Args().Tensor(o.scores).Stride(o.scores).Ptr(o.pairsOn(t)).Int(len(o.pairs)).
		Tensor(dloss).Tensor(dscores).Stride(dscores).Int(dscores.Rows)
	t.Launch(backward, engine.Blocks((dscores.Rows+127)/128, 128), o.options(a))
}
