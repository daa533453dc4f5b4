package engine

import (
	"fmt"
	"math/bits"

	"caper/cuda"
)

// KernelText is an operator's op.cu, in the language of package cuda/dialect.
type KernelText struct{ source cuda.Source }

// Kernel is one kernel of a text.
type Kernel struct {
	text *KernelText
	name string
}

var kernelTexts []*KernelText

// NewKernelText makes a text known to all GPUs. It is called once an operator, as its
// package is initialised. name is the file's in the repository, for messages.
func NewKernelText(name, text string) *KernelText {
	k := &KernelText{cuda.Source{Name: name, Text: text}}
	kernelTexts = append(kernelTexts, k)
	return k
}

// Kernel names a kernel of the text.
func (k *KernelText) Kernel(name string) *Kernel { return &Kernel{k, name} }

// KernelSources returns the texts of all operators in the program.
func KernelSources() []cuda.Source {
	var sources []cuda.Source
	for _, k := range kernelTexts {
		sources = append(sources, k.source)
	}
	return sources
}

// Args are the parameters of a launch, in the kernel's order. To add one takes no memory.
type Args struct{ list cuda.Args }

// Tensor adds the address of x's first element: a pointer, null for a nil or an empty tensor.
func (a *Args) Tensor(x *Tensor) *Args { return a.Ptr(x.Address()) }

// Stride adds the elements from one row of x to the next: an i64, 0 for a nil tensor.
func (a *Args) Stride(x *Tensor) *Args { return a.Int64(x.Pitch()) }

// Accumulate adds whether to add to the gradient g instead of storing it: an int, 0 where
// g is fresh (Tape.Accumulate) or nil.
func (a *Args) Accumulate(g *Tensor) *Args { return a.Bool(g != nil && !g.fresh) }

// Ptr adds an address on the GPU.
func (a *Args) Ptr(p cuda.Ptr) *Args { a.list.Ptr(p); return a }

// Int adds an int. It panics where v is none.
func (a *Args) Int(v int) *Args { a.list.Int32(v); return a }

// Bool adds an int that is 0 or 1.
func (a *Args) Bool(v bool) *Args {
	if v {
		return a.Int(1)
	}
	return a.Int(0)
}

// Int64 adds an i64.
func (a *Args) Int64(v int) *Args { a.list.Int64(int64(v)); return a }

// Uint32 adds a u32.
func (a *Args) Uint32(v uint32) *Args { a.list.Uint32(v); return a }

// Uint64 adds a u64.
func (a *Args) Uint64(v uint64) *Args { a.list.Uint64(v); return a }

// Float adds a float.
func (a *Args) Float(v float64) *Args { a.list.Float32(float32(v)); return a }

// TensorMap adds a tensor map.
func (a *Args) TensorMap(m *cuda.TensorMap) *Args { a.list.TensorMap(m); return a }

// Args returns the GPU's parameters, empty: they serve one launch after the other.
func (g *GPU) Args() *Args {
	g.args.list.Reset()
	return &g.args
}

// Blocks is a launch of a row of blocks, each a row of threads.
func Blocks(blocks, threads int) cuda.Launch {
	return cuda.Launch{Grid: cuda.Dim{X: uint32(blocks)}, Block: cuda.Dim{X: uint32(threads)}}
}

// ColumnBlocks is a launch over a matrix: blocks along X, for rows or groups of them, and
// along Y for runs of its columns, each thread having `each`. A block has up to `most` threads.
func ColumnBlocks(blocks, cols, each, most int) cuda.Launch {
	threads := min((cols+32*each-1)/(32*each)*32, most)
	l := Blocks(blocks, threads)
	l.Grid.Y = uint32((cols + each*threads - 1) / (each * threads))
	return l
}

// Lanes returns how many lanes of a warp share work that n can do: a power of two. It panics
// where n is more than a warp has.
func Lanes(n int) int {
	if n < 1 || n > 32 {
		panic(fmt.Sprintf("engine: work for %d lanes of a warp, which has 32: on a GPU, heads have at most 256 columns", n))
	}
	return 1 << bits.Len(uint(n-1))
}

// Launch runs a kernel. A grid without blocks is no work. The kernel is compiled, or found
// compiled, at its first launch.
func (g *GPU) Launch(k *Kernel, l cuda.Launch, a *Args) {
	if g.idle() || l.Grid.X == 0 {
		return
	}
	f := g.functions[k]
	if f == nil {
		var err error
		if f, err = g.function(k); err != nil {
			g.fail(fmt.Errorf("kernel %s: %w", k.name, err))
			return
		}
		g.functions[k] = f
	}
	g.ask(work{kind: runKernel, function: f, launch: l}, &a.list)
}

// function loads a kernel, and the whole text at the first of its kernels.
func (g *GPU) function(k *Kernel) (*cuda.Function, error) {
	module := g.modules[k.text]
	if module == nil {
		cubin, err := g.compiler.Compile(k.text.source, g.device.Arch())
		if err != nil {
			return nil, err
		}
		if module, err = g.device.Load(cubin); err != nil {
			return nil, err
		}
		g.modules[k.text] = module
	}
	return module.Function(k.name)
}

// CUDA reports whether operators must launch their kernels. An operator that never asks has
// none, which is an error on a GPU.
func (t *Tape) CUDA() bool {
	t.asked = true
	return t.gpu != nil
}

// GPU returns the tape's GPU, nil where it is on another device.
func (t *Tape) GPU() *GPU { return t.gpu }

// Launch runs a kernel on the tape's GPU: see GPU.Launch.
func (t *Tape) Launch(k *Kernel, l cuda.Launch, a *Args) { t.gpu.Launch(k, l, a) }

// Args returns the parameters for the next launch, empty.
func (t *Tape) Args() *Args { return t.gpu.Args() }

// Workspace is Scratch on a GPU: bytes of memory at a multiple of 256, with undefined
// content, valid until the operator's Forward or Backward returns.
func (t *Tape) Workspace(bytes int) cuda.Ptr { return t.gpuMemory(&t.scratch, bytes) }

// gpuMemory takes memory from an arena.
func (t *Tape) gpuMemory(a *arena, bytes int) cuda.Ptr {
	if bytes == 0 {
		return 0
	}
	p := a.gpuBytes(t.gpu, bytes)
	if t.Poison {
		t.gpu.fill(p, 0xff, bytes) // NaN, in bf16 and in float32
	}
	return p
}

// refuse fails the GPU if op, which did not ask for CUDA, had something to do.
func (t *Tape) refuse(op Op, backward bool) {
	c := op.Cost()
	rows := 0
	for _, x := range c.Writes.present() {
		rows += x.Rows
	}
	if len(c.Writes) > 0 && rows == 0 || backward && (Wanted(c.Reads.present()...) == 0 || len(t.gradients(c.Writes)) == 0) {
		return
	}
	phase := Forward
	if backward {
		phase = Backward
	}
	t.gpu.fail(fmt.Errorf("operator %s has no CUDA kernel for its %s pass: use --device cpu", c.Operator, phase))
}
