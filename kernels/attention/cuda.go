package attention

import (
	_ "embed"
	"fmt"
	"math"

	"caper/cuda"
	"caper/engine"
)

//go:embed op.cu
var text string

var source = engine.NewKernelText("kernels/attention/op.cu", text)

// A family is a kernel by the columns that a head is computed as.
type family map[int]*engine.Kernel

func newFamily(name string) family {
	f := family{}
	for _, width := range []int{64, 128, 256} {
		f[width] = source.Kernel(fmt.Sprintf("attention_%s_%d", name, width))
	}
	return f
}

var (
	forward         = newFamily("forward")
	forwardHopper   = newFamily("forward_hopper")
	backwardRows    = source.Kernel("attention_backward_rows")
	backwardQueries = newFamily("backward_queries")
	backwardKeys    = newFamily("backward_keys")
)

// headWidth is the columns that a head of dim is computed as.
func headWidth(dim int) int {
	width := 64
	for width < dim {
		width *= 2
	}
	return width
}

// Dynamic shared memory in bytes.
func forwardShared(width int) int         { return 384 * width }
func hopperShared(width int) int          { return map[int]int{64: 1280, 128: 1280, 256: 768}[width] * width }
func backwardQueriesShared(width int) int { return 512*width + 8192 }
func backwardKeysShared(width int) int    { return 512*width + 16384 }

// checkCUDA refuses heads that do not begin at multiples of 16 bytes.
func (o Options) checkCUDA() {
	if o.Dim%8 != 0 || o.GateStride%8 != 0 || o.GateOffset%8 != 0 {
		panic(fmt.Sprintf("attention: on a GPU, heads and gates begin at multiples of 8 columns: %+v", o))
	}
}

func (o Options) group() int { return o.Heads / o.KVHeads }

// shape adds the parameters that say how heads lie, and the scale of scores, to base 2.
func (o Options) shape(a *engine.Args) {
	a.Int(o.Heads).Int(o.KVHeads).Int(o.Dim).Float(math.Log2E / math.Sqrt(float64(o.Dim)))
}

// gateAt returns the address of the first head's gate, or of its gradient.
func (o Options) gateAt(gate *engine.Tensor) cuda.Ptr {
	if gate == nil {
		return 0
	}
	return gate.Address() + cuda.Ptr(2*o.GateOffset)
}

// tables returns the tables of the operator's tree, made once a step.
func (o *op) tables(t *engine.Tape) *tiles {
	type key struct {
		tree  *engine.Tree
		group int
	}
	return engine.Once(t, key{o.tree, o.o.group()}, func(x *tiles) { x.build(o.tree, o.o.group()) })
}

// blocks is a launch of blocks for each key head and tile.
func (o Options) blocks(tiles, threads, shared int) cuda.Launch {
	return cuda.Launch{
		Grid: cuda.Dim{X: uint32(o.KVHeads), Y: uint32(tiles)}, Block: cuda.Dim{X: uint32(threads)}, Shared: cuda.Bytes(shared),
	}
}

func cudaForward(t *engine.Tape, o *op) {
	o.o.checkCUDA()
	if o.q.Rows == 0 {
		return
	}
	width, x := headWidth(o.o.Dim), o.tables(t)
	queries, a := x.queries, t.Args()
	kernel, launch := forward[width], o.o.blocks(len(x.queries)/4, 128, forwardShared(width))
	if t.GPU().Info().Major == 9 && width == o.o.Dim {
		k, v := t.GPU().TensorMap(o.k, tileLen, 64), t.GPU().TensorMap(o.v, tileLen, 64)
		a.TensorMap(&k).TensorMap(&v)
		queries = x.wide
		kernel, launch = forwardHopper[width], o.o.blocks(len(x.wide)/4, 384, hopperShared(width))
	}
	a.Tensor(o.q).Tensor(o.k).Tensor(o.v).Ptr(o.o.gateAt(o.gate)).Tensor(o.y).Tensor(o.lse).
		Stride(o.q).Stride(o.k).Stride(o.v).Stride(o.gate).Stride(o.y).Int(o.o.GateStride)
	o.o.shape(a)
	t.Launch(kernel, launch, a.Ptr(t.Ints(queries)).Ptr(t.Ints(x.keys)).Ptr(t.Ints(x.lists)))
}

func cudaBackward(t *engine.Tape, o *op, dy, dq, dk, dv, dgate *engine.Tensor) {
	n, x, width := o.q.Rows, o.tables(t), headWidth(o.o.Dim)
	if n == 0 {
		return
	}
	delta := t.Workspace(4 * n * o.o.Heads)
	da, daStride, stored := dy.Address(), dy.Stride, cuda.Ptr(0)
	if o.gate != nil {
		daStride = o.o.Heads * o.o.Dim
		da = t.Workspace(2 * n * daStride)
		stored = da
	}
	t.Launch(backwardRows, engine.Blocks((n*o.o.Heads+7)/8, 256), t.Args().
		Tensor(dy).Tensor(o.y).Ptr(o.o.gateAt(o.gate)).Ptr(stored).Ptr(o.o.gateAt(dgate)).Ptr(delta).
		Stride(dy).Stride(o.y).Stride(o.gate).Int64(daStride).Stride(dgate).Int(o.o.GateStride).
		Int(n).Int(o.o.Heads).Int(o.o.Dim).Accumulate(dgate))
	inputs := func() *engine.Args {
		return t.Args().Tensor(o.q).Tensor(o.k).Tensor(o.v).Ptr(da).Tensor(o.lse).Ptr(delta)
	}
	if dq != nil {
		a := inputs().Tensor(dq).Stride(o.q).Stride(o.k).Stride(o.v).Int64(daStride).Stride(dq)
		o.o.shape(a)
		t.Launch(backwardQueries[width], o.o.blocks(len(x.queries)/4, 256, backwardQueriesShared(width)),
			a.Ptr(t.Ints(x.queries)).Ptr(t.Ints(x.keys)).Ptr(t.Ints(x.lists)).Accumulate(dq))
	}
	if dk != nil || dv != nil {
		a := inputs().Tensor(dk).Tensor(dv).Stride(o.q).Stride(o.k).Stride(o.v).Int64(daStride).Stride(dk).Stride(dv)
		o.o.shape(a)
		t.Launch(backwardKeys[width], o.o.blocks((n+tileLen-1)/tileLen, 256, backwardKeysShared(width)),
			a.Ptr(t.Ints(x.ends)).Int(n).Accumulate(dk).Accumulate(dv))
	}
}
