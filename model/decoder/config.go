// Package decoder holds what the decoder-only transformers of this module share: the
// keys of a Hugging Face config.json, the named parameters with their checkpoint
// names, shapes and initial distributions, and the SwiGLU block.
package decoder

import "fmt"

// Config is the part of config.json that all our models have in common. The json
// tags are Hugging Face's keys.
type Config struct {
	VocabSize        int      `json:"vocab_size"`
	HiddenSize       int      `json:"hidden_size"`
	IntermediateSize int      `json:"intermediate_size"` // of the MLP
	Layers           int      `json:"num_hidden_layers"`
	LayerTypes       []string `json:"layer_types"` // FullAttention, LinearAttention
	Heads            int      `json:"num_attention_heads"`
	KVHeads          int      `json:"num_key_value_heads"`
	HeadDim          int      `json:"head_dim"`
	RMSNormEps       float64  `json:"rms_norm_eps"`
	Rope             Rope     `json:"rope_parameters"`
	Tied             bool     `json:"tie_word_embeddings"` // the head is the embedding
	MaxPositions     int      `json:"max_position_embeddings"`
	InitRange        float64  `json:"initializer_range"` // standard deviation of fresh matrices
}

// The kinds of layers in Config.LayerTypes.
const (
	FullAttention   = "full_attention"
	LinearAttention = "linear_attention" // gated delta net
)

// Rope describes rotary positions. Text has one position per token, for which the
// multi-axis form (mrope) is the plain one; its keys are only carried along.
type Rope struct {
	Type            string  `json:"rope_type"`
	Theta           float64 `json:"rope_theta"`
	PartialFactor   float64 `json:"partial_rotary_factor,omitempty"` // share of the dims that turn; 0 means all
	MRopeInterleave bool    `json:"mrope_interleaved,omitempty"`
	MRopeSection    []int   `json:"mrope_section,omitempty"`
}

// Shared returns c. Through embedding, every model's configuration has it.
func (c Config) Shared() Config { return c }

// RotaryDims returns how many leading dimensions of each head are rotated.
func (c *Config) RotaryDims() int {
	if c.Rope.PartialFactor == 0 {
		return c.HeadDim
	}
	return int(float64(c.HeadDim) * c.Rope.PartialFactor)
}

// Parse reads the shared keys of o into c, whose present values are the defaults, and
// refuses what would change the computation into one that is not implemented.
func (c *Config) Parse(o Object) error {
	for _, err := range []error{
		o.Require("hidden_act", "silu"),
		o.Require("attention_bias", false),
		o.Require("mlp_bias", false),
		o.Require("attention_dropout", 0.0),
		o.Require("use_sliding_window", false),
		o.Require("num_experts", 0.0),
		o.Require("quantization_config"),
	} {
		if err != nil {
			return err
		}
	}
	for _, key := range []string{"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads"} {
		if !o.Has(key) {
			return fmt.Errorf("%s: missing", key)
		}
	}
	return c.parseRope(o)
}

// parseRope accepts the current form, rope_parameters, and the older one, rope_scaling.
// As in transformers, top-level keys stand for what is missing there.
func (c *Config) parseRope(o Object) error {
	if o.Has("rope_parameters") && o.Has("rope_scaling") {
		return fmt.Errorf("rope_scaling: stands beside rope_parameters: keep one of them")
	}
	for key, value := range map[string]any{"rope_theta": &c.Rope.Theta, "partial_rotary_factor": &c.Rope.PartialFactor} {
		if err := o.Decode(key, value); err != nil {
			return err
		}
	}
	for _, key := range []string{"rope_parameters", "rope_scaling"} {
		var rope Object
		if err := o.Decode(key, &rope); err != nil {
			return err
		}
		for _, name := range []string{"rope_type", "type"} {
			if err := rope.Require(name, "default"); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
		if rope == nil {
			continue
		}
		if err := rope.DecodeAll(&c.Rope); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

// Validate checks that the numbers fit each other.
func (c *Config) Validate() error {
	if err := Positive(map[string]int{
		"vocab_size": c.VocabSize, "hidden_size": c.HiddenSize, "intermediate_size": c.IntermediateSize,
		"num_hidden_layers": c.Layers, "num_attention_heads": c.Heads, "num_key_value_heads": c.KVHeads, "head_dim": c.HeadDim,
	}); err != nil {
		return err
	}
	switch dims := c.RotaryDims(); {
	case len(c.LayerTypes) != c.Layers:
		return fmt.Errorf("layer_types: %d entries for num_hidden_layers %d", len(c.LayerTypes), c.Layers)
	case c.Heads%c.KVHeads != 0:
		return fmt.Errorf("num_attention_heads: %d is not a multiple of num_key_value_heads %d", c.Heads, c.KVHeads)
	case dims <= 0 || dims > c.HeadDim || dims%2 != 0:
		return fmt.Errorf("partial_rotary_factor: %g turns %d of %d dimensions, need an even number of them", c.Rope.PartialFactor, dims, c.HeadDim)
	case c.Rope.Theta <= 1:
		return fmt.Errorf("rope_theta: %g, must be above 1", c.Rope.Theta)
	case c.RMSNormEps <= 0:
		return fmt.Errorf("rms_norm_eps: %g, must be positive", c.RMSNormEps)
	case c.InitRange < 0:
		return fmt.Errorf("initializer_range: %g, must not be negative", c.InitRange)
	}
	return nil
}

// maxDimension bounds every size in a configuration, so that products of a few of
// them fit an int.
const maxDimension = 1 << 20

// Positive checks sizes by their key.
func Positive(sizes map[string]int) error {
	for key, n := range sizes {
		if n <= 0 || n > maxDimension {
			return fmt.Errorf("%s: %d, must be between 1 and %d", key, n, maxDimension)
		}
	}
	return nil
}
