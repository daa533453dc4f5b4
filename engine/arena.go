package engine

import "caper/cuda"

// arena hands out memory front to back and takes it all back at once. Blocks are
// kept, so a step that is no larger than one before it allocates nothing.
type arena struct {
	blocks32  []block[float32]
	blocks64  []block[float64]
	blocksGPU []gpuBlock
	// On a device of shapes only what would be handed out is counted, in bytes: now, and at
	// most.
	counted, most int
}

type block[F any] struct {
	data []F
	used int
}

// blockElements is the least size of a block; alignElements keeps every piece on
// a cache line of 64 bytes.
const (
	blockElements = 1 << 20
	alignElements = 16
)

func (a *arena) float32s(n int) []float32 { return take(&a.blocks32, n) }
func (a *arena) float64s(n int) []float64 { return take(&a.blocks64, n) }

// count counts n float32.
func (a *arena) count(n int) { a.countBytes(4 * aligned(n)) }

func (a *arena) countBytes(n int) {
	a.counted += n
	a.most = max(a.most, a.counted)
}

// gpuBlock is memory of a GPU.
type gpuBlock struct {
	at         cuda.Ptr
	size, used int // bytes
}

// gpuBytes hands out bytes of the GPU's memory, at a multiple of 256; 0 where there is none
// left, which the GPU keeps as its error.
func (a *arena) gpuBytes(g *GPU, n int) cuda.Ptr {
	const align, least = 256, 1 << 20
	room := (n + align - 1) / align * align
	if g.device == nil {
		a.countBytes(room)
		return shapesAt
	}
	for i := range a.blocksGPU {
		b := &a.blocksGPU[i]
		if b.used+room <= b.size {
			b.used += room
			return b.at + cuda.Ptr(b.used-room)
		}
	}
	b := gpuBlock{size: max(room, least), used: room}
	if b.at = g.alloc(b.size); b.at != 0 {
		a.blocksGPU = append(a.blocksGPU, b)
	}
	return b.at
}

// reserve makes room for n bytes in one block, where there is none yet: of the GPU g, or of
// float32 where that is nil.
func (a *arena) reserve(g *GPU, n int) {
	switch {
	case n == 0:
	case g != nil && len(a.blocksGPU) == 0:
		if at := g.alloc(n); at != 0 {
			a.blocksGPU = append(a.blocksGPU, gpuBlock{at: at, size: n})
		}
	case g == nil && len(a.blocks32) == 0:
		a.blocks32 = append(a.blocks32, block[float32]{data: make([]float32, n/4)})
		wantHugePages(a.blocks32[0].data)
	}
}

func aligned(n int) int { return (n + alignElements - 1) / alignElements * alignElements }

func take[F any](blocks *[]block[F], n int) []F {
	room := aligned(n)
	for i := range *blocks {
		b := &(*blocks)[i]
		if b.used+room <= len(b.data) {
			piece := b.data[b.used : b.used+n : b.used+n]
			b.used += room
			return piece
		}
	}
	*blocks = append(*blocks, block[F]{data: make([]F, max(room, blockElements))})
	b := &(*blocks)[len(*blocks)-1]
	wantHugePages(b.data)
	b.used = room
	return b.data[:n:n]
}

func (a *arena) reset() {
	a.counted = 0
	for i := range a.blocks32 {
		a.blocks32[i].used = 0
	}
	for i := range a.blocks64 {
		a.blocks64[i].used = 0
	}
	for i := range a.blocksGPU {
		a.blocksGPU[i].used = 0
	}
}

// free gives the memory of the GPU back.
func (a *arena) free(g *GPU) {
	for _, b := range a.blocksGPU {
		g.free(b.at)
	}
	a.blocksGPU = nil
}

// poison fills the memory with NaN, used or not.
func (a *arena) poison(g *GPU) {
	for _, b := range a.blocksGPU {
		g.fill(b.at, 0xff, b.size)
	}
	for _, b := range a.blocks32 {
		poison(b.data)
	}
	for _, b := range a.blocks64 {
		poison(b.data)
	}
}

func (a *arena) bytes() int {
	n := 0
	for _, b := range a.blocks32 {
		n += 4 * len(b.data)
	}
	for _, b := range a.blocks64 {
		n += 8 * len(b.data)
	}
	for _, b := range a.blocksGPU {
		n += b.size
	}
	return n
}
