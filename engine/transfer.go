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
func (x *Tensor) Read(dst []float32) { x.ReadRange(dst[:x.Rows*x.Cols], 0) }

// ReadRange is Read for elements from, from+1, ..., counted row by row.
func (x *Tensor) ReadRange(dst []float32, from int) {
	switch {
	case len(dst) == 0:
	case x.gpu != nil:
		x.readGPU(dst, from)
	case x.F32 != nil && x.Contiguous():
		copy(dst, x.F32[from:])
	default:
		for i := range dst {
			dst[i] = float32(x.At((from+i)/x.Cols, (from+i)%x.Cols))
		}
	}
}

// Values returns the elements of x, row by row, as they are: in float64 nothing is lost. On a
// GPU it waits for all work.
func (x *Tensor) Values() []float64 {
	values := make([]float64, x.Rows*x.Cols)
	if x.gpu == nil {
		for i := range values {
			values[i] = x.At(i/x.Cols, i%x.Cols)
		}
		return values
	}
	short := make([]float32, len(values))
	x.Read(short)
	for i, v := range short {
		values[i] = float64(v)
	}
	return values
}

// Write copies src, Rows x Cols elements row by row, to x, rounded to its elements. On a GPU
// it waits for all work.
func (x *Tensor) Write(src []float32) { x.WriteRows(src[:x.Rows*x.Cols], 0) }

// WriteRows is Write for whole rows from a first one on.
func (x *Tensor) WriteRows(src []float32, first int) {
	switch {
	case len(src) == 0:
	case x.gpu != nil:
		x.rows(first, first+len(src)/x.Cols).writeGPU(src)
	case x.F32 != nil && x.Contiguous():
		copy(x.F32[first*x.Cols:], src)
	default:
		for i, v := range src {
			x.Set(first+i/x.Cols, i%x.Cols, float64(v))
		}
	}
}

// Fill sets every element, row by row in order.
func (x *Tensor) Fill(value func(row, col int) float64) {
	if x.gpu == nil {
		for i := range x.Rows {
			for j := range x.Cols {
				x.Set(i, j, value(i, j))
			}
		}
		return
	}
	row := make([]float32, x.Cols)
	for i := range x.Rows {
		for j := range row {
			row[j] = float32(value(i, j))
		}
		x.WriteRows(row, i)
	}
}

// rows is a GPU's tensor from row lo up to row hi.
func (x *Tensor) rows(lo, hi int) *Tensor {
	return &Tensor{Rows: hi - lo, Cols: x.Cols, Stride: x.Stride, gpu: x.gpu, element: x.element, at: x.at + cuda.Ptr(lo*x.Stride*x.element.Size())}
}

// span is the bytes from x's first element to its last.
func (x *Tensor) span() int {
	if x.Rows == 0 || x.Cols == 0 {
		return 0
	}
	return ((x.Rows-1)*x.Stride + x.Cols) * x.element.Size()
}

// readGPU reads the rows that hold the elements.
func (x *Tensor) readGPU(dst []float32, from int) {
	first := from / x.Cols
	whole := x.rows(first, (from+len(dst)-1)/x.Cols+1)
	data := make([]byte, whole.span())
	if x.gpu.wait(); !x.gpu.idle() {
		x.gpu.fail(x.gpu.stream.Download(data, whole.at))
	}
	if x.gpu.idle() {
		poison(dst)
		return
	}
	for i, skip := 0, from-first*x.Cols; len(dst) > 0; i, skip = i+1, 0 {
		n := min(len(dst), x.Cols-skip)
		decode(dst[:n], data[(i*x.Stride+skip)*x.element.Size():], x.element)
		dst = dst[n:]
	}
}

func decode(dst []float32, data []byte, element cuda.Element) {
	if element == cuda.Float32 {
		copy(dst, as[float32](data))
		return
	}
	for j, bits := range as[uint16](data)[:len(dst)] {
		dst[j] = math.Float32frombits(uint32(bits) << 16)
	}
}

func (x *Tensor) writeGPU(src []float32) {
	if x.gpu.idle() {
		return
	}
	data := make([]byte, x.span())
	x.gpu.submit()
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

// Fetch asks for the elements of x, which is dense and float32 on a GPU: dst holds them once
// Wait has returned. The GPU is not waited for; on other devices dst holds them at once.
func (t *Tape) Fetch(dst []float32, x *Tensor) {
	if t.gpu == nil {
		x.Read(dst)
		return
	}
	t.gpu.fetch(dst, x)
}

// fetched is a copy to pinned memory under way, and where it goes then.
type fetched struct {
	dst  []float32
	host cuda.Host
}

func (g *GPU) fetch(dst []float32, x *Tensor) {
	if g.idle() || len(dst) == 0 {
		return
	}
	host, err := g.arrivals.take(g, 4*len(dst))
	if err != nil {
		g.fail(err)
		return
	}
	g.ask(work{kind: runFetch, at: [3]cuda.Ptr{x.at}, host: host}, nil)
	g.fetches = append(g.fetches, fetched{dst, host})
}

// arrive copies what has come to where it was asked for.
func (g *GPU) arrive() {
	for _, f := range g.fetches {
		copy(f.dst, cuda.HostAs[float32](f.host))
	}
	g.fetches = g.fetches[:0]
	g.arrivals.block, g.arrivals.used = 0, 0
}

// SeedRows makes weights the gradient of x [len(weights), 1], or adds them to what it has:
// the derivatives of the loss with respect to its rows. weights stay as they are until Reset.
func (t *Tape) SeedRows(x *Tensor, weights []float32) {
	if t.gpu == nil || x.base != nil || x.grad != nil || !x.IsFloat32() {
		for i, w := range weights {
			t.Seed(x, i, float64(w))
		}
		return
	}
	if x.frozen || len(weights) == 0 {
		return
	}
	x.grad = t.newGradient(x)
	t.staging.send(t.gpu, x.grad.at, unsafe.Slice((*byte)(unsafe.Pointer(&weights[0])), 4*len(weights)))
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
	if err != nil {
		g.fail(err)
		return
	}
	copy(host.Bytes(), data)
	g.ask(work{kind: runUpload, at: [3]cuda.Ptr{to}, host: host}, nil)
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
	g.submit()
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
	g.submit()
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
