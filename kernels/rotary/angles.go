package rotary

import (
	"math"
	"slices"
	"sync"
)

// angle returns the angle by which pair j is rotated at a position:
// position * theta^(-2j/dims).
func angle(position, j, dims int, theta float64) float64 {
	return float64(position) * math.Pow(theta, -2*float64(j)/float64(dims))
}

// tables holds the cosines and sines of all positions seen so far, computed in
// float64 and rounded once, for each kind of rotation that the program uses.
var tables struct {
	sync.Mutex
	of map[kind][]float32
}

type kind struct {
	dims  int
	theta float64
}

// table returns, for every position from 0 to the largest of positions or beyond,
// the cosines of its dims/2 angles and then their sines. A table that is too short
// is extended to twice its length, in a copy: others may be reading it.
func table(dims int, theta float64, positions []int32) []float32 {
	if dims == 0 || len(positions) == 0 {
		return nil
	}
	last := int(slices.Max(positions))
	tables.Lock()
	defer tables.Unlock()
	k := kind{dims, theta}
	known := tables.of[k]
	have := len(known) / dims
	if last < have {
		return known
	}
	longer := make([]float32, max(last+1, 2*have)*dims)
	copy(longer, known)
	for p := have; p < len(longer)/dims; p++ {
		row := longer[p*dims : (p+1)*dims]
		for j := range dims / 2 {
			sin, cos := math.Sincos(angle(p, j, dims, theta))
			row[j], row[dims/2+j] = float32(cos), float32(sin)
		}
	}
	if tables.of == nil {
		tables.of = map[kind][]float32{}
	}
	tables.of[k] = longer
	return longer
}
