package policyloss

import "fmt"

// Normalisation says what a step's loss is the mean of.
type Normalisation string

const (
	// PerSample: the mean over samples of the mean over each one's tokens (GRPO).
	PerSample Normalisation = "sample"
	// PerToken: the mean over all tokens of the step (DAPO).
	PerToken Normalisation = "token"
	// Constant: the sum over all tokens, divided by samples times a constant, the longest
	// a sample may be (Dr. GRPO, Liu et al. 2025, arXiv 2503.20783).
	Constant Normalisation = "constant"
)

// Weights returns the weight of the tokens of each sample of a step, whose lengths are
// given. longest is the constant of Constant.
func (n Normalisation) Weights(lengths []int, longest int) ([]float32, error) {
	total := 0
	for _, length := range lengths {
		total += length
	}
	weights := make([]float32, len(lengths))
	for i, length := range lengths {
		divisor := 0
		switch n {
		case PerSample:
			divisor = len(lengths) * length
		case PerToken:
			divisor = total
		case Constant:
			divisor = len(lengths) * longest
		default:
			return nil, fmt.Errorf("normalisation %q: want %s, %s or %s", n, PerSample, PerToken, Constant)
		}
		if length > 0 && divisor > 0 {
			weights[i] = float32(1 / float64(divisor))
		}
	}
	return weights, nil
}
