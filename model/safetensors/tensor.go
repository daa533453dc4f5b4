package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Tensor is one tensor of an open file. Its bytes stay in the file until one of the
// methods converts them.
type Tensor struct {
	Name, File string
	DType      DType
	Shape      []int // empty for a scalar

	data []byte
}

// Len returns the number of elements.
func (t Tensor) Len() int { return len(t.data) / int(t.DType.Size()) }

// Float32s stores the elements in dst, which has Len elements. F32, BF16 and F16 are
// exact; F64 is rounded.
func (t Tensor) Float32s(dst []float32) error { return decodeFloats(t, dst) }

// Float64s stores the elements in dst, which has Len elements. All four floating
// types are exact.
func (t Tensor) Float64s(dst []float64) error { return decodeFloats(t, dst) }

// Int64s stores the elements of an I64 tensor in dst, which has Len elements.
func (t Tensor) Int64s(dst []int64) error {
	if t.DType != I64 {
		return fmt.Errorf("%s: tensor %q is %s, want I64", t.File, t.Name, t.DType)
	}
	if err := t.checkLen(len(dst)); err != nil {
		return err
	}
	for i := range dst {
		dst[i] = int64(binary.LittleEndian.Uint64(t.data[8*i:]))
	}
	return nil
}

func (t Tensor) checkLen(n int) error {
	if n != t.Len() {
		return fmt.Errorf("%s: tensor %q of shape %v has %d elements, want %d", t.File, t.Name, t.Shape, t.Len(), n)
	}
	return nil
}

func decodeFloats[F float32 | float64](t Tensor, dst []F) error {
	if err := t.checkLen(len(dst)); err != nil {
		return err
	}
	switch le := binary.LittleEndian; t.DType {
	case F32:
		for i := range dst {
			dst[i] = F(math.Float32frombits(le.Uint32(t.data[4*i:])))
		}
	case BF16:
		for i := range dst {
			dst[i] = F(math.Float32frombits(uint32(le.Uint16(t.data[2*i:])) << 16))
		}
	case F16:
		for i := range dst {
			dst[i] = F(fromHalf(le.Uint16(t.data[2*i:])))
		}
	case F64:
		for i := range dst {
			dst[i] = F(math.Float64frombits(le.Uint64(t.data[8*i:])))
		}
	default:
		return fmt.Errorf("%s: tensor %q is %s, want F32, BF16, F16 or F64", t.File, t.Name, t.DType)
	}
	return nil
}

// fromHalf widens an IEEE 754 binary16 number: 1 sign, 5 exponent and 10 mantissa
// bits. Every such number is a float32.
func fromHalf(h uint16) float32 {
	sign, exponent, mantissa := uint32(h>>15)<<31, uint32(h>>10&31), uint32(h&1023)
	switch exponent {
	case 0: // zero and subnormal numbers: mantissa x 2^-24
		value := math.Float32bits(float32(mantissa) / (1 << 24))
		return math.Float32frombits(sign | value)
	case 31: // infinities and NaN
		return math.Float32frombits(sign | 255<<23 | mantissa<<13)
	}
	return math.Float32frombits(sign | (exponent-15+127)<<23 | mantissa<<13)
}

// toBFloat16 rounds to the nearest bfloat16, ties to even; NaN stays NaN.
func toBFloat16(x float32) uint16 {
	b := math.Float32bits(x)
	if x != x {
		return uint16(b>>16) | 1<<6
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
