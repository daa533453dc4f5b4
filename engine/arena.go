package engine

// arena hands out memory front to back and takes it all back at once. Blocks are
// kept, so a step that is no larger than one before it allocates nothing.
type arena struct {
	blocks32 []block[float32]
	blocks64 []block[float64]
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

func take[F any](blocks *[]block[F], n int) []F {
	room := (n + alignElements - 1) / alignElements * alignElements
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
