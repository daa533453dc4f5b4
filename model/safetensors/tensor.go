package safetensors

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// Tensor is one tensor of an open file. Its bytes stay in the file until one of the
// methods converts them, a block at a time on all cores; what has been converted
// takes no memory any more (blocks.go).
type Tensor struct {
	Name, File string
	DType      DType
	Shape      []int // empty for a scalar

	data   []byte
	mapped bool // data is a memory map, whose pages can be given back
}

// Len returns the number of elements.
func (t Tensor) Len() int { return len(t.data) / int(t.DType.Size()) }

// Bytes returns the size of the elements as they are stored.
func (t Tensor) Bytes() int { return len(t.data) }

// Float32s stores the elements in dst, which has Len elements. F32, BF16 and F16 are
// exact; F64 is rounded.
func (t Tensor) Float32s(dst []float32) error { return convert(t, dst, nil) }

// Float64s stores the elements in dst, which has Len elements. All four floating
// types are exact.
func (t Tensor) Float64s(dst []float64) error { return convert(t, dst, nil) }

// Weights stores the elements in dst like Float32s and Float64s, and refuses those
// that no weight can have: NaN and infinities.
func Weights[F float32 | float64](t Tensor, dst []F) error {
	return convert(t, dst, func(from int, block []F) error {
		for i, x := range block {
			if x-x != 0 { // NaN for both
				return fmt.Errorf("%s: tensor %q: element [%s] is %g: the checkpoint is damaged", t.File, t.Name, t.index(from+i), x)
			}
		}
		return nil
	})
}

// Range stores the elements from, from+1, ... of a tensor of floats in dst.
func (t Tensor) Range(dst []float32, from int) error {
	if err := t.checkFloat(); err != nil {
		return err
	}
	if from < 0 || from+len(dst) > t.Len() {
		return fmt.Errorf("%s: tensor %q has no elements [%d,%d)", t.File, t.Name, from, from+len(dst))
	}
	return onFault(t.File, func() error {
		decode(t.DType, t.part(from, from+len(dst)), dst)
		t.drop(from, from+len(dst))
		return nil
	})
}

// Int64s stores the elements of an I64 tensor in dst, which has Len elements.
func (t Tensor) Int64s(dst []int64) error {
	if t.DType != I64 {
		return fmt.Errorf("%s: tensor %q is %s, want I64", t.File, t.Name, t.DType)
	}
	if err := t.checkLen(len(dst)); err != nil {
		return err
	}
	return onFault(t.File, func() error {
		for i := range dst {
			dst[i] = int64(binary.LittleEndian.Uint64(t.data[8*i:]))
		}
		return nil
	})
}

// convert stores the elements in dst and has check, unless it is nil, look at every
// block.
func convert[F float32 | float64](t Tensor, dst []F, check func(from int, block []F) error) error {
	if err := t.checkLen(len(dst)); err != nil {
		return err
	}
	if err := t.checkFloat(); err != nil {
		return err
	}
	return inBlocks(t.File, t.Len(), func(from, to int) error {
		decode(t.DType, t.part(from, to), dst[from:to])
		t.drop(from, to)
		if check == nil {
			return nil
		}
		return check(from, dst[from:to])
	})
}

func (t Tensor) checkLen(n int) error {
	if n != t.Len() {
		return fmt.Errorf("%s: tensor %q of shape %v has %d elements, want %d", t.File, t.Name, t.Shape, t.Len(), n)
	}
	return nil
}

// IsFloat reports whether the elements are floats.
func (t Tensor) IsFloat() bool {
	return t.DType == F32 || t.DType == BF16 || t.DType == F16 || t.DType == F64
}

func (t Tensor) checkFloat() error {
	if t.IsFloat() {
		return nil
	}
	return fmt.Errorf("%s: tensor %q is %s, want F32, BF16, F16 or F64", t.File, t.Name, t.DType)
}

// index returns the position of element i along every dimension: "2,7".
func (t Tensor) index(i int) string {
	at := make([]string, len(t.Shape))
	for d := len(at) - 1; d >= 0; d-- {
		at[d] = strconv.Itoa(i % t.Shape[d])
		i /= t.Shape[d]
	}
	return strings.Join(at, ",")
}
