package generate

import (
	"caper/engine"
	"caper/kernels/attention"
	"caper/kernels/causalconv"
	"caper/kernels/deltarule"
	"caper/model/decoder"
)

// cache is what the tokens of a step see of those before them, in every layer. Blocks
// of keys and values are given out one by one. A slot is the place of a sequence's
// state and convolution window; the slots of samples, the first ones, also have an
// open chunk.
//
// A layer's part is made when the model first asks for it: the model knows the shapes.
type cache struct {
	dev                   engine.Device
	blocks, slots, chunks int
	attention             map[int]*attention.Cache
	convolution           map[int]*causalconv.Cache
	delta                 map[int]*deltarule.Cache

	// The step's rows, in order.
	tokens  []int32
	places  attention.Places
	windows causalconv.Steps
	states  deltarule.Steps
}

var _ decoder.Context = (*cache)(nil)

func newCache(dev engine.Device, blocks, slots, chunks int) *cache {
	return &cache{
		dev: dev, blocks: blocks, slots: slots, chunks: chunks,
		attention: map[int]*attention.Cache{}, convolution: map[int]*causalconv.Cache{}, delta: map[int]*deltarule.Cache{},
	}
}

// reset begins a step.
func (c *cache) reset() {
	c.tokens = c.tokens[:0]
	c.places.Reset()
	c.windows.Reset()
	c.states.Reset()
}

// addPrompt appends tokens of a prompt, whose cache holds those before position.
func (c *cache) addPrompt(tokens, table []int32, slot int32, position int) {
	from := slot
	if position == 0 {
		from = -1
	}
	c.tokens = append(c.tokens, tokens...)
	c.places.Add(table, position, len(tokens))
	c.windows.Add(len(tokens), from, slot)
	c.states.Add(len(tokens), from, slot)
}

// addToken appends a sample's next token, number n of those after its prompt, whose
// slot is given.
func (c *cache) addToken(token int32, table []int32, slot, prompt int32, position, n int) {
	window, state := slot, slot
	if n == 0 {
		window = prompt
	}
	if n < deltarule.ChunkLen {
		state = prompt
	}
	c.tokens = append(c.tokens, token)
	c.places.Add(table, position, 1)
	c.windows.Add(1, window, slot)
	c.states.AddOpen(state, slot, slot, int32(n%deltarule.ChunkLen))
}

// copyBlock copies the first n positions of a block in every layer.
func (c *cache) copyBlock(to, from int32, n int) {
	for _, layer := range c.attention {
		layer.CopyBlock(to, from, n)
	}
}

func (c *cache) bytes() int {
	n := 0
	for _, layer := range c.attention {
		n += layer.Bytes()
	}
	for _, layer := range c.convolution {
		n += layer.Bytes()
	}
	for _, layer := range c.delta {
		n += layer.Bytes()
	}
	return n
}

func (c *cache) Tokens() []int32    { return c.tokens }
func (c *cache) Positions() []int32 { return c.places.Position }

func (c *cache) Attention(t *engine.Tape, layer int, q, k, v, gate *engine.Tensor, o attention.Options) *engine.Tensor {
	if c.attention[layer] == nil {
		c.attention[layer] = attention.NewCache(c.dev, c.blocks, o)
	}
	return attention.Decode(t, q, k, v, gate, c.attention[layer], &c.places)
}

func (c *cache) Convolution(t *engine.Tape, layer int, x, w *engine.Tensor) *engine.Tensor {
	if c.convolution[layer] == nil {
		c.convolution[layer] = causalconv.NewCache(c.dev, c.slots, x.Cols, w.Cols)
	}
	return causalconv.Decode(t, x, w, c.convolution[layer], &c.windows)
}

func (c *cache) DeltaRule(t *engine.Tape, layer int, q, k, v, g, beta *engine.Tensor, o deltarule.Options) *engine.Tensor {
	if c.delta[layer] == nil {
		c.delta[layer] = deltarule.NewCache(c.dev, c.slots, c.chunks, o)
	}
	return deltarule.Decode(t, q, k, v, g, beta, c.delta[layer], &c.states)
}
