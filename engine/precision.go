package engine

import "fmt"

// Precision is what the products of linear layers, forward and backward, compute with.
// Tensors are float32 in either case, weights and gradients too, and so is every other
// operator, attention and delta rule included.
type Precision int

const (
	// Float32 multiplies the numbers as they are.
	Float32 Precision = iota
	// BFloat16 rounds both factors to bfloat16 (8 bits of precision, to nearest, ties
	// to even) and sums in float32. With AMX that is several times faster; every other
	// machine gives the same up to the order of the sum, at nearly float32 speed.
	BFloat16
)

// ParsePrecision reads the names of configuration files: "fp32" and "bf16".
func ParsePrecision(name string) (Precision, error) {
	for _, p := range []Precision{Float32, BFloat16} {
		if p.String() == name {
			return p, nil
		}
	}
	return 0, fmt.Errorf("precision %q: want fp32 or bf16", name)
}

// String is the name in configuration files.
func (p Precision) String() string {
	if p == BFloat16 {
		return "bf16"
	}
	return "fp32"
}
