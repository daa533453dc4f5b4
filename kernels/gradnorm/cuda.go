package gradnorm

import (
	_ "embed"
	"math"
	"sync"

	"caper/cuda"
	"caper/engine"
)

//go:embed op.cu
var text string

var (
	source  = engine.NewKernelText("kernels/gradnorm/op.cu", text)
	squares = source.Kernel("gradnorm_squares")
	norm    = source.Kernel("gradnorm_norm")
)

// blockElements is what a block takes at once, and mostBlocks how many a parameter gets.
const (
	blockElements = 2048
	mostBlocks    = 1056
)

func blocks(g *engine.Tensor) int {
	return min((g.Rows*g.Stride+blockElements-1)/blockElements, mostBlocks)
}

// sums is a GPU's memory for the blocks' sums and the norm, float64, kept from step to step.
type sums struct {
	parts, norm *engine.Tensor
	read        [2]float32
}

var sumsOf sync.Map // by *engine.GPU

// room returns memory for so many sums.
func room(dev engine.Device, count int) *sums {
	known, _ := sumsOf.LoadOrStore(engine.GPUOf(dev), &sums{})
	s := known.(*sums)
	if s.norm == nil {
		s.norm = engine.NewFrozenFloat32(dev, "", 1, 2).Tensor
	}
	if s.parts == nil || s.parts.Rows < count {
		s.parts = engine.NewFrozenFloat32(dev, "", count, 2).Tensor
	}
	return s
}

// cudaNorm is Norm on a GPU, whose work it waits for.
func cudaNorm(dev engine.Device, params []*engine.Param) float64 {
	gpu, count := engine.GPUOf(dev), 0
	for _, p := range params {
		if p.Grad != nil {
			count += blocks(p.Grad)
		}
	}
	s := room(dev, count)
	part := s.parts.Address()
	for _, p := range params {
		if p.Grad != nil {
			n := blocks(p.Grad)
			gpu.Launch(squares, engine.Blocks(n, 256), gpu.Args().Tensor(p.Grad).Int64(p.Grad.Rows*p.Grad.Stride).Ptr(part))
			part += cuda.Ptr(8 * n)
		}
	}
	gpu.Launch(norm, engine.Blocks(1, 1024), gpu.Args().Tensor(s.parts).Int(count).Tensor(s.norm))
	s.norm.Read(s.read[:])
	return math.Float64frombits(uint64(math.Float32bits(s.read[1]))<<32 | uint64(math.Float32bits(s.read[0])))
}
