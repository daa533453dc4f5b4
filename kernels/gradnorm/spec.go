package gradnorm

// The specification: the sum of the squares in float64.
func specSquares(g []float64) float64 {
	sum := 0.0
	for _, x := range g {
		sum += x * x
	}
	return sum
}
