// Package qwen3 is the dense Qwen3: pre-norm decoder layers with grouped full
// attention, per-head norms of q and k, and full rotary positions
// (huggingface/transformers, models/qwen3). Parameters carry the checkpoint's names.
package qwen3

import (
	"fmt"

	"caper/model/decoder"
)

// ModelType is config.json's model_type.
const ModelType = "qwen3"

// Config is the shape of a model.
type Config struct{ decoder.Config }

// Defaults returns the values that official configurations share and that a file may
// leave out. Sizes are zero.
func Defaults() Config {
	return Config{decoder.Config{
		HeadDim: 128, RMSNormEps: 1e-6, InitRange: 0.02, MaxPositions: 40960,
		Rope: decoder.Rope{Type: "default", Theta: 1e6},
	}}
}

// LayerTypes returns the only pattern: full attention in every layer.
func LayerTypes(layers int) []string {
	types := make([]string, layers)
	for i := range types {
		types[i] = decoder.FullAttention
	}
	return types
}

// ParseConfig reads the configuration from o. Errors name the key and the value.
func ParseConfig(o decoder.Object) (Config, error) {
	c := Defaults()
	if err := o.DecodeAll(&c); err != nil {
		return c, err
	}
	if err := c.Parse(o); err != nil {
		return c, err
	}
	c.Rope.PartialFactor = 0 // transformers' Qwen3 turns all dimensions, whatever the file says
	if !o.Has("layer_types") {
		if err := decoder.Positive(map[string]int{"num_hidden_layers": c.Layers}); err != nil {
			return c, err
		}
		c.LayerTypes = LayerTypes(c.Layers)
	}
	return c, c.Validate()
}

// ModelType returns the package's ModelType.
func (Config) ModelType() string { return ModelType }

// Validate checks that the numbers fit each other.
func (c Config) Validate() error {
	for i, kind := range c.LayerTypes {
		if kind != decoder.FullAttention {
			return fmt.Errorf("layer_types: %q in layer %d: not supported, only %q", kind, i, decoder.FullAttention)
		}
	}
	return c.Config.Validate()
}

// Keys returns the configuration as keys of config.json.
func (c Config) Keys() (decoder.Object, error) {
	o := decoder.Object{}
	return o, o.SetAll(c)
}
