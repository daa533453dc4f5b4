package sampling

// #cgo CFLAGS: -O3 -std=gnu11 -Wno-psabi -I${SRCDIR}/../../engine/include
// #cgo LDFLAGS: -lm
// #cgo noescape sampling_run
// #cgo nocallback sampling_run
// #include "sampling.h"
import "C"

import (
	"unsafe"

	"caper/engine"
)

func cpuRun(t *engine.Tape, o *op) {
	C.sampling_run((*C.struct_cpu)(t.CPURuntime()), C.struct_sampling{
		draws: C.int(len(o.draws)), width: C.int(o.logits.Cols), words: C.int(o.words),
		logits:  C.struct_matrix{data: (*C.float)(o.logits.Pointer()), stride: C.long(o.logits.Pitch())},
		weights: (*C.float)(&t.Scratch(len(o.draws) * o.words)[0]),
		draw:    (*C.struct_draw)(unsafe.Pointer(&o.draws[0])),
	})
}
