package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"
)

// Stats describes the elements of a tensor. Min, Max, Mean and Deviation are those of
// the finite ones, and zero where there is none; always finite.
type Stats struct {
	Elements  int     `json:"elements"`
	Min       float64 `json:"min"`
	Max       float64 `json:"max"`
	Mean      float64 `json:"mean"`
	Deviation float64 `json:"std"` // of the population
	NaN       int     `json:"nan"`
	Inf       int     `json:"inf"`
}

// Stats reads the whole tensor, on all cores and in the memory of a few blocks. The
// result does not depend on the number of cores.
func (t Tensor) Stats() (Stats, error) {
	parts := make([]moments, blocks(t.Len()))
	err := inBlocks(t.File, t.Len(), func(from, to int) error {
		scratch := borrow()
		defer scratch.giveBack()
		values, err := t.numbers(scratch[:to-from], from)
		t.drop(from, to)
		parts[from/blockElements] = momentsOf(values)
		return err
	})
	if err != nil {
		return Stats{}, err
	}
	var all moments
	for _, p := range parts {
		all.merge(p)
	}
	s := Stats{Elements: t.Len(), NaN: all.nan, Inf: all.inf}
	if all.count > 0 {
		s.Min, s.Max, s.Mean = all.min, all.max, inRange(all.mean)
		s.Deviation = inRange(math.Sqrt(all.squares / all.count))
	}
	return s, nil
}

// block is memory for the elements of a block.
type block [blockElements]float64

var spare sync.Pool // of *block

func borrow() *block {
	if b, ok := spare.Get().(*block); ok {
		return b
	}
	return new(block)
}

func (b *block) giveBack() { spare.Put(b) }

// numbers stores the elements from, from+1, ... of a tensor of any type in dst.
func (t Tensor) numbers(dst []float64, from int) ([]float64, error) {
	data := t.part(from, from+len(dst))
	if t.IsFloat() {
		decode(t.DType, data, dst)
		return dst, nil
	}
	integer, ok := integers[t.DType.String()]
	if !ok {
		return nil, fmt.Errorf("%s: tensor %q: elements of type %s cannot be read", t.File, t.Name, t.DType)
	}
	size := int(t.DType.Size())
	for i := range dst {
		dst[i] = integer(data[i*size:])
	}
	return dst, nil
}

// integers reads an element of each type that is no float.
var integers = map[string]func(data []byte) float64{
	"BOOL": func(data []byte) float64 { return float64(data[0]) },
	"U8":   func(data []byte) float64 { return float64(data[0]) },
	"I8":   func(data []byte) float64 { return float64(int8(data[0])) },
	"U16":  func(data []byte) float64 { return float64(binary.LittleEndian.Uint16(data)) },
	"I16":  func(data []byte) float64 { return float64(int16(binary.LittleEndian.Uint16(data))) },
	"U32":  func(data []byte) float64 { return float64(binary.LittleEndian.Uint32(data)) },
	"I32":  func(data []byte) float64 { return float64(int32(binary.LittleEndian.Uint32(data))) },
	"U64":  func(data []byte) float64 { return float64(binary.LittleEndian.Uint64(data)) },
	"I64":  func(data []byte) float64 { return float64(int64(binary.LittleEndian.Uint64(data))) },
}

// inRange is the nearest float64 to a statistic of numbers so large that adding them up,
// or squaring them, left the type's range.
func inRange(x float64) float64 {
	if x != x {
		return math.MaxFloat64
	}
	return min(max(x, -math.MaxFloat64), math.MaxFloat64)
}

// moments gathers the statistics of some elements: the mean and the sum of squared
// deviations from it, which no large mean spoils.
type moments struct {
	count, mean, squares float64
	min, max             float64
	nan, inf             int
}

func momentsOf(values []float64) moments {
	m := moments{min: math.Inf(1), max: math.Inf(-1)}
	sum := 0.0
	for _, x := range values {
		switch {
		case x-x == 0:
			m.count++
			sum += x
			if x < m.min {
				m.min = x
			}
			if x > m.max {
				m.max = x
			}
		case x != x:
			m.nan++
		default:
			m.inf++
		}
	}
	m.mean = sum / max(m.count, 1)
	for _, x := range values {
		if d := x - m.mean; d-d == 0 {
			m.squares += d * d
		}
	}
	return m
}

// merge adds the elements of o (Chan, Golub and LeVeque 1979).
func (m *moments) merge(o moments) {
	m.nan += o.nan
	m.inf += o.inf
	switch {
	case o.count == 0:
		return
	case m.count == 0:
		o.nan, o.inf = m.nan, m.inf
		*m = o
		return
	}
	m.min, m.max = min(m.min, o.min), max(m.max, o.max)
	n, d := m.count+o.count, o.mean-m.mean
	m.mean += d * o.count / n
	m.squares += o.squares + d*d*m.count*o.count/n
	m.count = n
}
