// Package gradnorm is the length of the gradient as one vector, by which it is
// clipped.
package gradnorm

import (
	"math"

	"caper/engine"
)

// Norm returns sqrt(sum of squares) over the gradients of all params, frozen ones
// left out. Sums are in float64 and in a fixed order: the result is the same for
// any number of threads. It is not finite when an element is not.
func Norm(dev engine.Device, params []*engine.Param) float64 {
	sum := 0.0
	for _, p := range params {
		switch {
		case p.Grad == nil:
		case p.Grad.F64 != nil:
			sum += specSquares(p.Grad.F64)
		default:
			sum += cpuSquares(dev, p.Grad)
		}
	}
	return math.Sqrt(sum)
}
