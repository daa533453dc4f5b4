package policyloss

import (
	_ "embed"
	"unsafe"

	"caper/cuda"
	"caper/engine"
)

//go:embed op.cu
var text string

var (
	source   = engine.NewKernelText("kernels/policyloss/op.cu", text)
	forward  = source.Kernel("policyloss_forward")
	backward = source.Kernel("policyloss_backward")
)

// tokensOn returns the tokens' copy on the GPU: four numbers of 32 bits each.
func (o *op) tokensOn(t *engine.Tape) cuda.Ptr {
	return t.Ints(unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(o.tokens))), 4*len(o.tokens)))
}

// options adds the loss's constants.
func (o *op) options(a *engine.Args) *engine.Args {
	return a.Float(o.o.Low).Float(o.o.High).Float(o.o.DualClip).Float(o.o.KL)
}

func cudaForward(t *engine.Tape, o *op) {
	a := t.Args().Tensor(o.logProbs).Stride(o.logProbs).Ptr(o.tokensOn(t)).Int(len(o.tokens)).Tensor(o.loss)
	t.Launch(forward, engine.Blocks(1, 256), o.options(a))
}

func cudaBackward(t *engine.Tape, o *op, d, dloss *engine.Tensor) {
	a := t.Args().Tensor(o.logProbs).Stride(o.logProbs).Ptr(o.tokensOn(t)).Int(len(o.tokens)).
		Tensor(dloss).Tensor(d).Stride(d)
	t.Launch(backward, engine.Blocks((d.Rows+127)/128, 128), o.options(a))
}
