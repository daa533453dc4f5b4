package engine

import (
	"errors"
	"fmt"
	"unsafe"

	"caper/cuda"
)

// GPU is an NVIDIA GPU as a device. Activations and weights are bf16, and what needs more
// (NewFloat32) is float32; products sum in float32. Work runs in one stream, in order and
// after the call that asked for it has returned. The first thing that goes wrong is kept,
// further work is left out, and Wait returns it.
type GPU struct {
	device    *cuda.Device // nil on CUDAShapes: all work is left out
	stream    *cuda.Stream
	blas      *cuda.BLAS
	compiler  *cuda.Compiler
	modules   map[*KernelText]*cuda.Module
	functions map[*Kernel]*cuda.Function
	args      Args
	replay    replay
	memory    []cuda.Ptr // what Close frees
	err       error

	fetches  []fetched   // under way,
	arrivals stagingHalf // and the memory they go to
}

// productWorkspace is the memory that cuBLASLt's best kernels want on Hopper.
const productWorkspace = 32 << 20

// CUDA makes a GPU ready, by its number among those that caper doctor lists. Kernels are
// compiled, or found compiled, when they are first launched.
func CUDA(ordinal int) (*GPU, error) {
	device, err := cuda.Open(ordinal)
	if err != nil {
		return nil, err
	}
	g := &GPU{device: device, compiler: cuda.NewCompiler(), modules: map[*KernelText]*cuda.Module{}, functions: map[*Kernel]*cuda.Function{}}
	if g.stream, err = device.NewStream(cuda.NormalPriority); err == nil {
		g.blas, err = g.stream.NewBLAS(productWorkspace)
	}
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// CUDAShapes returns a device that is to CUDA what Shapes is to CPU: operators run the code
// that they have for a GPU, no work is done, and Tape.Demand tells what memory it would take.
func CUDAShapes() Device { return &GPU{} }

// GPUOf returns the GPU that dev is, or nil: for work outside a tape, such as the
// optimiser's.
func GPUOf(dev Device) *GPU {
	if o, ok := dev.(observed); ok {
		return GPUOf(o.Device)
	}
	g, _ := dev.(*GPU)
	return g
}

// Wait waits until all work on dev is done and returns the first thing that went wrong
// with it. On devices other than a GPU work is done as it is asked for.
func Wait(dev Device) error {
	if g := GPUOf(dev); g != nil {
		return g.wait()
	}
	return nil
}

func (g *GPU) wait() error {
	if !g.idle() {
		g.submit()
		g.fail(g.stream.Synchronize())
		g.arrive()
	}
	return g.err
}

// fail keeps the first error.
func (g *GPU) fail(err error) {
	if g.err == nil {
		g.err = err
	}
}

// idle reports that work is left out.
func (g *GPU) idle() bool { return g.device == nil || g.err != nil }

// Name is the GPU's: "cuda NVIDIA H200 sm_90a".
func (g *GPU) Name() string {
	if g.device == nil {
		return "cuda shapes"
	}
	return fmt.Sprintf("cuda %s %s", g.device.Info.Name, g.device.Arch())
}

// Info describes the GPU.
func (g *GPU) Info() cuda.Info {
	if g.device == nil {
		return cuda.Info{}
	}
	return g.device.Info
}

// FreeMemory returns how much of the GPU's memory nobody uses.
func (g *GPU) FreeMemory() (cuda.Bytes, error) {
	free, _, err := g.device.Memory()
	return free, err
}

func (*GPU) reference() bool         { return false }
func (*GPU) runtime() unsafe.Pointer { return nil }

// tensor returns a tensor of zeros that lives until Close.
func (g *GPU) tensor(rows, cols int, element cuda.Element) *Tensor {
	return g.lasting(&Tensor{Rows: rows, Cols: cols, Stride: stride(cols, element), gpu: g, element: element})
}

// float32Like returns zeros in float32 with the shape and stride of x, so that both may be
// walked as flat arrays: what lies between rows is 0 in both.
func (g *GPU) float32Like(x *Tensor) *Tensor {
	return g.lasting(&Tensor{Rows: x.Rows, Cols: x.Cols, Stride: x.Stride, gpu: g, element: cuda.Float32})
}

func (g *GPU) lasting(x *Tensor) *Tensor {
	x.lasting = true
	x.at = g.alloc(x.storage())
	g.fill(x.at, 0, x.storage())
	return x
}

// stride is how far apart rows are: bf16 rows begin at multiples of 16 bytes, float32 rows
// touch.
func stride(cols int, element cuda.Element) int {
	if element == cuda.Float32 {
		return cols
	}
	return (cols + 7) / 8 * 8
}

// storage is the bytes of a whole tensor's rows, with what lies between them.
func (x *Tensor) storage() int { return x.Rows * x.Stride * x.element.Size() }

// shapesAt is the address of all memory of CUDAShapes: operators tell it from nil.
const shapesAt cuda.Ptr = 1 << 20

// alloc takes memory that lives until Close; 0 where there is none.
func (g *GPU) alloc(bytes int) cuda.Ptr {
	if g.device == nil {
		return shapesAt
	}
	if g.err != nil || bytes == 0 {
		return 0
	}
	p, err := g.device.Alloc(cuda.Bytes(bytes))
	if err != nil {
		g.fail(fmt.Errorf("%w; choose a smaller micro-batch (train.micro_batch_tokens) or more checkpointing (train.checkpointing)", err))
		return 0
	}
	g.memory = append(g.memory, p)
	return p
}

// free gives back what alloc took.
func (g *GPU) free(p cuda.Ptr) {
	for i, q := range g.memory {
		if p == q {
			g.memory = append(g.memory[:i], g.memory[i+1:]...)
			g.submit()
			g.fail(g.device.Free(p))
			return
		}
	}
}

// fill sets bytes of memory.
func (g *GPU) fill(at cuda.Ptr, value byte, bytes int) {
	if !g.idle() && bytes > 0 {
		g.ask(work{kind: runFill, at: [3]cuda.Ptr{at}, bytes: bytes, value: value}, nil)
	}
}

// copy copies memory within the GPU.
func (g *GPU) copy(to, from cuda.Ptr, bytes int) {
	if !g.idle() && bytes > 0 {
		g.ask(work{kind: runCopy, at: [3]cuda.Ptr{to, from}, bytes: bytes}, nil)
	}
}

// Close gives the GPU back, with all tensors on it.
func (g *GPU) Close() error {
	if g.device == nil {
		return nil
	}
	g.submit()
	errs := g.replay.closeGraphs()
	for _, b := range g.arrivals.blocks {
		errs = append(errs, b.Free())
	}
	for _, p := range g.memory {
		errs = append(errs, g.device.Free(p))
	}
	for _, m := range g.modules {
		errs = append(errs, m.Close())
	}
	if g.blas != nil {
		errs = append(errs, g.blas.Close())
	}
	if g.stream != nil {
		errs = append(errs, g.stream.Close())
	}
	return errors.Join(append(errs, g.device.Close())...)
}
