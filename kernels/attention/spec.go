package attention

import (
	"math"

	"caper/engine"
)

// The specification, in float64. Row i sees the rows j of its path; query head h
// reads key head h / (Heads/KVHeads):
//
//	p_ij = softmax_j( D^-1/2 <q_i, k_j> )     a_i = sum_j p_ij v_j
//	y_i  = a_i sigma(gate_i)                  (y = a without a gate)
//
//	da = dy sigma(gate)         dgate = dy a sigma(gate) (1 - sigma(gate))
//	dp_ij = <da_i, v_j>         ds_ij = p_ij (dp_ij - sum_k p_ik dp_ik)
//	dq_i = D^-1/2 sum_j ds_ij k_j    dk_j = D^-1/2 sum_i ds_ij q_i    dv_j = sum_i p_ij da_i
//
// Source: Vaswani et al. 2017 (arXiv 1706.03762) equation 1; grouped heads, Ainslie
// et al. 2023 (arXiv 2305.13245); output gate, Qiu et al. 2025 (arXiv 2505.06708).

// specHead visits the softmax of every (row, head): the row's path, the
// probabilities over it, and the ungated output.
func specHead(q, k, v *engine.Tensor, tree *engine.Tree, o Options, visit func(row, head int, path []int32, p, a []float64)) {
	var path []int32
	var p []float64
	a := make([]float64, o.Dim)
	scale := 1 / math.Sqrt(float64(o.Dim))
	for i := range q.Rows {
		path = tree.Path(path[:0], int32(i))
		for h := range o.Heads {
			qi := head(q, i, h, o.Dim)
			kv := h / (o.Heads / o.KVHeads)
			p = p[:0]
			top := math.Inf(-1)
			for _, j := range path {
				s := scale * dot(qi, head(k, int(j), kv, o.Dim))
				p = append(p, s)
				top = math.Max(top, s)
			}
			sum := 0.0
			for n := range p {
				p[n] = math.Exp(p[n] - top)
				sum += p[n]
			}
			clear(a)
			for n, j := range path {
				p[n] /= sum
				axpy(a, p[n], head(v, int(j), kv, o.Dim))
			}
			visit(i, h, path, p, a)
		}
	}
}

func specForward(q, k, v, gate, y *engine.Tensor, tree *engine.Tree, o Options) {
	specHead(q, k, v, tree, o, func(i, h int, _ []int32, _, a []float64) {
		out := head(y, i, h, o.Dim)
		copy(out, a)
		if gate != nil {
			for c, z := range o.gateOf(gate, i, h) {
				out[c] *= sigmoid(z)
			}
		}
	})
}

// specBackward adds to the gradients, any of which may be nil.
func specBackward(q, k, v, gate, dy, dq, dk, dv, dgate *engine.Tensor, tree *engine.Tree, o Options) {
	da := make([]float64, o.Dim)
	scale := 1 / math.Sqrt(float64(o.Dim))
	specHead(q, k, v, tree, o, func(i, h int, path []int32, p, a []float64) {
		kv := h / (o.Heads / o.KVHeads)
		copy(da, head(dy, i, h, o.Dim))
		if gate != nil {
			for c, z := range o.gateOf(gate, i, h) {
				f := sigmoid(z)
				if dgate != nil {
					o.gateOf(dgate, i, h)[c] += da[c] * a[c] * f * (1 - f)
				}
				da[c] *= f
			}
		}
		mean := 0.0
		for n, j := range path {
			mean += p[n] * dot(da, head(v, int(j), kv, o.Dim))
		}
		for n, j := range path {
			ds := scale * p[n] * (dot(da, head(v, int(j), kv, o.Dim)) - mean)
			if dq != nil {
				axpy(head(dq, i, h, o.Dim), ds, head(k, int(j), kv, o.Dim))
			}
			if dk != nil {
				axpy(head(dk, int(j), kv, o.Dim), ds, head(q, i, h, o.Dim))
			}
			if dv != nil {
				axpy(head(dv, int(j), kv, o.Dim), p[n], da)
			}
		}
	})
}

// head returns the dim numbers of head h in row i of x.
func head(x *engine.Tensor, i, h, dim int) []float64 {
	at := i*x.Stride + h*dim
	return x.F64[at : at+dim]
}

// gateOf returns the gate of head h in row i.
func (o Options) gateOf(gate *engine.Tensor, i, h int) []float64 {
	at := i*gate.Stride + h*o.GateStride + o.GateOffset
	return gate.F64[at : at+o.Dim]
}

func dot(a, b []float64) float64 {
	s := 0.0
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

func axpy(dst []float64, f float64, x []float64) {
	for i := range dst {
		dst[i] += f * x[i]
	}
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
