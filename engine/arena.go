package engine

// arena hands out memory front to back and takes it all back at once. Blocks are
// kept, so a step that is no larger than one before it allocates nothing.
type arena struct {
	blocks32 []block[float32]
	blocks64 []block[float64]
	// On a device of shapes only what would be handed out is counted, in elements: now,
	// and at most.
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

func (a *arena) count(n int) {
	a.counted += aligned(n)
	a.most = max(a.most, a.counted)
}

// reserve makes room for n float32 in one block, where there is none yet.
func (a *arena) reserve(n int) {
	if n > 0 && len(a.blocks32) == 0 {
		a.blocks32 = append(a.blocks32, block[float32]{data: make([]float32, n)})
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
}

// poison fills the memory with NaN, used or not.
func (a *arena) poison() {
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
	return n
}
