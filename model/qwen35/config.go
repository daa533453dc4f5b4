// Package qwen35 is the text model of Qwen3.5: pre-norm decoder layers whose mixer is
// a gated delta net in three layers of four and gated full attention in the fourth
// (huggingface/transformers, models/qwen3_5). Parameters carry the checkpoint's names.
package qwen35

import (
	"fmt"

	"caper/model/decoder"
)

// ModelType is config.json's model_type of the text model; OuterType that of the
// vision-language model that contains it under text_config.
const (
	ModelType = "qwen3_5_text"
	OuterType = "qwen3_5"
)

// Config is the shape of a model.
type Config struct {
	decoder.Config
	// The gated delta net. Neighbouring value heads share a key head.
	KeyHeads   int `json:"linear_num_key_heads"`
	ValueHeads int `json:"linear_num_value_heads"`
	KeyDim     int `json:"linear_key_head_dim"`
	ValueDim   int `json:"linear_value_head_dim"`
	ConvWidth  int `json:"linear_conv_kernel_dim"`
}

// Defaults returns the values that official configurations share and that a file may
// leave out. Sizes are zero.
func Defaults() Config {
	return Config{
		Config: decoder.Config{
			HeadDim: 256, RMSNormEps: 1e-6, InitRange: 0.02, MaxPositions: 262144,
			Rope: decoder.Rope{Type: "default", Theta: 1e7, PartialFactor: 0.25, MRopeInterleave: true},
		},
		KeyHeads: 16, ValueHeads: 32, KeyDim: 128, ValueDim: 128, ConvWidth: 4,
	}
}

// LayerTypes returns the usual pattern: full attention in every interval-th layer,
// gated delta nets elsewhere.
func LayerTypes(layers, interval int) []string {
	types := make([]string, layers)
	for i := range types {
		types[i] = decoder.LinearAttention
		if i%interval == interval-1 {
			types[i] = decoder.FullAttention
		}
	}
	return types
}

// ParseConfig reads the text configuration from o. Errors name the key and the value.
func ParseConfig(o decoder.Object) (Config, error) {
	c := Defaults()
	if err := o.Require("attn_output_gate", true); err != nil {
		return c, err
	}
	if err := o.Require("output_gate_type", "swish", "silu"); err != nil {
		return c, err
	}
	if err := o.DecodeAll(&c); err != nil {
		return c, err
	}
	if err := c.Parse(o); err != nil {
		return c, err
	}
	if !o.Has("layer_types") {
		interval := 4
		if err := o.Decode("full_attention_interval", &interval); err != nil {
			return c, err
		}
		if err := decoder.Positive(map[string]int{"full_attention_interval": interval, "num_hidden_layers": c.Layers}); err != nil {
			return c, err
		}
		c.LayerTypes = LayerTypes(c.Layers, interval)
	}
	return c, c.Validate()
}

// ModelType returns the package's ModelType.
func (Config) ModelType() string { return ModelType }

// Validate checks that the numbers fit each other.
func (c Config) Validate() error {
	if err := c.Config.Validate(); err != nil {
		return err
	}
	if err := decoder.Positive(map[string]int{
		"linear_num_key_heads": c.KeyHeads, "linear_num_value_heads": c.ValueHeads, "linear_key_head_dim": c.KeyDim,
		"linear_value_head_dim": c.ValueDim, "linear_conv_kernel_dim": c.ConvWidth,
	}); err != nil {
		return err
	}
	for i, kind := range c.LayerTypes {
		if kind != decoder.FullAttention && kind != decoder.LinearAttention {
			return fmt.Errorf("layer_types: %q in layer %d: not supported, only %q, %q", kind, i, decoder.LinearAttention, decoder.FullAttention)
		}
	}
	if c.ValueHeads%c.KeyHeads != 0 {
		return fmt.Errorf("linear_num_value_heads: %d is not a multiple of linear_num_key_heads %d", c.ValueHeads, c.KeyHeads)
	}
	return nil
}

// Keys returns the configuration as keys of config.json.
func (c Config) Keys() (decoder.Object, error) {
	if c.Rope.MRopeSection == nil { // time, height and width share the frequencies
		pairs := c.RotaryDims() / 2
		c.Rope.MRopeSection = []int{(pairs + 2) / 3, (pairs + 1) / 3, pairs / 3}
	}
	o := decoder.Object{}
	return o, o.SetAll(c)
}
