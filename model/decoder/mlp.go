package decoder

import (
	"caper/engine"
	"caper/kernels/swiglu"
)

// MLP is the SwiGLU block, down(silu(gate(x)) * up(x)).
type MLP struct {
	Gate, Up *Linear // [I, H]
	Down     *Linear // [H, I]
}

// NewMLP makes the block's parameters under prefix, such as "model.layers.0.mlp.".
func NewMLP(p *Parameters, prefix string, c *Config) MLP {
	matrix := Normal(c.InitRange)
	return MLP{
		Gate: p.AddLinear(prefix+"gate_proj.weight", matrix, c.IntermediateSize, c.HiddenSize),
		Up:   p.AddLinear(prefix+"up_proj.weight", matrix, c.IntermediateSize, c.HiddenSize),
		Down: p.AddLinear(prefix+"down_proj.weight", matrix, c.HiddenSize, c.IntermediateSize),
	}
}

// Forward maps x [N, H] to [N, H].
func (m *MLP) Forward(t *engine.Tape, x *engine.Tensor) *engine.Tensor {
	gate := m.Gate.Forward(t, x)
	up := m.Up.Forward(t, x)
	return m.Down.Forward(t, swiglu.Forward(t, gate, up))
}
