package causalconv

import (
	_ "embed"
	"fmt"

	"caper/cuda"
	"caper/engine"
)

//go:embed op.cu
var text string

var (
	source         = engine.NewKernelText("kernels/causalconv/op.cu", text)
	forward        = source.Kernel("causalconv_forward")
	backward       = source.Kernel("causalconv_backward")
	weightGradient = source.Kernel("causalconv_weight_gradient")
	decode         = source.Kernel("causalconv_decode")
)

// As in op.cu: the most taps, and the rows of a block.
const (
	cudaTaps     = 4
	forwardRows  = 32
	backwardRows = 64
)

// grid is a launch over so many blocks of rows, or steps, and runs of channels.
func grid(blocks, channels int) cuda.Launch { return engine.ColumnBlocks(blocks, channels, 4, 128) }

func checkTaps(taps int) {
	if taps > cudaTaps {
		panic(fmt.Sprintf("causalconv: %d taps: on a GPU at most %d", taps, cudaTaps))
	}
}

func cudaForward(t *engine.Tape, o *op) {
	checkTaps(o.w.Cols)
	t.Launch(forward, grid((o.x.Rows+forwardRows-1)/forwardRows, o.x.Cols), t.Args().
		Tensor(o.x).Tensor(o.w).Ptr(t.Ints(o.tree.Before)).Tensor(o.y).
		Int(o.x.Rows).Int(o.x.Cols).Int(o.w.Cols).Stride(o.x).Stride(o.w).Stride(o.y))
}

func cudaBackward(t *engine.Tape, o *op, dy, dx, dw *engine.Tensor) {
	if dx == nil && dw == nil {
		return
	}
	blocks, channels := (o.x.Rows+backwardRows-1)/backwardRows, o.x.Cols
	var partial cuda.Ptr
	if dw != nil {
		partial = t.Workspace(4 * blocks * cudaTaps * channels)
	}
	t.Launch(backward, grid(blocks, channels), t.Args().
		Tensor(o.x).Tensor(o.w).Tensor(dy).Tensor(dx).Ptr(partial).Ptr(t.Ints(o.tree.Before)).Ptr(t.Ints(o.tree.Sibling)).
		Int(o.x.Rows).Int(channels).Int(o.w.Cols).Stride(o.x).Stride(o.w).Stride(dy).Stride(dx).Accumulate(dx))
	if dw != nil {
		l := engine.Blocks((channels+31)/32, 256)
		l.Grid.Y = uint32(o.w.Cols)
		t.Launch(weightGradient, l, t.Args().Ptr(partial).Tensor(dw).Int(blocks).Int(channels).Int(o.w.Cols).Stride(dw))
	}
}

func cudaDecode(t *engine.Tape, o *decodeOp) {
	checkTaps(o.c.taps)
	s := o.s
	t.Launch(decode, grid(len(s.Start), o.c.channels), t.Args().
		Tensor(o.x).Tensor(o.w).Tensor(o.c.windows).Ptr(t.Ints(s.Start)).Ptr(t.Ints(s.Len)).Ptr(t.Ints(s.From)).Ptr(t.Ints(s.To)).
		Tensor(o.y).Int(o.c.channels).Int(o.c.taps).Stride(o.x).Stride(o.w).Stride(o.c.windows).Stride(o.y))
}
