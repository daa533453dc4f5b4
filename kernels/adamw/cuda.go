package adamw

import (
	_ "embed"

	"caper/engine"
)

//go:embed op.cu
var text string

var (
	source    = engine.NewKernelText("kernels/adamw/op.cu", text)
	step      = source.Kernel("adamw_step")
	stepBF16  = source.Kernel("adamw_step_bf16")
	toFloat32 = source.Kernel("adamw_to_float32")
)

// elements is the size of x as a flat array: what lies between rows is 0 and stays so.
func elements(x *engine.Tensor) int { return x.Rows * x.Stride }

// blocks of 256 threads, eight elements each.
func blocks(x *engine.Tensor) int { return (elements(x) + 2047) / 2048 }

// newMaster returns memory for a weight in float32, nil where it is that itself or on no GPU.
func newMaster(x *engine.Tensor) *engine.Tensor {
	if x.Address() == 0 || x.IsFloat32() {
		return nil
	}
	return engine.MomentLike(x)
}

// setMasters makes the master weights of the weights.
func (s *State) setMasters(dev engine.Device, params []*engine.Param) {
	gpu := engine.GPUOf(dev)
	for i, p := range params {
		if master := s.Master[i]; master != nil {
			gpu.Launch(toFloat32, engine.Blocks(blocks(master), 256), gpu.Args().Tensor(p.Tensor).Tensor(master).Int64(elements(master)))
		}
	}
}

func cudaUpdate(dev engine.Device, p *engine.Param, s *State, i int, u update) {
	gpu, working, master := engine.GPUOf(dev), p.Tensor, s.Master[i]
	if master == nil {
		working, master = nil, p.Tensor
	}
	kernel := step
	a := gpu.Args().Tensor(working).Tensor(master).Tensor(p.Grad).Tensor(s.M[i]).Tensor(s.V[i]).Int64(elements(master)).
		Float(1 - u.beta1).Float(1 - u.beta2).Float(u.eps).Float(u.scale).Float(u.step).Float(u.correct).Float(u.decay)
	if !s.M[i].IsFloat32() {
		kernel = stepBF16
		a.Uint64(engine.Random(s.Seed, "adamw", uint64(s.Step), uint64(i)).Uint64())
	}
	gpu.Launch(kernel, engine.Blocks(blocks(master), 256), a)
}
