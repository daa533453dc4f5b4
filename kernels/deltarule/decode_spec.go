package deltarule

import "math"

// The specification of decoding, in float64: the recurrence of spec.go, token by
// token, from the state that a step starts from; the tokens of its open chunk are
// taken again by what they wrote, S = exp(g_j) S + k_j write_j^T.

func specDecode(o *decodeOp) {
	for i := range o.s.Start {
		for h := range o.c.o.ValueHeads {
			specDecodeStep(o, i, h)
		}
	}
}

func specDecodeStep(o *decodeOp, i, h int) {
	s, c, p := o.s, o.c, o.c.o
	keyHead, size := h/(p.ValueHeads/p.KeyHeads), p.KeyDim*p.ValueDim
	state := make([]float64, size)
	if from := int(s.From[i]); from >= 0 {
		copy(state, c.states.F64[(from*p.ValueHeads+h)*size:])
	}
	apply := func(decay float64, key, write func(int) float64) {
		for a := range p.KeyDim {
			for b := range p.ValueDim {
				state[a*p.ValueDim+b] = decay*state[a*p.ValueDim+b] + key(a)*write(b)
			}
		}
	}
	open, filled := int(s.Open[i]), int(s.Filled[i])
	key := func(a, j int) *float64 { return &c.keys.F64[((open*p.KeyHeads+keyHead)*p.KeyDim+a)*ChunkLen+j] }
	write := func(b, j int) *float64 {
		return &c.writes.F64[((open*p.ValueHeads+h)*ChunkLen+j)*p.ValueDim+b]
	}
	decay := func(j int) *float64 { return &c.decays.F64[(open*p.ValueHeads+h)*ChunkLen+j] }
	for j := range filled {
		apply(math.Exp(*decay(j)), func(a int) float64 { return *key(a, j) }, func(b int) float64 { return *write(b, j) })
	}
	scale := 1 / math.Sqrt(float64(p.KeyDim))
	for t := int(s.Start[i]); t < int(s.Start[i]+s.Len[i]); t++ {
		g, beta := o.g.At(t, h), o.beta.At(t, h)
		written := make([]float64, p.ValueDim)
		for b := range written {
			predicted := 0.0
			for a := range p.KeyDim {
				predicted += math.Exp(g) * state[a*p.ValueDim+b] * o.k.At(t, keyHead*p.KeyDim+a)
			}
			written[b] = beta * (o.v.At(t, h*p.ValueDim+b) - predicted)
		}
		apply(math.Exp(g), func(a int) float64 { return o.k.At(t, keyHead*p.KeyDim+a) }, func(b int) float64 { return written[b] })
		for b := range written {
			y := 0.0
			for a := range p.KeyDim {
				y += scale * state[a*p.ValueDim+b] * o.q.At(t, keyHead*p.KeyDim+a)
			}
			o.out.Set(t, h*p.ValueDim+b, y)
		}
		if open < 0 {
			continue
		}
		*decay(filled) = g
		for b, x := range written {
			*write(b, filled) = x
		}
		for a := range p.KeyDim {
			*key(a, filled) = o.k.At(t, keyHead*p.KeyDim+a)
		}
	}
	if open < 0 || filled == ChunkLen-1 {
		copy(c.states.F64[(int(s.To[i])*p.ValueHeads+h)*size:], state)
	}
}
