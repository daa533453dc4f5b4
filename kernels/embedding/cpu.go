package embedding

// #cgo CFLAGS: -O3 -std=gnu11 -Wno-psabi -I${SRCDIR}/../../engine/include
// #cgo LDFLAGS: -lm
// #cgo noescape embedding_forward
// #cgo nocallback embedding_forward
// #cgo noescape embedding_backward
// #cgo nocallback embedding_backward
// #include "embedding.h"
import "C"

import (
	"unsafe"

	"caper/engine"
)

func cpuForward(t *engine.Tape, o *op) {
	C.embedding_forward((*C.struct_cpu)(t.CPURuntime()), C.struct_embedding{
		rows: C.int(o.y.Rows), cols: C.int(o.y.Cols), ids: (*C.int32_t)(unsafe.SliceData(o.ids)),
		table: matrix(o.table), y: matrix(o.y),
	})
}

func cpuBackward(t *engine.Tape, o *op, dtable, dy *engine.Tensor) {
	C.embedding_backward((*C.struct_cpu)(t.CPURuntime()), C.struct_embedding{
		rows: C.int(dy.Rows), cols: C.int(dy.Cols), ids: (*C.int32_t)(unsafe.SliceData(o.ids)),
		dy: matrix(dy), dtable: matrix(dtable),
	})
}

func matrix(x *engine.Tensor) C.struct_matrix {
	return C.struct_matrix{data: (*C.float)(x.Pointer()), stride: C.long(x.Pitch())}
}
