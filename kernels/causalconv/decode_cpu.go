package causalconv

// #cgo noescape causalconv_decode
// #cgo nocallback causalconv_decode
// #include "decode.h"
import "C"

import "caper/engine"

func cpuDecode(t *engine.Tape, o *decodeOp) {
	s := o.s
	C.causalconv_decode((*C.struct_cpu)(t.CPURuntime()), C.struct_causalconv_decode{
		channels: C.int(o.c.channels), taps: C.int(o.c.taps), steps: C.int(len(s.Start)),
		start: ints(s.Start), len: ints(s.Len), from: ints(s.From), to: ints(s.To),
		x: matrix(o.x), w: matrix(o.w), y: matrix(o.y), windows: (*C.float)(o.c.windows.Pointer()),
	})
}
