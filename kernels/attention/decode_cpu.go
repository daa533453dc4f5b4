package attention

// #cgo noescape attention_decode
// #cgo nocallback attention_decode
// #include "decode.h"
import "C"

import "caper/engine"

const blockLen = C.BLOCK_LEN

func cpuDecode(t *engine.Tape, q, k, v, gate, y *engine.Tensor, c *Cache, p *Places) {
	C.attention_decode(C.struct_attention_decode{
		rows: C.int(q.Rows), heads: C.int(c.o.Heads), kv_heads: C.int(c.o.KVHeads), dim: C.int(c.o.Dim),
		gate_stride: C.int(c.o.GateStride), gate_offset: C.int(c.o.GateOffset), bundles: C.int(len(p.First)),
		position: ints(p.Position), table: ints(p.Table), blocks: ints(p.Blocks), first: ints(p.First), shared: ints(p.Shared),
		q: matrix(q), k: matrix(k), v: matrix(v), gate: matrix(gate), y: matrix(y),
		keys: (*C.float)(c.keys.Pointer()), values: (*C.float)(c.values.Pointer()),
		cpu: (*C.struct_cpu)(t.CPURuntime()),
	})
}
