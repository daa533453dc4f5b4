package decoder

import (
	"strings"

	"caper/engine"
	"caper/kernels/linear"
	"caper/kernels/lowrank"
)

// Linear is a linear map without bias, and what an adapter adds to it.
type Linear struct {
	*Parameter // the weight [out, in], named MODULE.weight
	// Adapter is nil where there is none.
	Adapter *LowRank
}

// LowRank is the addition Scale B A to a weight [out, in] (LoRA: Hu et al. 2021,
// arXiv 2106.09685).
type LowRank struct {
	A     *Parameter // [rank, in]
	B     *Parameter // [out, rank]
	Scale float64
}

// Module is the map's name without ".weight", as adapters name it.
func (l *Linear) Module() string { return strings.TrimSuffix(l.Name, ".weight") }

// Forward maps x [N, in] to [N, out].
func (l *Linear) Forward(t *engine.Tape, x *engine.Tensor) *engine.Tensor {
	y := linear.Forward(t, x, l.Tensor)
	if a := l.Adapter; a != nil {
		lowrank.Add(t, y, x, a.A.Tensor, a.B.Tensor, a.Scale)
	}
	return y
}
