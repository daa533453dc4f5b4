package deltarule

import (
	"fmt"
	"testing"

	"caper/cuda/emulator"
	"caper/engine"
	"caper/kernels/optest"
	"caper/kernels/treetest"
)

var kernels = optest.Kernels{
	File: "kernels/deltarule/op.cu",
	Registers: map[string]int{"deltarule_prepare": 176, "deltarule_forward": 240, "deltarule_states": 128,
		"deltarule_backward": 208, "deltarule_gradients": 248, "deltarule_decode": 80},
}

func TestKernelsCompile(t *testing.T) { kernels.Compile(t) }

// cudaCases are the model's dimensions, the tiny model's, and ones that are no multiples of
// anything; decays that keep all, forget all, and both in one chunk.
func cudaCases(races bool) []*proof {
	model := Options{KeyHeads: 1, ValueHeads: 2, KeyDim: 128, ValueDim: 128}
	small := Options{KeyHeads: 2, ValueHeads: 4, KeyDim: 16, ValueDim: 16}
	odd := Options{KeyHeads: 2, ValueHeads: 2, KeyDim: 35, ValueDim: 21}
	forgetting := func(x float64) float64 {
		if x > 1 {
			return -7
		}
		return weak(x)
	}
	depth := treetest.Shape{Name: "depth 4", Parents: []int{-1, 0, 1, 2, 2, 0, -1}, Lengths: []int{65, 1, 1, 5, 1, 70, 3}}
	if races {
		narrow := Options{KeyHeads: 1, ValueHeads: 2, KeyDim: 16, ValueDim: 40}
		return []*proof{newProof(narrow, mixed, treetest.Shape{Name: "around a chunk", Parents: []int{-1, 0, 1, 1}, Lengths: []int{65, 1, 2, 1}})}
	}
	proofs := []*proof{newProof(model, mixed, depth), newProof(odd, mixed, treetest.Shapes[3])}
	for _, decay := range []func(float64) float64{mixed, strong, abrupt, forgetting} {
		proofs = append(proofs, newProof(small, decay, treetest.Shapes[6]))
	}
	for _, shape := range []treetest.Shape{treetest.Shapes[0], treetest.Shapes[2], treetest.Shapes[4], treetest.Shapes[7], wide()} {
		proofs = append(proofs, newProof(tiny, mixed, shape))
	}
	if testing.Short() {
		return proofs[1:3]
	}
	return proofs
}

// wide has more branches than are taken side by side.
func wide() treetest.Shape {
	s := treetest.Shape{Name: "wide", Parents: []int{-1}, Lengths: []int{3}}
	for i := range 2*maxRuns + 3 {
		s.Parents, s.Lengths = append(s.Parents, 0), append(s.Lengths, 1+i%2)
	}
	return s
}

func TestKernels(t *testing.T) {
	proofs, races := cudaCases(false), cudaCases(true)
	kernels.Run(t, func(d *optest.EmulatedGPU) {
		cases := proofs
		if d.Races {
			cases = races
		}
		for i, p := range cases {
			p.prove(d, 2-i%2)
		}
	})
}

// proof is a case with what the specification gives.
type proof struct {
	name        string
	o           Options
	tree        *engine.Tree
	s           *schedule
	in          [][]float64 // q, k, v, g, beta
	dout        []float64
	out         []float64
	gradients   [][]float64 // of the inputs
	rows, qk, v int         // rows; columns of q and k, and of v
}

func newProof(o Options, decay func(float64) float64, shape treetest.Shape) *proof {
	tree := shape.Tree()
	p := &proof{name: fmt.Sprintf("%s, %+v: ", shape.Name, o), o: o, tree: tree, s: new(schedule),
		rows: tree.Rows(), qk: o.KeyHeads * o.KeyDim, v: o.ValueHeads * o.ValueDim}
	p.s.takeTree(tree)
	tape := engine.NewTape(engine.Reference())
	var in []*engine.Tensor
	for i, input := range build(o, decay)(tree).Inputs {
		x := tape.New(input.Rows, input.Cols)
		values := input.Values
		if values == nil {
			values = treetest.Draw(input.Name, input.Rows*input.Cols, func(x float64) float64 { return x })
		}
		for e, v := range values {
			if i < 3 {
				v = optest.RoundBF16(v)
			}
			x.Set(e/x.Cols, e%x.Cols, v)
		}
		in = append(in, x)
		p.in = append(p.in, elements(x))
	}
	out := Forward(tape, in[0], in[1], in[2], in[3], in[4], tree, o)
	seed := tape.AddTo(out)
	for e, v := range treetest.Draw("dout", p.rows*p.v, func(x float64) float64 { return x }) {
		p.dout = append(p.dout, optest.RoundBF16(v))
		seed.Set(e/p.v, e%p.v, p.dout[e])
	}
	tape.Backward()
	p.out = elements(out)
	for _, x := range in {
		p.gradients = append(p.gradients, elements(tape.Gradient(x)))
	}
	return p
}

func elements(x *engine.Tensor) []float64 {
	var values []float64
	for r := range x.Rows {
		for c := range x.Cols {
			values = append(values, x.At(r, c))
		}
	}
	return values
}

// launch is what all kernels of a case take.
type launch struct {
	*proof
	d                                                        *optest.EmulatedGPU
	stages, keys                                             int
	q, k, val, dout, out, residuals                          optest.Matrix
	g, beta, matrices, decays, states                        *emulator.Memory
	levels, firstChunk, from, to, row, length, before, after *emulator.Memory
}

func (p *proof) prove(d *optest.EmulatedGPU, stages int) {
	d.Helper()
	l := p.upload(d, stages)
	l.prepare(0)
	l.forward()
	l.prepare(1)
	l.backward()
}

func (p *proof) upload(d *optest.EmulatedGPU, stages int) *launch {
	s := p.s
	chunks := len(s.chunkRow)
	l := &launch{proof: p, d: d, stages: stages, keys: 32,
		q: d.Matrix(p.rows, p.qk, p.in[0]), k: d.Matrix(p.rows, p.qk, p.in[1]), val: d.Matrix(p.rows, p.v, p.in[2]),
		dout: d.Matrix(p.rows, p.v, p.dout), out: d.Matrix(p.rows, p.v, nil), residuals: d.Matrix(p.rows, p.v, nil),
		g: d.Float32(p.in[3]), beta: d.Float32(p.in[4]),
		matrices: d.NewBF16(chunks * p.o.ValueHeads * 3 * chunk * chunk), decays: d.NewFloat32(chunks * p.o.ValueHeads * 3 * chunk),
		states: d.NewFloat32(max(1, s.states) * p.o.ValueHeads * p.o.KeyDim * p.o.ValueDim),
		levels: optest.Copy(d, s.levels), firstChunk: optest.Copy(d, s.firstChunk), from: optest.Copy(d, s.from), to: optest.Copy(d, s.to),
		row: optest.Copy(d, s.chunkRow), length: optest.Copy(d, s.chunkLen), before: optest.Copy(d, s.before), after: optest.Copy(d, s.after),
	}
	if p.o.KeyDim > 32 {
		l.keys = 128
	}
	return l
}

func (l *launch) prepare(adjoint int32) {
	o := l.o
	l.d.Launch("deltarule_prepare", emulator.Launch{Grid: [3]int{len(l.s.chunkRow), o.KeyHeads}, Block: [3]int{128}, Shared: prepareBytes(l.keys)},
		l.q.Memory, l.k.Memory, l.g, l.beta, l.row, l.length, l.matrices, l.decays, int32(o.KeyHeads), int32(o.ValueHeads), int32(o.KeyDim), adjoint,
		int64(l.q.Stride), int64(l.k.Stride), int64(o.ValueHeads), int64(o.ValueHeads))
}

// Rounding to bf16 is off by up to 2^-8 and by 2^-9.3 on average. A reading is rounded, and so
// are, before, state, writes and weights that it sums: 0.3 % of the readings' size on
// average, and the worst of 10^5 is six times that.
const readingTolerance = 5.0 / 256

func (l *launch) forward() {
	for level := range len(l.s.levels) - 1 {
		l.level(level)
	}
	l.d.CheckMatrix(l.name+"out", l.out, l.proof.out, readingTolerance)
}

func (l *launch) level(level int) {
	o, warps := l.o, 2
	l.d.Launch("deltarule_forward", l.walk(len(l.s.from), warps, 3),
		l.q.Memory, l.k.Memory, l.val.Memory, l.matrices, l.decays, l.levels, l.firstChunk, l.from, l.to, l.row, l.length, l.states, l.out.Memory,
		l.residuals.Memory, int32(o.KeyHeads), int32(o.ValueHeads), int32(o.KeyDim), int32(o.ValueDim), int32(level), int32(l.stages),
		int64(l.q.Stride), int64(l.k.Stride), int64(l.val.Stride), int64(l.out.Stride), int64(l.residuals.Stride))
}

// walk is a launch over a level, with as many blocks as there are tasks.
func (l *launch) walk(tasks, warps, matrices int) emulator.Launch {
	return emulator.Launch{Grid: [3]int{tasks, l.o.ValueHeads, (l.o.ValueDim + 16*warps - 1) / (16 * warps)}, Block: [3]int{32 * warps},
		Shared: l.stages * stageBytes(l.keys, matrices, warps)}
}

// Backward, every product's operands are rounded, up to four products deep.
const gradientTolerance = 8.0 / 256

func (l *launch) backward() {
	o, s, warps, d := l.o, l.s, 2, l.d
	pitch, chunks := (o.KeyDim+7)/8*8, len(s.chunkRow)
	border := max(1, s.borders) * o.ValueHeads * o.ValueDim * pitch
	states, dstates, solved := d.NewBF16(border), d.NewBF16(border), d.Matrix(l.rows, l.v, nil)
	roots := int(s.levels[1])
	sums := d.NewFloat32(max(1, len(s.runs)-1-roots) * keptBytes(o) / 4)
	for level := range len(s.levels) - 1 {
		shape := l.walk(len(s.from), warps, 0)
		shape.Shared = recallBytes(l.keys, warps)
		d.Launch("deltarule_states", shape,
			l.k.Memory, l.residuals.Memory, l.decays, l.levels, l.firstChunk, l.from, l.to, l.row, l.length, l.after, l.states, states,
			int32(o.KeyHeads), int32(o.ValueHeads), int32(o.KeyDim), int32(o.ValueDim), int32(level), int32(pitch), int64(l.k.Stride), int64(l.residuals.Stride))
	}
	// The gradients of the tree's other uses are there already.
	others := func(n int, round bool) []float64 {
		x := treetest.Draw("other", n, func(x float64) float64 { return x })
		for i := range x {
			if round {
				x[i] = optest.RoundBF16(x[i])
			}
		}
		return x
	}
	add := int32(2 - l.stages)
	grads := make([]optest.Matrix, 3)
	for i, cols := range []int{l.qk, l.qk, l.v} {
		grads[i] = d.Matrix(l.rows, cols, others(l.rows*cols, true))
	}
	dg, dbeta := d.Float32(others(l.rows*o.ValueHeads, false)), d.Float32(others(l.rows*o.ValueHeads, false))
	runLevels, runs, childRuns := optest.Copy(d, s.runLevels), optest.Copy(d, s.runs), optest.Copy(d, s.childRuns)
	for level := len(s.levels) - 2; level >= 0; level-- {
		d.Launch("deltarule_backward", l.walk(len(s.runs)-1, warps, 2),
			l.q.Memory, l.k.Memory, l.dout.Memory, l.matrices, l.decays, runLevels, runs, childRuns, l.firstChunk, l.row, l.length, l.after,
			sums, dstates, solved.Memory, grads[2].Memory, int32(o.KeyHeads), int32(o.ValueHeads), int32(o.KeyDim), int32(o.ValueDim), int32(level),
			int32(roots), int32(pitch), int32(l.stages), add,
			int64(l.q.Stride), int64(l.k.Stride), int64(l.dout.Stride), int64(solved.Stride), int64(grads[2].Stride))
	}
	heads := int64(o.ValueHeads)
	d.Launch("deltarule_gradients", emulator.Launch{Grid: [3]int{chunks, o.KeyHeads}, Block: [3]int{256}, Shared: gradientBytes(l.keys)},
		l.q.Memory, l.k.Memory, l.g, l.beta, l.dout.Memory, l.residuals.Memory, solved.Memory, states, dstates, l.row, l.length, l.before, l.after,
		grads[0].Memory, grads[1].Memory, dg, dbeta, int32(o.KeyHeads), int32(o.ValueHeads), int32(o.KeyDim), int32(o.ValueDim), int32(pitch), add, add, add, add,
		int64(l.q.Stride), int64(l.k.Stride), heads, heads, int64(l.dout.Stride), int64(l.residuals.Stride), int64(solved.Stride),
		int64(grads[0].Stride), int64(grads[1].Stride), heads, heads)
	for i, name := range []string{"dq", "dk", "dv"} {
		d.CheckMatrix(l.name+name, grads[i], sum(l.gradients[i], others(len(l.gradients[i]), true), add), gradientTolerance)
	}
	d.CheckFloat32(l.name+"dg", dg, sum(l.gradients[3], others(len(l.gradients[3]), false), add), gradientTolerance)
	l.checkForgetting(dg, add)
	d.CheckFloat32(l.name+"dbeta", dbeta, sum(l.gradients[4], others(len(l.gradients[4]), false), add), gradientTolerance)
}

// sum returns x, and y added to it if add is set.
func sum(x, y []float64, add int32) []float64 {
	s := make([]float64, len(x))
	for i := range s {
		s[i] = x[i] + float64(add)*y[i]
	}
	return s
}

// checkForgetting holds the gradients of strong decays against themselves: they are exp(g) of
// what other tokens have, so a difference of sums that do not have that factor is all noise.
func (l *launch) checkForgetting(dg *emulator.Memory, add int32) {
	var got, want []float64
	for e, g := range l.in[3] {
		if g < -6 && g > -20 && add == 0 {
			got, want = append(got, float64(emulator.Of[float32](dg)[e])), append(want, l.gradients[3][e])
		}
	}
	if len(got) > 0 {
		l.d.CheckFloat32(l.name+"dg of strong decays", l.d.Float32(got), want, gradientTolerance)
	}
}

// TestDecodeKernels takes a prompt as whole chunks and its samples row by row, all together.
func TestDecodeKernels(t *testing.T) {
	kernels.Run(t, func(d *optest.EmulatedGPU) {
		small := Options{KeyHeads: 2, ValueHeads: 4, KeyDim: 16, ValueDim: 16}
		odd := Options{KeyHeads: 1, ValueHeads: 2, KeyDim: 35, ValueDim: 133}
		if d.Races {
			proveDecode(d, newProof(small, mixed, treetest.Shape{Parents: []int{-1, 0, 0}, Lengths: []int{3, 2, 1}}))
			return
		}
		proveDecode(d, newProof(small, mixed, treetest.Shape{Parents: []int{-1, 0, 0, 0}, Lengths: []int{70, 1, 67, 130}}))
		proveDecode(d, newProof(odd, strong, treetest.Shape{Parents: []int{-1, 0}, Lengths: []int{1, 66}}))
	})
}

// proveDecode has state 0 for the prompt's end and one for each sample. The prompt goes through
// deltarule_forward.
func proveDecode(d *optest.EmulatedGPU, p *proof) {
	d.Helper()
	o, samples, state := p.o, len(p.tree.Start)-1, p.o.ValueHeads*p.o.KeyDim*p.o.ValueDim
	q, k, v := d.Matrix(p.rows, p.qk, p.in[0]), d.Matrix(p.rows, p.qk, p.in[1]), d.Matrix(p.rows, p.v, p.in[2])
	g, beta, out := d.Float32(p.in[3]), d.Float32(p.in[4]), d.Matrix(p.rows, p.v, nil)
	states, keys := d.NewFloat32((1+samples)*state), d.NewBF16(samples*o.KeyHeads*o.KeyDim*chunk)
	writes, decays := d.NewFloat32(samples*o.ValueHeads*chunk*o.ValueDim), d.NewFloat32(samples*o.ValueHeads*chunk)
	prompt := *p
	prompt.s = new(schedule)
	var steps Steps
	steps.Add(int(p.tree.Len[0]), -1, 0)
	prompt.s.takeSteps(&steps)
	l := prompt.upload(d, 1)
	l.states, l.out = states, out
	l.prepare(0)
	l.level(0)
	for i := int32(0); ; i++ {
		var steps, start, from, to, open, filled []int32
		for sample := range samples {
			start = append(start, p.tree.Start[1+sample]+i)
			to, open, filled = append(to, int32(1+sample)), append(open, int32(sample)), append(filled, i%chunk)
			if i < chunk {
				from = append(from, 0)
			} else {
				from = append(from, int32(1+sample))
			}
			if i < p.tree.Len[1+sample] {
				steps = append(steps, int32(sample))
			}
		}
		if len(steps) == 0 {
			break
		}
		heads := int64(o.ValueHeads)
		d.Launch("deltarule_decode", emulator.Launch{Grid: [3]int{len(steps), o.ValueHeads}, Block: [3]int{256}},
			q.Memory, k.Memory, v.Memory, g, beta, optest.Copy(d, steps), optest.Copy(d, start), optest.Copy(d, from), optest.Copy(d, to), optest.Copy(d, open), optest.Copy(d, filled),
			states, keys, writes, decays, out.Memory, int32(o.KeyHeads), int32(o.ValueHeads), int32(o.KeyDim), int32(o.ValueDim),
			int64(q.Stride), int64(k.Stride), int64(v.Stride), heads, heads, int64(out.Stride))
	}
	d.CheckMatrix(p.name+"decoded", out, p.out, readingTolerance)
}
