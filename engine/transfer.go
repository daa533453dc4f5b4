package engine

import (
	"math"
	"unsafe"

	"caper/cuda"
)

// Address returns where the first element of x is on the GPU, and 0 for a nil or an empty
// tensor.
func (x *Tensor) Address() cuda.Ptr {
	if x == nil {
		return 0
	}
	return x.at
}

// IsFloat32 reports that the elements of a GPU's tensor are float32; else they are bf16.
func (x *Tensor) IsFloat32() bool { return x.element == cuda.Float32 }

// Read copies the elements of x to dst, row by row, Rows x Cols of them. On a GPU it waits
// for all work; where that failed, dst holds NaN.
func (x *Tensor) Read(dst []float32) {
	switch {
	case x.gpu != nil:
		x.readGPU(dst)
	case x.F32 != nil:
		for i := range x.Rows {
			copy(dst[i*x.Cols:(i+1)*x.Cols], x.F32[i*x.Stride:])
		}
	case x.F64 != nil:
		for i := range dst {
			dst[i] = float32(x.F64[i/x.Cols*x.Stride+i%x.Cols])
		}
	}
}

// Write copies src, Rows x Cols elements row by row, to x, rounded to its elements. On a GPU
// it waits for all work.
func (x *Tensor) Write(src []float32) {
	switch {
	case x.gpu != nil:
		x.writeGPU(src)
	case x.F32 != nil:
		for i := range x.Rows {
			copy(x.F32[i*x.Stride:i*x.Stride+x.Cols], src[i*x.Cols:])
		}
	case x.F64 != nil:
		for i, v := range src[:x.Rows*x.Cols] {
			x.F64[i/x.Cols*x.Stride+i%x.Cols] = float64(v)
		}
	}
}

// span is the bytes from x's first element to its last.
func (x *Tensor) span() int {
	if x.Rows == 0 || x.Cols == 0 {
		return 0
	}
	return ((x.Rows-1)*x.Stride + x.Cols) * x.element.Size()
}

func (x *Tensor) readGPU(dst []float32) {
	data := make([]byte, x.span())
	if !x.gpu.idle() {
		x.gpu.fail(x.gpu.stream.Download(data, x.at))
	}
	if x.gpu.idle() {
		poison(dst)
		return
	}
	for i := range x.Rows {
		row := dst[i*x.Cols : (i+1)*x.Cols]
		from := data[i*x.Stride*x.element.Size():]
		if x.IsFloat32() {
			copy(row, as[float32](from))
			continue
		}
		for j, bits := range as[uint16](from)[:x.Cols] {
			row[j] = math.Float32frombits(uint32(bits) << 16)
		}
	}
}

func (x *Tensor) writeGPU(src []float32) {
	if x.gpu.idle() {
		return
	}
	data := make([]byte, x.span())
	if x.Stride != x.Cols { // what lies between rows stays as it is
		x.gpu.fail(x.gpu.stream.Download(data, x.at))
	}
	for i := range x.Rows {
		row := src[i*x.Cols : (i+1)*x.Cols]
		to := data[i*x.Stride*x.element.Size():]
		if x.IsFloat32() {
			copy(as[float32](to), row)
			continue
		}
		for j, v := range row {
			as[uint16](to)[j] = bf16Bits(v)
		}
	}
	x.gpu.fail(x.gpu.stream.Upload(x.at, data))
}

// as is memory as elements, as many as fit.
func as[T uint16 | float32 | int32](data []byte) []T {
	var element T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(data))), len(data)/int(unsafe.Sizeof(element)))
}

// bf16Bits rounds to the nearest bf16, ties to even; any NaN becomes 0x7fff.
func bf16Bits(x float32) uint16 {
	if x != x {
		return 0x7fff
	}
	u := math.Float32bits(x)
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

// single is element (i, j) of a GPU's tensor.
func (x *Tensor) single(i, j int) *Tensor {
	return &Tensor{Rows: 1, Cols: 1, Stride: 1, gpu: x.gpu, element: x.element, at: x.at + cuda.Ptr((i*x.Stride+j)*x.element.Size())}
}

// Ints returns a copy of x on the GPU, where it stays until Reset. Who asks again for the
// same slice in the same step gets the same copy, so that every layer may ask for a tree's
// arrays; x must stay as it is until Reset.
func (t *Tape) Ints(x []int32) cuda.Ptr {
	return t.upload(unsafe.Pointer(unsafe.SliceData(x)), 4*len(x))
}

// Floats is Ints for float32.
func (t *Tape) Floats(x []float32) cuda.Ptr {
	return t.upload(unsafe.Pointer(unsafe.SliceData(x)), 4*len(x))
}

// hostMemory is a piece of Go's memory.
type hostMemory struct {
	at    unsafe.Pointer
	bytes int
}

func (t *Tape) upload(from unsafe.Pointer, bytes int) cuda.Ptr {
	if bytes == 0 {
		return 0
	}
	key := hostMemory{from, bytes}
	if p, ok := t.uploads[key]; ok {
		return p
	}
	if t.uploads == nil {
		t.uploads = map[hostMemory]cuda.Ptr{}
	}
	p := t.values.gpuBytes(t.gpu, bytes)
	t.uploads[key] = p
	t.staging.send(t.gpu, p, unsafe.Slice((*byte)(from), bytes))
	return p
}

// staging is pinned memory through which a tape's copies to the GPU go without waiting for
// it. It has two halves, one a step: a half is written again when the GPU has read it.
type staging struct {
	halves  [2]stagingHalf
	current int
}

type stagingHalf struct {
	blocks []cuda.Host
	block  int // in use,
	used   int // up to this byte
	read   *cuda.Event
}

// stagingBlock is the least size of a piece of pinned memory.
const stagingBlock = 256 << 10

// send copies data to the GPU, after the work so far.
func (s *staging) send(g *GPU, to cuda.Ptr, data []byte) {
	if g.idle() {
		return
	}
	host, err := s.halves[s.current].take(g, len(data))
	if err == nil {
		copy(host.Bytes(), data)
		err = g.stream.ToDevice(to, host)
	}
	g.fail(err)
}

func (h *stagingHalf) take(g *GPU, bytes int) (cuda.Host, error) {
	for ; h.block < len(h.blocks); h.block, h.used = h.block+1, 0 {
		if b := h.blocks[h.block]; h.used+bytes <= b.Len() {
			piece := b.Slice(h.used, h.used+bytes)
			h.used += (bytes + 63) / 64 * 64
			return piece, nil
		}
	}
	b, err := g.device.AllocHost(cuda.Bytes(max(bytes, stagingBlock)))
	if err != nil {
		return b, err
	}
	h.blocks = append(h.blocks, b)
	h.block, h.used = len(h.blocks)-1, (bytes+63)/64*64
	return b.Slice(0, bytes), nil
}

// turn ends a step: the next one writes the other half.
func (s *staging) turn(g *GPU) {
	if g.idle() {
		return
	}
	h := &s.halves[s.current]
	var err error
	if h.read == nil {
		h.read, err = g.device.NewEvent(false)
	}
	if err == nil {
		err = g.stream.Record(h.read)
	}
	s.current = 1 - s.current
	h = &s.halves[s.current]
	if err == nil && h.read != nil {
		err = h.read.Synchronize()
	}
	h.block, h.used = 0, 0
	g.fail(err)
}

// free gives the memory back, after all work.
func (s *staging) free(g *GPU) {
	g.fail(g.stream.Synchronize())
	for i := range s.halves {
		h := &s.halves[i]
		for _, b := range h.blocks {
			g.fail(b.Free())
		}
		if h.read != nil {
			g.fail(h.read.Close())
		}
		*h = stagingHalf{}
	}
}
