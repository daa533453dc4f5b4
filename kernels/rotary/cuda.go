package rotary

import (
	_ "embed"

	"caper/cuda"
	"caper/engine"
)

//go:embed op.cu
var text string

var (
	source         = engine.NewKernelText("kernels/rotary/op.cu", text)
	forward        = source.Kernel("rotary_forward")
	backward       = source.Kernel("rotary_backward")
	weightGradient = source.Kernel("rotary_weight_gradient")
)

// mostBlocks is how many blocks sum up the weight's gradient: what fits on a large card at
// once, so that their parts stay small.
const mostBlocks = 528

// width is how many lanes share a head: those with pairs, and those with what does not turn.
func (o *op) width() int { return engine.Lanes((o.RotaryDims/2+3)/4 + (o.Dim-o.RotaryDims+7)/8) }

func (o *op) blocks() int { return (o.x.Rows*o.Heads*o.width() + 255) / 256 }

// turns are the cosines and sines of the positions of a batch, which all layers share.
type turns struct{ angles []float32 }

// turnsOf names them: the rotation, and the slice of positions.
type turnsOf struct {
	kind
	first *int32
	rows  int
}

func (o *op) turns(t *engine.Tape) cuda.Ptr {
	if o.RotaryDims == 0 || len(o.positions) == 0 {
		return 0
	}
	of := turnsOf{kind{o.RotaryDims, o.Theta}, &o.positions[0], len(o.positions)}
	batch := engine.Once(t, of, func(b *turns) { b.angles = gather(b.angles[:0], o.RotaryDims, o.Theta, o.positions) })
	return t.Floats(batch.angles)
}

// gather appends the angles of positions to dst, a row each.
func gather(dst []float32, dims int, theta float64, positions []int32) []float32 {
	all := table(dims, theta, positions)
	for _, p := range positions {
		dst = append(dst, all[int(p)*dims:(int(p)+1)*dims]...)
	}
	return dst
}

// shape adds what both directions are told of the heads.
func (o *op) shape(a *engine.Args) *engine.Args {
	return a.Int(o.x.Rows).Int(o.Heads).Int(o.Dim).Int(o.HeadStride).Int(o.RotaryDims).Int(o.width())
}

func cudaForward(t *engine.Tape, o *op) {
	a := t.Args().Tensor(o.x).Tensor(o.w).Ptr(o.turns(t)).Tensor(o.y)
	t.Launch(forward, engine.Blocks(o.blocks(), 256), o.shape(a).Stride(o.x).Stride(o.y).Float(o.Eps).Float(o.offset()))
}

func cudaBackward(t *engine.Tape, o *op, dx, dw, dy *engine.Tensor) {
	blocks := min(o.blocks(), mostBlocks)
	var partial cuda.Ptr
	if dw != nil {
		partial = t.Workspace(4 * blocks * o.Dim)
	}
	a := t.Args().Tensor(o.x).Tensor(o.w).Ptr(o.turns(t)).Tensor(dy).Tensor(dx).Ptr(partial)
	t.Launch(backward, engine.Blocks(blocks, 256),
		o.shape(a).Stride(o.x).Stride(dy).Stride(dx).Float(o.Eps).Float(o.offset()).Accumulate(dx))
	if dw != nil {
		t.Launch(weightGradient, engine.Blocks((o.Dim+31)/32, 256), t.Args().Ptr(partial).Tensor(dw).Int(blocks).Int(o.Dim))
	}
}
