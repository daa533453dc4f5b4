package causalconv

// The specification of decoding, in float64: that of spec.go, where the rows before a
// step's first are those of its window.

func specDecode(o *decodeOp) {
	past := o.c.taps - 1
	for s := range o.s.Start {
		start, n := int(o.s.Start[s]), int(o.s.Len[s])
		for ch := range o.c.channels {
			// The window and the step's own rows, one behind the other.
			line := make([]float64, past+n)
			if from := int(o.s.From[s]); from >= 0 {
				for i := range past {
					line[i] = o.c.windows.At(from*past+i, ch)
				}
			}
			for i := range n {
				line[past+i] = o.x.At(start+i, ch)
			}
			for i := range n {
				p := 0.0
				for j := range o.c.taps {
					p += o.w.At(ch, j) * line[i+j]
				}
				o.y.Set(start+i, ch, p*sigmoid(p))
			}
			for i := range past {
				o.c.windows.Set(int(o.s.To[s])*past+i, ch, line[n+i])
			}
		}
	}
}
