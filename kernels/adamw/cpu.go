package adamw

// #cgo CFLAGS: -O3 -std=gnu11 -Wno-psabi -I${SRCDIR}/../../engine/include
// #cgo LDFLAGS: -lm
// #cgo noescape adamw_step
// #cgo nocallback adamw_step
// #include "adamw.h"
import "C"

import "caper/engine"

func cpuUpdate(dev engine.Device, p *engine.Param, m, v *engine.Tensor, u update) {
	C.adamw_step((*C.struct_cpu)(engine.RuntimeOf(dev)), C.struct_adamw{
		p: (*C.float)(p.Pointer()), g: (*C.float)(p.Grad.Pointer()),
		m: (*C.float)(m.Pointer()), v: (*C.float)(v.Pointer()), n: C.long(len(p.F32)),
		rest1: C.float(1 - u.beta1), rest2: C.float(1 - u.beta2), eps: C.float(u.eps), scale: C.float(u.scale),
		step: C.float(u.step), correct: C.float(u.correct), decay: C.float(u.decay),
	})
}
