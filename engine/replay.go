package engine

import (
	"hash/maphash"
	"slices"

	"caper/cuda"
)

// A step of the same shape as one before asks its stream for the same work, to the last
// parameter: only what is in memory differs. From the third time on such work runs as one
// graph, which costs the processor one call instead of hundreds, and the GPU no gaps.
//
// Nobody has to say what a step's shape is. A GPU compares what it is asked for with the
// graphs it has; while that could become one of them it holds the work back, and when the
// step ends as the graph does, it launches that. At the first difference it asks the stream
// for what it held, and from then on for each piece of work at once.

// workKind tells what a stream is asked for.
type workKind byte

const (
	runKernel workKind = iota
	runProduct
	runFill
	runCopy
	runUpload // pinned memory to the GPU
	runFetch  // the GPU to pinned memory
)

// work is one thing that the stream is asked for. Fields that its kind has no use for are 0.
type work struct {
	kind     workKind
	function *cuda.Function
	launch   cuda.Launch
	product  cuda.Product
	at       [3]cuda.Ptr // of a product a, b and c; elsewhere to and from
	host     cuda.Host
	bytes    int
	value    byte
}

// sequence is work in order. args[i] are the parameters of work[i], if that is a kernel.
type sequence struct {
	work []work
	args []cuda.Args
}

// add appends work; the sequence keeps its memory when it is emptied.
func (s *sequence) add(w work, args *cuda.Args) {
	n := len(s.work)
	s.work = append(s.work, w)
	if n == len(s.args) {
		s.args = append(s.args, cuda.Args{})
	}
	s.args[n].Reset()
	if args != nil {
		s.args[n].Set(args)
	}
}

// agrees reports that work i is the same in both.
func (s *sequence) agrees(o *sequence, i int) bool {
	return i < len(s.work) && i < len(o.work) && s.work[i] == o.work[i] && s.args[i].Equal(&o.args[i])
}

func (s *sequence) hash(seed maphash.Seed) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for i := range s.work {
		maphash.WriteComparable(&h, s.work[i])
		h.Write(s.args[i].Bytes())
	}
	return h.Sum64()
}

func (s *sequence) clone() sequence {
	c := sequence{work: slices.Clone(s.work), args: make([]cuda.Args, len(s.work))}
	for i := range c.args {
		c.args[i].Set(&s.args[i])
	}
	return c
}

// graph is work that has come often.
type graph struct {
	sequence
	exec *cuda.GraphExec
}

const (
	shortestGraph = 16   // pieces of work: fewer cost less than a graph
	mostGraphs    = 64   // those that were not used for longest make room
	mostSeen      = 4096 // sequences that came once
	longestGraph  = 1 << 16
)

// replay is what a GPU knows of the work that recurs.
type replay struct {
	step    sequence // since the last submit
	holding bool     // none of it is asked for yet, as it may become one of
	matches []*graph

	graphs   []*graph // the one used last in front
	seed     maphash.Seed
	seen     map[uint64]bool // hashes of the sequences that came
	launched int
	refused  error // why there are no graphs
}

// Replays tells how many graphs a GPU has, how often graphs were launched and, where it
// has had to do without, why.
func (g *GPU) Replays() (graphs, launches int, refused error) {
	return len(g.replay.graphs), g.replay.launched, g.replay.refused
}

// ask asks the stream for work, now or, where a graph may do it, by the time of submit.
func (g *GPU) ask(w work, args *cuda.Args) {
	r := &g.replay
	n := len(r.step.work)
	if n == 0 {
		r.holding, r.matches = len(r.graphs) > 0, append(r.matches[:0], r.graphs...)
	}
	r.step.add(w, args)
	if !r.holding {
		g.fail(g.run(&r.step, n))
	} else if r.matches = slices.DeleteFunc(r.matches, func(m *graph) bool { return !m.agrees(&r.step, n) }); len(r.matches) == 0 {
		g.release()
	}
	if n+1 == longestGraph {
		g.submit()
	}
}

// release asks for what was held back.
func (g *GPU) release() {
	g.replay.holding = false
	for i := range g.replay.step.work {
		if g.err != nil {
			return
		}
		g.fail(g.run(&g.replay.step, i))
	}
}

// submit ends a sequence: all that was asked for is in the stream when it returns.
func (g *GPU) submit() {
	r := &g.replay
	n := len(r.step.work)
	if n == 0 {
		return
	}
	if r.holding {
		if i := slices.IndexFunc(r.matches, func(m *graph) bool { return len(m.work) == n }); i >= 0 && g.err == nil {
			g.launch(r.matches[i])
		} else {
			g.release()
		}
	}
	if !r.holding && g.err == nil && r.refused == nil && n >= shortestGraph {
		g.notice()
	}
	r.step.work, r.holding = r.step.work[:0], false
}

// launch runs a graph and moves it to the front.
func (g *GPU) launch(m *graph) {
	r := &g.replay
	g.fail(m.exec.Launch(g.stream))
	r.launched++
	at := slices.Index(r.graphs, m)
	copy(r.graphs[1:at+1], r.graphs[:at])
	r.graphs[0] = m
}

// notice remembers a sequence that has just run, and makes it a graph when it came before.
func (g *GPU) notice() {
	r := &g.replay
	if r.seen == nil || len(r.seen) == mostSeen {
		r.seed, r.seen = maphash.MakeSeed(), map[uint64]bool{}
	}
	h := r.step.hash(r.seed)
	if !r.seen[h] {
		r.seen[h] = true
		return
	}
	m, err := g.capture()
	if err != nil {
		r.refused = err // all works without graphs, too
		return
	}
	if len(r.graphs) == mostGraphs {
		g.fail(r.graphs[mostGraphs-1].exec.Close())
		r.graphs = r.graphs[:mostGraphs-1]
	}
	r.graphs = slices.Insert(r.graphs, 0, m)
}

// capture makes a graph of the sequence, which is not run by that.
func (g *GPU) capture() (*graph, error) {
	s := g.replay.step.clone()
	recorded, err := g.stream.Capture(func() error {
		for i := range s.work {
			if err := g.run(&s, i); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	exec, err := recorded.Instantiate()
	if closed := recorded.Close(); err == nil {
		err = closed
	}
	return &graph{s, exec}, err
}

// run asks the stream for work i of a sequence.
func (g *GPU) run(s *sequence, i int) error {
	switch w := &s.work[i]; w.kind {
	case runKernel:
		return w.function.Launch(g.stream, w.launch, &s.args[i])
	case runProduct:
		return g.blas.MatMul(w.product, w.at[0], w.at[1], w.at[2], 0)
	case runFill:
		return g.stream.Fill(w.at[0], w.value, cuda.Bytes(w.bytes))
	case runCopy:
		return g.stream.Copy(w.at[0], w.at[1], cuda.Bytes(w.bytes))
	case runUpload:
		return g.stream.ToDevice(w.at[0], w.host)
	default:
		return g.stream.ToHost(w.host, w.at[0])
	}
}

// closeGraphs gives the graphs back.
func (r *replay) closeGraphs() (errs []error) {
	for _, m := range r.graphs {
		errs = append(errs, m.exec.Close())
	}
	r.graphs = nil
	return errs
}
