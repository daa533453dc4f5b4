package decoder

import (
	"caper/engine"
	"caper/kernels/linear"
	"caper/kernels/swiglu"
)

// MLP is the SwiGLU block, down(silu(gate(x)) * up(x)).
type MLP struct {
	Gate, Up *engine.Tensor // [I, H]
	Down     *engine.Tensor // [H, I]
}

// NewMLP makes the block's parameters under prefix, such as "model.layers.0.mlp.".
func NewMLP(p *Parameters, prefix string, c *Config) MLP {
	matrix := Normal(c.InitRange)
	return MLP{
		Gate: p.Add(prefix+"gate_proj.weight", matrix, c.IntermediateSize, c.HiddenSize).Tensor,
		Up:   p.Add(prefix+"up_proj.weight", matrix, c.IntermediateSize, c.HiddenSize).Tensor,
		Down: p.Add(prefix+"down_proj.weight", matrix, c.HiddenSize, c.IntermediateSize).Tensor,
	}
}

// Forward maps x [N, H] to [N, H].
func (m *MLP) Forward(t *engine.Tape, x *engine.Tensor) *engine.Tensor {
	gate := linear.Forward(t, x, m.Gate)
	up := linear.Forward(t, x, m.Up)
	return linear.Forward(t, swiglu.Forward(t, gate, up), m.Down)
}
