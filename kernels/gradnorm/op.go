// Package gradnorm is the length of the gradient as one vector, by which it is
// clipped.
package gradnorm

import (
	"math"
	"time"

	"caper/engine"
)

// Norm returns sqrt(sum of squares) over the gradients of all params, frozen ones
// left out. Sums are in float64 and in a fixed order: the result is the same for
// any number of threads. It is not finite when an element is not.
func Norm(dev engine.Device, params []*engine.Param) float64 {
	if engine.GPUOf(dev) != nil {
		return cudaNorm(dev, params)
	}
	sum := 0.0
	for _, p := range params {
		if p.Grad == nil {
			continue
		}
		started := time.Now()
		switch {
		case p.Grad.F64 != nil:
			sum += specSquares(p.Grad.F64)
		case p.Grad.F32 != nil:
			sum += cpuSquares(dev, p.Grad)
		}
		if o := engine.ObserverOf(dev); o != nil {
			o.Observe(&engine.Launch{
				Operator: "gradnorm", Phase: engine.Update, Start: started, Duration: time.Since(started),
				Reads: engine.Tensors{p.Grad},
			})
		}
	}
	return math.Sqrt(sum)
}
