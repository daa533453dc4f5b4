package safetensors

import (
	"encoding/binary"
	"math"
)

// decode widens or rounds the floats in data, which are stored as dtype.
func decode[F float32 | float64](dtype DType, data []byte, dst []F) {
	switch le := binary.LittleEndian; dtype {
	case F32:
		for i := range dst {
			dst[i] = F(math.Float32frombits(le.Uint32(data[4*i:])))
		}
	case BF16:
		for i := range dst {
			dst[i] = F(math.Float32frombits(uint32(le.Uint16(data[2*i:])) << 16))
		}
	case F16:
		for i := range dst {
			dst[i] = F(fromHalf(le.Uint16(data[2*i:])))
		}
	case F64:
		for i := range dst {
			dst[i] = F(math.Float64frombits(le.Uint64(data[8*i:])))
		}
	}
}

// encode appends the elements of src to data, rounded to dtype: F32, BF16 or F16.
func encode[F float32 | float64](dtype DType, data []byte, src []F) []byte {
	switch le := binary.LittleEndian; dtype {
	case F32:
		for _, x := range src {
			data = le.AppendUint32(data, math.Float32bits(float32(x)))
		}
	case BF16:
		for _, x := range src {
			data = le.AppendUint16(data, toBFloat16(float32(x)))
		}
	case F16:
		for _, x := range src {
			data = le.AppendUint16(data, toHalf(float32(x)))
		}
	}
	return data
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

// toHalf rounds to the nearest binary16 number, ties to even; what is too large
// becomes infinite, NaN stays NaN.
func toHalf(x float32) uint16 {
	b := math.Float32bits(x)
	sign := uint16(b >> 16 & 0x8000)
	switch size := b & 0x7fffffff; {
	case x != x:
		return sign | 0x7e00
	case size >= 0x477ff000: // 65520, halfway to the number after the largest
		return sign | 0x7c00
	case size < 0x38800000: // below 2^-14: multiples of 2^-24, which the addition rounds to
		const shift = 0.5 // whose last mantissa bit is 2^-24
		sum := math.Float32bits(math.Float32frombits(size) + shift)
		return sign | uint16(sum-math.Float32bits(shift))
	default:
		return sign | uint16((size+0xfff+size>>13&1-(127-15)<<23)>>13)
	}
}

// toBFloat16 rounds to the nearest bfloat16, ties to even; NaN stays NaN.
func toBFloat16(x float32) uint16 {
	b := math.Float32bits(x)
	if x != x {
		return uint16(b>>16) | 1<<6
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
