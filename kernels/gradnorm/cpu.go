package gradnorm

// #cgo CFLAGS: -O3 -std=gnu11 -Wno-psabi -I${SRCDIR}/../../engine/include
// #cgo LDFLAGS: -lm
// #cgo noescape gradnorm_squares
// #cgo nocallback gradnorm_squares
// #include "gradnorm.h"
import "C"

import "caper/engine"

func cpuSquares(dev engine.Device, g *engine.Tensor) float64 {
	return float64(C.gradnorm_squares((*C.struct_cpu)(engine.RuntimeOf(dev)), (*C.float)(g.Pointer()), C.long(len(g.F32))))
}
