package plan

import (
	"caper/engine"
	"caper/kernels/attention"
	"caper/kernels/causalconv"
	"caper/kernels/deltarule"
	"caper/model"
	"caper/model/decoder"
	"caper/model/qwen35"
)

// Cache is what the native sampler keeps on a GPU between its steps, in bytes.
type Cache struct {
	KeysValues float64 // of the layers of full attention
	States     float64 // of gated delta nets: states, open chunks and the convolutions' windows
}

// CacheOf returns the cache for so many tokens, and so many samples under way together
// with as many prompts: the sampler's own, on a device of shapes.
func CacheOf(c model.Config, tokens, batch int) (s Cache) {
	dev := engine.CUDAShapes()
	shared := c.Text.Shared()
	gated, _ := c.Text.(qwen35.Config)
	for _, kind := range shared.LayerTypes {
		if kind == decoder.FullAttention {
			blocks := (tokens + attention.BlockLen - 1) / attention.BlockLen
			s.KeysValues += float64(attention.NewCache(dev, blocks, attention.Options{KVHeads: shared.KVHeads, Dim: shared.HeadDim}).Bytes())
			continue
		}
		o := deltarule.Options{KeyHeads: gated.KeyHeads, ValueHeads: gated.ValueHeads, KeyDim: gated.KeyDim, ValueDim: gated.ValueDim}
		channels := 2*gated.KeyHeads*gated.KeyDim + gated.ValueHeads*gated.ValueDim
		s.States += float64(deltarule.NewCache(dev, 2*batch, batch, o).Bytes() + causalconv.NewCache(dev, 2*batch, channels, gated.ConvWidth).Bytes())
	}
	return s
}
