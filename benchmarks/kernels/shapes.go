package kernels

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"time"

	"caper/engine"
	"caper/kernels/adamw"
	"caper/kernels/attention"
	"caper/kernels/deltarule"
	"caper/kernels/gradnorm"
	"caper/kernels/linear"
	"caper/kernels/logprob"
	"caper/kernels/rmsnorm"
	"caper/kernels/swiglu"
)

// call is one of an operator at a size that others have published figures of.
type call struct {
	name    string
	rows    int
	inputs  []input
	forward func(t *engine.Tape, in []*engine.Tensor) *engine.Tensor
	theirs  [2]string // of the forward and of the backward pass: who, what, on which card; empty where none is known
}

// input is a tensor [rows, cols] of random elements, evenly spread around a mean.
type input struct {
	cols         int
	mean, spread float64
	kind         kind
	rows         int // 0: those of the call
}

type kind int

const (
	activation kind = iota
	float32s        // an activation in float32
	weight          // of which there is one, with a gradient in float32
)

// calls are those of one H200 in the published comparisons; sizes are divided by scale, but for
// heads, whose kernels are made for their size.
func calls(scale int) []call {
	n := func(size int) int { return max(size/scale, 8) }
	return []call{
		{name: fmt.Sprintf("product, %d x %d by %d", n(8192), n(4096), n(12288)), rows: n(8192), inputs: []input{{cols: n(4096), spread: 1}, {cols: n(4096), spread: 1, kind: weight, rows: n(12288)}},
			forward: func(t *engine.Tape, in []*engine.Tensor) *engine.Tensor { return linear.Forward(t, in[0], in[1]) },
			theirs:  [2]string{"cuBLASLt 770-800 TFLOP/s (H200)", ""}},
		{name: fmt.Sprintf("RMSNorm, %d x %d", n(4096), n(16384)), rows: n(4096), inputs: []input{{cols: n(16384), spread: 1}, {cols: n(16384), mean: 1, spread: 0.1, kind: weight, rows: 1}},
			forward: func(t *engine.Tape, in []*engine.Tensor) *engine.Tensor {
				return rmsnorm.Forward(t, in[0], in[1], 1e-6, false)
			},
			theirs: [2]string{"Liger 0.095 ms (H100)", "Liger 0.30 ms, PyTorch 0.16 ms at 4096 columns"}},
		{name: fmt.Sprintf("SwiGLU, %d x %d", n(8192), n(16384)), rows: n(8192), inputs: []input{{cols: n(16384), spread: 1}, {cols: n(16384), spread: 1}},
			forward: func(t *engine.Tape, in []*engine.Tensor) *engine.Tensor { return swiglu.Forward(t, in[0], in[1]) },
			theirs:  [2]string{"Liger 0.267 ms (H100)", ""}},
		logProbs(n(8192), n(4096), n(131072), [2]string{"Liger 706-738 TFLOP/s (H100)", "both passes: Liger 666-701 TFLOP/s (H100)"}),
		logProbs(n(8192), n(4096), n(248320), [2]string{}),
		attended(max(2/scale, 1), n(8192), [2]string{"FlashAttention 3 628 TFLOP/s (H100, fp16)", ""}),
		attended(1, n(16384), [2]string{"FlashAttention 3 642 TFLOP/s (H100, fp16)", "FlashAttention 3 480, best CuTe 530 TFLOP/s (H200)"}),
		delta(1, n(8192), [2]string{"FlashQLA 0.280, FlashInfer 0.394, FLA 0.472 ms", "FlashQLA 0.789, FLA 1.444 ms"}),
		delta(max(8/scale, 1), n(1024), [2]string{"FlashInfer 0.119, FlashQLA 0.178, FLA 0.501 ms", "FlashQLA 0.759, FLA 1.500 ms"}),
		delta(1, n(32768), [2]string{"FlashQLA 0.877, FlashInfer 1.550, FLA 1.890 ms", "FlashQLA 2.515, FLA 5.697 ms"}),
	}
}

func logProbs(rows, cols, vocabulary int, theirs [2]string) call {
	r := rand.New(rand.NewPCG(1, 2))
	from, targets := make([]int32, rows), make([]int32, rows)
	for i := range rows {
		from[i], targets[i] = int32(i), r.Int32N(int32(vocabulary))
	}
	return call{
		name: fmt.Sprintf("linear + log-prob, %d x %d, vocabulary %d", rows, cols, vocabulary), rows: rows,
		inputs: []input{{cols: cols, spread: 1}, {cols: cols, spread: 1 / math.Sqrt(float64(cols)), kind: weight, rows: vocabulary}},
		forward: func(t *engine.Tape, in []*engine.Tensor) *engine.Tensor {
			return logprob.Forward(t, in[0], in[1], from, targets)
		},
		theirs: theirs,
	}
}

// sequences is a tree of separate ones.
func sequences(count, length int) *engine.Tree {
	t := &engine.Tree{}
	for range count {
		t.AddSegment(-1, make([]int32, length))
	}
	return t
}

func attended(count, length int, theirs [2]string) call {
	o := attention.Options{Heads: 16, KVHeads: 4, Dim: 256}
	tree := sequences(count, length)
	return call{
		name: fmt.Sprintf("attention, 16 heads of 256 on 4, causal, %d x %d", count, length), rows: count * length,
		inputs: []input{{cols: o.Heads * o.Dim, spread: 1}, {cols: o.KVHeads * o.Dim, spread: 1}, {cols: o.KVHeads * o.Dim, spread: 1}},
		forward: func(t *engine.Tape, in []*engine.Tensor) *engine.Tensor {
			return attention.Forward(t, in[0], in[1], in[2], nil, tree, o)
		},
		theirs: theirs,
	}
}

func delta(count, length int, theirs [2]string) call {
	o := deltarule.Options{KeyHeads: 16, ValueHeads: 32, KeyDim: 128, ValueDim: 128}
	tree, unit := sequences(count, length), math.Sqrt(3./128) // keys and queries of length 1
	return call{
		name: fmt.Sprintf("gated delta rule, 16/32 heads of 128, %d x %d", count, length), rows: count * length,
		inputs: []input{
			{cols: 16 * 128, spread: unit}, {cols: 16 * 128, spread: unit}, {cols: 32 * 128, spread: 1},
			{cols: 32, mean: -0.1, spread: 0.1, kind: float32s}, {cols: 32, mean: 0.5, spread: 0.5, kind: float32s},
		},
		forward: func(t *engine.Tape, in []*engine.Tensor) *engine.Tensor {
			return deltarule.Forward(t, in[0], in[1], in[2], in[3], in[4], tree, o)
		},
		theirs: theirs,
	}
}

// Timed is what a pass of an operator has reached.
type Timed struct {
	Name    string  `json:"name"`
	Pass    string  `json:"pass"` // "forward", "backward" or "update"
	Seconds float64 `json:"seconds"`
	FLOPs   float64 `json:"flops"`
	Bytes   float64 `json:"bytes"` // the least that has to move
	Theirs  string  `json:"theirs,omitempty"`
}

// Shapes is a report on operators at the sizes that others publish figures of.
type Shapes struct {
	Device  string  `json:"device"`
	Scale   int     `json:"scale"` // sizes are divided by it
	Copy    float64 `json:"copy_bytes_per_second,omitempty"`
	Product float64 `json:"product_flops,omitempty"`
	Timed   []Timed `json:"operators"`
}

// MeasureShapes times operators at the published sizes, divided by scale, the best of several
// repeats. Elements are random: zeros take less power, and flatter.
func MeasureShapes(ctx context.Context, dev engine.Device, scale, repeats int) (*Shapes, error) {
	r := &Shapes{Device: dev.Name(), Scale: scale}
	if g := engine.GPUOf(dev); g != nil && scale == 1 {
		var err error
		if r.Copy, r.Product, err = g.Ceilings(); err != nil {
			return nil, err
		}
	}
	for _, s := range calls(scale) {
		timed, err := s.measure(ctx, dev, repeats)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		for i := range timed {
			if scale > 1 {
				timed[i].Theirs = "" // of another size
			}
		}
		r.Timed = append(r.Timed, timed...)
	}
	updates, err := measureUpdate(dev, max(16384/scale, 8), max(16384/scale, 8), repeats)
	r.Timed = append(r.Timed, updates...)
	return r, err
}

// copies is how many calls are under way between two looks at the clock, each with tensors of its own.
const copies = 3

func (s call) measure(ctx context.Context, dev engine.Device, repeats int) ([]Timed, error) {
	weights := make([]*engine.Param, len(s.inputs))
	for i, in := range s.inputs {
		if in.kind == weight {
			weights[i] = engine.NewParam(dev, s.name, in.rows, in.cols)
			in.fill(weights[i].Tensor)
		}
	}
	best := [2]float64{math.Inf(1), math.Inf(1)}
	sums := &operators{}
	for i := range repeats + 1 { // the first is observed, and warms up
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		on := dev
		if i == 0 {
			on = engine.Observed(dev, sums)
		}
		seconds, err := s.run(on, weights)
		if err != nil {
			return nil, err
		}
		for p := range best {
			if i > 0 {
				best[p] = min(best[p], seconds[p]/copies)
			}
		}
	}
	var timed []Timed
	for p, phase := range []engine.Phase{engine.Forward, engine.Backward} {
		t := Timed{Name: s.name, Pass: phase.String(), Seconds: best[p], Theirs: s.theirs[p]}
		for _, o := range sums.list {
			if o.Phase == phase.String() {
				t.FLOPs, t.Bytes = t.FLOPs+o.FLOPs/copies, t.Bytes+o.Bytes/copies
			}
		}
		timed = append(timed, t)
	}
	return timed, nil
}

// run returns the seconds of both passes of all copies.
func (s call) run(dev engine.Device, weights []*engine.Param) (seconds [2]float64, err error) {
	tape := engine.NewTape(dev)
	defer tape.Close()
	inputs := make([][]*engine.Tensor, copies)
	for c := range inputs {
		for i, in := range s.inputs {
			inputs[c] = append(inputs[c], in.tensor(tape, s.rows, weights[i]))
		}
	}
	var results []*engine.Tensor
	if seconds[0], err = clock(dev, func() {
		for _, in := range inputs {
			results = append(results, s.forward(tape, in))
		}
	}); err != nil {
		return seconds, err
	}
	for _, y := range results {
		input{cols: y.Cols, spread: 1}.fill(tape.AddTo(y))
	}
	seconds[1], err = clock(dev, tape.Backward)
	return seconds, err
}

// clock returns how long work takes, from its first launch to the end of the last.
func clock(dev engine.Device, work func()) (float64, error) {
	if err := engine.Wait(dev); err != nil {
		return 0, err
	}
	started := time.Now()
	work()
	err := engine.Wait(dev)
	return time.Since(started).Seconds(), err
}

func (in input) tensor(t *engine.Tape, rows int, p *engine.Param) *engine.Tensor {
	if p != nil {
		return p.Tensor
	}
	make := t.New
	if in.kind == float32s {
		make = t.NewFloat32
	}
	x := make(rows, in.cols)
	in.fill(x)
	return x
}

// fill gives x random elements, the same some rows on: to draw all would take longer than the
// measurement.
func (in input) fill(x *engine.Tensor) {
	r := rand.New(rand.NewPCG(uint64(x.Rows), uint64(x.Cols)))
	rows := min(x.Rows, max(1, 1<<18/x.Cols))
	block := make([]float32, rows*x.Cols)
	for i := range block {
		block[i] = float32(in.mean + in.spread*(2*r.Float64()-1))
	}
	for first := 0; first < x.Rows; first += rows {
		x.WriteRows(block[:min(rows, x.Rows-first)*x.Cols], first)
	}
}

// measureUpdate times AdamW with both kinds of means, and the norm of gradients.
func measureUpdate(dev engine.Device, rows, cols, repeats int) ([]Timed, error) {
	p := engine.NewParam(dev, "weights", rows, cols)
	params := []*engine.Param{p}
	input{cols: cols, spread: 1}.fill(p.Tensor)
	input{cols: cols, spread: 1}.fill(p.Grad)
	elements := float64(rows * cols)
	var timed []Timed
	measure := func(name string, bytes float64, work func()) error {
		best := math.Inf(1)
		for i := range repeats + 1 {
			seconds, err := clock(dev, work)
			if err != nil {
				return err
			}
			if i > 0 {
				best = min(best, seconds)
			}
		}
		timed = append(timed, Timed{Name: fmt.Sprintf("%s, %.0f M weights", name, elements/1e6), Pass: engine.Update.String(), Seconds: best, Bytes: bytes * elements})
		return nil
	}
	o := adamw.Options{LR: 1e-6, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}
	moving := 28. // gradient read; weight and two means in float32 read and written
	if p.Bytes() < 4*rows*cols {
		moving += 2 // the copy in bf16
	}
	state := adamw.NewState(params, []bool{true})
	if err := measure("AdamW", moving, func() { adamw.Step(dev, params, state, o, 1) }); err != nil {
		return nil, err
	}
	if engine.GPUOf(dev) != nil {
		state = adamw.NewBF16State(dev, params, []bool{true}, 1)
		if err := measure("AdamW, means in bf16", moving-8, func() { adamw.Step(dev, params, state, o, 1) }); err != nil {
			return nil, err
		}
	}
	return timed, measure("norm of gradients", 4, func() { gradnorm.Norm(dev, params) })
}

// WriteMarkdown writes the table.
func (r *Shapes) WriteMarkdown(to io.Writer) error {
	fmt.Fprintf(to, "%s", r.Device)
	if r.Copy > 0 {
		fmt.Fprintf(to, "; ceilings measured: copy %.2f TB/s, bf16 product of 8192 %.0f TFLOP/s", r.Copy/1e12, r.Product/1e12)
	}
	if r.Scale > 1 {
		fmt.Fprintf(to, "; all sizes divided by %d: these are no figures to compare", r.Scale)
	}
	fmt.Fprint(to, "\n\n| operator | pass | ms | TFLOP/s | TB/s | of ceiling | theirs, by their own figures |\n|---|---|---|---|---|---|---|\n")
	for _, t := range r.Timed {
		of := ""
		if r.Copy > 0 {
			of = fmt.Sprintf("%.0f %%", 100*max(t.FLOPs/r.Product, t.Bytes/r.Copy)/t.Seconds)
		}
		if _, err := fmt.Fprintf(to, "| %s | %s | %.3f | %.2f | %.3f | %s | %s |\n", t.Name, t.Pass, 1e3*t.Seconds, t.FLOPs/t.Seconds/1e12, t.Bytes/t.Seconds/1e12, of, t.Theirs); err != nil {
			return err
		}
	}
	return nil
}
