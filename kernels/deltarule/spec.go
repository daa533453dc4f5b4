package deltarule

import (
	"math"

	"caper/engine"
)

// The specification, in float64: the recurrence over single tokens. S is the state
// [KeyDim x ValueDim] after the row before t on its path, zero at the start of a
// sequence; c = KeyDim^-1/2; value head h reads key head h / (ValueHeads/KeyHeads):
//
//	S^  = exp(g_t) S           r   = v_t - S^^T k_t
//	S_t = S^ + k_t (beta_t r)^T    o_t = c S_t^T q_t
//
// and its adjoint, from the last row to the first, D = dL/dS_t being what the rows
// after t have left there:
//
//	dq = c S_t do              D += c q do^T
//	delta = beta r             dk = D delta            ddelta = D^T k
//	dbeta = <ddelta, r>        dv = dr = beta ddelta
//	dk -= S^ dr                D -= k dr^T
//	dg = <D, S^>               D exp(g) is added to dL/dS of the row before t
//
// Source: Yang et al. 2024 (arXiv 2412.06464), equation 10.

// specStep holds one value head's walk over the rows.
type specStep struct {
	q, k, v, g, beta *engine.Tensor
	tree             *engine.Tree
	o                Options
	head, keyHead    int
	states           [][]float64 // after each row
	decayed          []float64   // S^ of the current row
	r                []float64   // residual of the current row
}

func newSpecStep(q, k, v, g, beta *engine.Tensor, tree *engine.Tree, o Options, h int) *specStep {
	s := &specStep{q: q, k: k, v: v, g: g, beta: beta, tree: tree, o: o,
		head: h, keyHead: h / (o.ValueHeads / o.KeyHeads),
		decayed: make([]float64, o.KeyDim*o.ValueDim), r: make([]float64, o.ValueDim)}
	for t := range q.Rows {
		s.predict(t)
		next := append([]float64(nil), s.decayed...)
		kt, beta := s.row(k, t, s.keyHead, o.KeyDim), s.scalar(beta, t)
		for i, x := range kt {
			for j, r := range s.r {
				next[i*o.ValueDim+j] += x * beta * r
			}
		}
		s.states = append(s.states, next)
	}
	return s
}

// predict sets decayed and r for row t.
func (s *specStep) predict(t int) {
	clear(s.decayed)
	if before := s.tree.Previous(int32(t)); before >= 0 {
		decay := math.Exp(s.scalar(s.g, t))
		for i, x := range s.states[before] {
			s.decayed[i] = decay * x
		}
	}
	copy(s.r, s.row(s.v, t, s.head, s.o.ValueDim))
	for i, x := range s.row(s.k, t, s.keyHead, s.o.KeyDim) {
		for j := range s.r {
			s.r[j] -= s.decayed[i*s.o.ValueDim+j] * x
		}
	}
}

func (s *specStep) row(x *engine.Tensor, t, head, dim int) []float64 {
	at := t*x.Stride + head*dim
	return x.F64[at : at+dim]
}

func (s *specStep) scalar(x *engine.Tensor, t int) float64 { return x.F64[t*x.Stride+s.head] }

func specForward(q, k, v, g, beta, out *engine.Tensor, tree *engine.Tree, o Options) {
	scale := 1 / math.Sqrt(float64(o.KeyDim))
	for h := range o.ValueHeads {
		s := newSpecStep(q, k, v, g, beta, tree, o, h)
		for t := range q.Rows {
			y := s.row(out, t, h, o.ValueDim)
			clear(y)
			for i, x := range s.row(q, t, s.keyHead, o.KeyDim) {
				for j := range y {
					y[j] += scale * s.states[t][i*o.ValueDim+j] * x
				}
			}
		}
	}
}

// specBackward adds to the gradients, any of which may be nil.
func specBackward(q, k, v, g, beta, dout, dq, dk, dv, dg, dbeta *engine.Tensor, tree *engine.Tree, o Options) {
	for h := range o.ValueHeads {
		s := newSpecStep(q, k, v, g, beta, tree, o, h)
		D := make([][]float64, q.Rows)
		for t := range D {
			D[t] = make([]float64, o.KeyDim*o.ValueDim)
		}
		for t := q.Rows - 1; t >= 0; t-- {
			s.backward(t, D, dout, dq, dk, dv, dg, dbeta)
		}
	}
}

// backward takes row t off D[t] and leaves its share in D of the row before.
func (s *specStep) backward(t int, grads [][]float64, dout, dq, dk, dv, dg, dbeta *engine.Tensor) {
	s.predict(t)
	n, m := s.o.KeyDim, s.o.ValueDim
	scale := 1 / math.Sqrt(float64(n))
	D, S := grads[t], s.states[t]
	qt, kt := s.row(s.q, t, s.keyHead, n), s.row(s.k, t, s.keyHead, n)
	do, beta := s.row(dout, t, s.head, m), s.scalar(s.beta, t)
	dqt, dkt, ddelta := make([]float64, n), make([]float64, n), make([]float64, m)
	for i := range n {
		for j := range m {
			dqt[i] += scale * S[i*m+j] * do[j]
			D[i*m+j] += scale * qt[i] * do[j]
			dkt[i] += D[i*m+j] * beta * s.r[j]
			ddelta[j] += D[i*m+j] * kt[i]
		}
	}
	decay, ddecay := 0.0, 0.0
	before := s.tree.Previous(int32(t))
	if before >= 0 {
		decay = math.Exp(s.scalar(s.g, t))
	}
	for i := range n {
		for j := range m {
			dr := beta * ddelta[j]
			dkt[i] -= s.decayed[i*m+j] * dr
			D[i*m+j] -= kt[i] * dr
			ddecay += D[i*m+j] * s.decayed[i*m+j]
			if before >= 0 {
				grads[before][i*m+j] += decay * D[i*m+j]
			}
		}
	}
	if dq != nil {
		add(s.row(dq, t, s.keyHead, n), dqt, 1)
	}
	if dk != nil {
		add(s.row(dk, t, s.keyHead, n), dkt, 1)
	}
	if dv != nil {
		add(s.row(dv, t, s.head, m), ddelta, beta)
	}
	if dg != nil {
		dg.F64[t*dg.Stride+s.head] += ddecay
	}
	if dbeta != nil {
		for j, x := range ddelta {
			dbeta.F64[t*dbeta.Stride+s.head] += x * s.r[j]
		}
	}
}

func add(dst, x []float64, f float64) {
	for i := range dst {
		dst[i] += f * x[i]
	}
}
