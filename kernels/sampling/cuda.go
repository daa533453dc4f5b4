package sampling

import (
	_ "embed"
	"unsafe"

	"caper/engine"
)

//go:embed op.cu
var text string

var (
	source      = engine.NewKernelText("kernels/sampling/op.cu", text)
	fromFloat32 = source.Kernel("sampling_float32")
	fromBF16    = source.Kernel("sampling_bf16")
)

// sharedBytes is what a block of the kernels shares: struct Shared of op.cu.
const sharedBytes = 32*8 + 32*4 + 2*2048*4

// drawFloats is the size of a Draw in float32, as which draws travel.
const drawFloats = int(unsafe.Sizeof(Draw{}) / 4)

// cudaRun waits for the answers: what comes next depends on them. Where the GPU has failed
// there are none.
func cudaRun(t *engine.Tape, o *op) {
	kernel := fromBF16
	if o.logits.IsFloat32() {
		kernel = fromFloat32
	}
	draws := unsafe.Slice((*float32)(unsafe.Pointer(&o.draws[0])), drawFloats*len(o.draws))
	answers := t.NewFloat32(len(o.draws), drawFloats)
	l := engine.Blocks(len(o.draws), 1024)
	l.Shared = sharedBytes
	t.Launch(kernel, l, t.Args().Tensor(o.logits).Stride(o.logits).Int(o.logits.Cols).Int(o.words).Ptr(t.Floats(draws)).Tensor(answers))
	answers.Read(draws)
	if engine.Wait(t.Device()) != nil {
		for i := range o.draws {
			o.draws[i].Token = -1
		}
	}
}
