package causalconv

import (
	"fmt"

	"caper/engine"
)

// Cache keeps numbered windows: the last K-1 tokens of sequences that go on later, for
// one layer of C channels and K taps.
type Cache struct {
	channels, taps int
	windows        *engine.Tensor // [windows*(K-1), C], oldest first
}

// NewCache returns a cache on dev. Which sequence has which window is the caller's
// business.
func NewCache(dev engine.Device, windows, channels, taps int) *Cache {
	return &Cache{channels, taps, engine.NewFrozen(dev, "windows", windows*(taps-1), channels).Tensor}
}

// Bytes returns the memory that c takes.
func (c *Cache) Bytes() int { return int(engine.Tensors{c.windows}.Bytes()) }

// Steps says how the rows of a batch go on: step s is rows [Start[s], Start[s]+Len[s])
// of one sequence. From is the window before them, -1 for none: the start of a
// sequence. To is the window that they leave. No two steps write the same window, nor
// one that another step reads.
type Steps struct {
	Start, Len, From, To []int32
}

// Reset empties s and keeps its memory.
func (s *Steps) Reset() {
	s.Start, s.Len, s.From, s.To = s.Start[:0], s.Len[:0], s.From[:0], s.To[:0]
}

// Add appends a step of n rows.
func (s *Steps) Add(n int, from, to int32) {
	s.Start, s.Len = append(s.Start, int32(s.rows())), append(s.Len, int32(n))
	s.From, s.To = append(s.From, from), append(s.To, to)
}

func (s *Steps) rows() int {
	if len(s.Start) == 0 {
		return 0
	}
	return int(s.Start[len(s.Start)-1] + s.Len[len(s.Len)-1])
}

// Decode is Forward for sequences that go on from windows in c: it returns
// silu(convolution of x with w), [N, C]. There is no backward pass. A step's result
// has the same bits whatever else is in the batch.
func Decode(t *engine.Tape, x, w *engine.Tensor, c *Cache, s *Steps) *engine.Tensor {
	c.check(x, w, s)
	o := engine.NewOp[decodeOp](t)
	*o = decodeOp{x: x, w: w, y: t.New(x.Rows, x.Cols), c: c, s: s}
	t.Run(o)
	return o.y
}

type decodeOp struct {
	engine.NoBackward
	x, w, y *engine.Tensor
	c       *Cache
	s       *Steps
}

func (o *decodeOp) Forward(t *engine.Tape) {
	switch {
	case t.Reference():
		specDecode(o)
	case t.CPU():
		cpuDecode(t, o)
	case t.CUDA():
		cudaDecode(t, o)
	}
}

func (o *decodeOp) Cost() engine.Cost {
	windows := o.c.windows.Touched(len(o.s.From) * (o.c.taps - 1))
	return engine.Cost{
		Operator: "causalconv.decode",
		Reads:    engine.Tensors{o.x, o.w, windows},
		Writes:   engine.Tensors{o.y, windows},
		Forward:  engine.ProductFLOPs(o.x.Rows, o.x.Cols, o.c.taps),
	}
}

func (c *Cache) check(x, w *engine.Tensor, s *Steps) {
	ok := x.Rows == s.rows() && x.Cols == c.channels && w.Rows == c.channels && w.Cols == c.taps && c.taps <= maxTaps
	windows := int32(0)
	if c.taps > 1 {
		windows = int32(c.windows.Rows / (c.taps - 1))
	}
	for i := range s.Start {
		ok = ok && s.From[i] >= -1 && (c.taps == 1 || s.From[i] < windows && s.To[i] >= 0 && s.To[i] < windows)
	}
	if !ok {
		panic(fmt.Sprintf("causalconv: input %s, weight %s and %d steps of %d rows do not fit %d windows of %d channels, %d taps (at most %d)",
			x, w, len(s.Start), s.rows(), windows, c.channels, c.taps, maxTaps))
	}
}
