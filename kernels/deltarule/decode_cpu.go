package deltarule

// #cgo noescape deltarule_decode
// #cgo nocallback deltarule_decode
// #include "decode.h"
import "C"

import "caper/engine"

func cpuDecode(t *engine.Tape, o *decodeOp) {
	p, s, c := o.c.o, o.s, o.c
	C.deltarule_decode(C.struct_deltarule_decode{
		rule: C.struct_deltarule{
			key_heads: C.int(p.KeyHeads), value_heads: C.int(p.ValueHeads), key_dim: C.int(p.KeyDim), value_dim: C.int(p.ValueDim),
			rows: C.int(o.q.Rows),
			q:    matrix(o.q), k: matrix(o.k), v: matrix(o.v), g: matrix(o.g), beta: matrix(o.beta), out: matrix(o.out),
			cpu: (*C.struct_cpu)(t.CPURuntime()),
		},
		steps: C.int(len(s.Start)),
		start: ints(s.Start), len: ints(s.Len), from: ints(s.From), to: ints(s.To), open: ints(s.Open), filled: ints(s.Filled),
		states: (*C.float)(c.states.Pointer()), keys: (*C.float)(c.keys.Pointer()),
		writes: (*C.float)(c.writes.Pointer()), decays: (*C.float)(c.decays.Pointer()),
	})
}
