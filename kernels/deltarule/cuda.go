package deltarule

import (
	_ "embed"
	"fmt"

	"caper/cuda"
	"caper/engine"
)

//go:embed op.cu
var text string

var (
	source           = engine.NewKernelText("kernels/deltarule/op.cu", text)
	prepareChunks    = source.Kernel("deltarule_prepare")
	forwardTasks     = source.Kernel("deltarule_forward")
	recallStates     = source.Kernel("deltarule_states")
	backwardRuns     = source.Kernel("deltarule_backward")
	backwardChunks   = source.Kernel("deltarule_gradients")
	decodeOpenChunks = source.Kernel("deltarule_decode")
)

// Dynamic shared memory of the kernels; keys is the width of their tiles of keys, and a chunk
// of deltarule_forward has 3 matrices, one of deltarule_backward 2.
func tileKeys(keyDim int) int {
	if keyDim <= 32 {
		return 32
	}
	return 128
}

func prepareBytes(keys int) int { return max(4*chunk*(keys+8), 4*(2*chunk+16)*(chunk+4)) }

func stageBytes(keys, matrices, warps int) int {
	return 2*chunk*(2*(keys+8)+matrices*(chunk+8)+16*warps+8) + 4*3*chunk
}

func recallBytes(keys, warps int) int { return 2 * (2*chunk*(keys+8+16*warps+8) + 4*3*chunk) }

func gradientBytes(keys int) int {
	return 4*chunk*(keys+8) + max(6*chunk*(chunk+8)+4*chunk*(keys+8), 4*chunk*(chunk+8)+4*chunk*(chunk+1))
}

// keptBytes is a state's gradient as deltarule_backward keeps it.
func keptBytes(o Options) int {
	return 4 * o.ValueHeads * ((o.ValueDim + 15) / 16 * 16) * tileKeys(o.KeyDim)
}

// gpuCall is one pass of a rule on a GPU: its inputs, its schedule and the memory that its
// kernels share.
type gpuCall struct {
	t                     *engine.Tape
	o                     Options
	s                     *schedule
	q, k, g, beta         *engine.Tensor
	matrices, decays      cuda.Ptr
	levels, firstChunk    cuda.Ptr
	from, to              cuda.Ptr
	chunkRow, chunkLen    cuda.Ptr
	pitch                 int // of borders: KeyDim filled up to a multiple of 8
	stateSize, borderSize int // bytes of a state and of a border
}

func newGPUCall(t *engine.Tape, s *schedule, o Options, q, k, g, beta *engine.Tensor) gpuCall {
	if o.KeyDim > 128 {
		panic(fmt.Sprintf("deltarule: keys of %d columns on a GPU, which takes at most 128: use --device cpu", o.KeyDim))
	}
	pitch := (o.KeyDim + 7) / 8 * 8
	return gpuCall{t: t, o: o, s: s, q: q, k: k, g: g, beta: beta,
		matrices: t.Workspace(len(s.chunkRow) * o.ValueHeads * 3 * 2 * chunk * chunk), decays: t.Workspace(len(s.chunkRow) * o.ValueHeads * 3 * 4 * chunk),
		levels: t.Ints(s.levels), firstChunk: t.Ints(s.firstChunk), from: t.Ints(s.from), to: t.Ints(s.to),
		chunkRow: t.Ints(s.chunkRow), chunkLen: t.Ints(s.chunkLen), pitch: pitch,
		stateSize: 4 * o.ValueHeads * o.KeyDim * o.ValueDim, borderSize: 2 * o.ValueHeads * o.ValueDim * pitch,
	}
}

// walk is a launch over a level of tasks or runs: warps of 16 value columns, as many to a
// block as leave none of the GPU's multiprocessors without one, and two where that is hopeless.
func (c *gpuCall) walk(levels []int32, level int) (l cuda.Launch, warps int) {
	tasks, columns := int(levels[level+1]-levels[level]), (c.o.ValueDim+15)/16
	for warps = 8; warps > 2 && (warps >= 2*columns || tasks*c.o.ValueHeads*((columns+warps-1)/warps) < c.t.GPU().Info().SMs); warps /= 2 {
	}
	l.Grid = cuda.Dim{X: uint32(tasks), Y: uint32(c.o.ValueHeads), Z: uint32((columns + warps - 1) / warps)}
	l.Block = cuda.Dim{X: uint32(32 * warps)}
	return l, warps
}

// stages sets the launch's shared memory: two chunks where there is room for them, so that
// the next is under way while one is worked on.
func (c *gpuCall) stages(l *cuda.Launch, bytes int) int {
	stages := 1
	if cuda.Bytes(2*bytes) <= c.t.GPU().Info().SharedOptIn {
		stages = 2
	}
	l.Shared = cuda.Bytes(stages * bytes)
	return stages
}

func (c *gpuCall) heads(a *engine.Args) *engine.Args {
	return a.Int(c.o.KeyHeads).Int(c.o.ValueHeads).Int(c.o.KeyDim).Int(c.o.ValueDim)
}

// prepare makes the matrices and decays of all chunks, for the backward pass where adjoint.
func (c *gpuCall) prepare(adjoint bool) {
	o := c.o
	c.t.Launch(prepareChunks, cuda.Launch{Grid: cuda.Dim{X: uint32(len(c.s.chunkRow)), Y: uint32(o.KeyHeads)}, Block: cuda.Dim{X: 128},
		Shared: cuda.Bytes(prepareBytes(tileKeys(o.KeyDim)))}, c.t.Args().
		Tensor(c.q).Tensor(c.k).Tensor(c.g).Tensor(c.beta).Ptr(c.chunkRow).Ptr(c.chunkLen).Ptr(c.matrices).Ptr(c.decays).
		Int(o.KeyHeads).Int(o.ValueHeads).Int(o.KeyDim).Bool(adjoint).Stride(c.q).Stride(c.k).Stride(c.g).Stride(c.beta))
}

func (c *gpuCall) forward(v, out, residuals *engine.Tensor, states cuda.Ptr) {
	c.prepare(false)
	for level := range len(c.s.levels) - 1 {
		l, warps := c.walk(c.s.levels, level)
		stages := c.stages(&l, stageBytes(tileKeys(c.o.KeyDim), 3, warps))
		c.t.Launch(forwardTasks, l, c.heads(c.t.Args().
			Tensor(c.q).Tensor(c.k).Tensor(v).Ptr(c.matrices).Ptr(c.decays).Ptr(c.levels).Ptr(c.firstChunk).Ptr(c.from).Ptr(c.to).
			Ptr(c.chunkRow).Ptr(c.chunkLen).Ptr(states).Tensor(out).Tensor(residuals)).Int(level).Int(stages).
			Stride(c.q).Stride(c.k).Stride(v).Stride(out).Stride(residuals))
	}
}

func cudaForward(t *engine.Tape, o *op) {
	s := engine.Once(t, o.tree, func(s *schedule) { s.takeTree(o.tree) })
	c := newGPUCall(t, s, o.o, o.q, o.k, o.g, o.beta)
	c.forward(o.v, o.out, o.residuals, t.Workspace(s.states*c.stateSize))
}

func cudaBackward(t *engine.Tape, o *op, dout, dq, dk, dv, dg, dbeta *engine.Tensor) {
	s := engine.Once(t, o.tree, func(s *schedule) { s.takeTree(o.tree) })
	c := newGPUCall(t, s, o.o, o.q, o.k, o.g, o.beta)
	states, dstates := t.Workspace(s.borders*c.borderSize), t.Workspace(s.borders*c.borderSize)
	pitch := (o.v.Cols + 7) / 8 * 8
	solved := t.Workspace(2 * o.v.Rows * pitch)
	c.prepare(true)
	c.recall(o.residuals, states, t.Workspace(s.states*c.stateSize))
	c.backward(dout, dv, dstates, solved, pitch)

	t.Launch(backwardChunks, cuda.Launch{Grid: cuda.Dim{X: uint32(len(s.chunkRow)), Y: uint32(o.o.KeyHeads)}, Block: cuda.Dim{X: 256},
		Shared: cuda.Bytes(gradientBytes(tileKeys(o.o.KeyDim)))}, c.heads(t.Args().
		Tensor(o.q).Tensor(o.k).Tensor(o.g).Tensor(o.beta).Tensor(dout).Tensor(o.residuals).Ptr(solved).Ptr(states).Ptr(dstates).
		Ptr(c.chunkRow).Ptr(c.chunkLen).Ptr(t.Ints(s.before)).Ptr(t.Ints(s.after)).Tensor(dq).Tensor(dk).Tensor(dg).Tensor(dbeta)).
		Int(c.pitch).Accumulate(dq).Accumulate(dk).Accumulate(dg).Accumulate(dbeta).
		Stride(o.q).Stride(o.k).Stride(o.g).Stride(o.beta).Stride(dout).Stride(o.residuals).Int64(pitch).Stride(dq).Stride(dk).Stride(dg).Stride(dbeta))
}

// recall makes the states at the borders again.
func (c *gpuCall) recall(residuals *engine.Tensor, borders, states cuda.Ptr) {
	for level := range len(c.s.levels) - 1 {
		l, warps := c.walk(c.s.levels, level)
		l.Shared = cuda.Bytes(recallBytes(tileKeys(c.o.KeyDim), warps))
		c.t.Launch(recallStates, l, c.heads(c.t.Args().
			Tensor(c.k).Tensor(residuals).Ptr(c.decays).Ptr(c.levels).Ptr(c.firstChunk).Ptr(c.from).Ptr(c.to).Ptr(c.chunkRow).Ptr(c.chunkLen).
			Ptr(c.t.Ints(c.s.after)).Ptr(states).Ptr(borders)).Int(level).Int(c.pitch).Stride(c.k).Stride(residuals))
	}
}

// backward leaves the gradients of the states at the borders, those of the values, and in
// solved what deltarule_gradients needs of the rows.
func (c *gpuCall) backward(dout, dv *engine.Tensor, borders, solved cuda.Ptr, pitch int) {
	s := c.s
	sums := c.t.Workspace((len(s.runs) - 1 - s.roots()) * keptBytes(c.o))
	for level := len(s.runLevels) - 2; level >= 0; level-- {
		l, warps := c.walk(s.runLevels, level)
		stages := c.stages(&l, stageBytes(tileKeys(c.o.KeyDim), 2, warps))
		c.t.Launch(backwardRuns, l, c.heads(c.t.Args().
			Tensor(c.q).Tensor(c.k).Tensor(dout).Ptr(c.matrices).Ptr(c.decays).Ptr(c.t.Ints(s.runLevels)).Ptr(c.t.Ints(s.runs)).Ptr(c.t.Ints(s.childRuns)).
			Ptr(c.firstChunk).Ptr(c.chunkRow).Ptr(c.chunkLen).Ptr(c.t.Ints(s.after)).Ptr(sums).Ptr(borders).Ptr(solved).Tensor(dv)).
			Int(level).Int(s.roots()).Int(c.pitch).Int(stages).Accumulate(dv).
			Stride(c.q).Stride(c.k).Stride(dout).Int64(pitch).Stride(dv))
	}
}

// stepPlan is a batch of steps, sorted into those that come as whole chunks and single rows.
type stepPlan struct {
	chunks schedule
	single []int32 // their numbers
}

func cudaDecode(t *engine.Tape, o *decodeOp) {
	p, s, c := o.c.o, o.s, o.c
	plan := engine.Once(t, s, func(plan *stepPlan) {
		plan.chunks.takeSteps(s)
		plan.single = plan.single[:0]
		for i, open := range s.Open {
			if open >= 0 {
				plan.single = append(plan.single, int32(i))
			}
		}
	})
	if len(plan.chunks.chunkRow) > 0 {
		call := newGPUCall(t, &plan.chunks, p, o.q, o.k, o.g, o.beta)
		call.forward(o.v, o.out, nil, c.states.Address())
	}
	t.Launch(decodeOpenChunks, cuda.Launch{Grid: cuda.Dim{X: uint32(len(plan.single)), Y: uint32(p.ValueHeads)}, Block: cuda.Dim{X: 256}}, t.Args().
		Tensor(o.q).Tensor(o.k).Tensor(o.v).Tensor(o.g).Tensor(o.beta).
		Ptr(t.Ints(plan.single)).Ptr(t.Ints(s.Start)).Ptr(t.Ints(s.From)).Ptr(t.Ints(s.To)).Ptr(t.Ints(s.Open)).Ptr(t.Ints(s.Filled)).
		Tensor(c.states).Tensor(c.keys).Tensor(c.writes).Tensor(c.decays).Tensor(o.out).
		Int(p.KeyHeads).Int(p.ValueHeads).Int(p.KeyDim).Int(p.ValueDim).
		Stride(o.q).Stride(o.k).Stride(o.v).Stride(o.g).Stride(o.beta).Stride(o.out))
}
