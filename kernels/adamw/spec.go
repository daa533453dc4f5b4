package adamw

import "math"

// update holds the numbers of one step that all elements of a parameter share:
// step = LR / (1 - beta1^t), correct = (1 - beta2^t)^-1/2, decay = LR lambda.
type update struct {
	beta1, beta2, eps    float64
	scale, step, correct float64
	decay                float64
}

// specUpdate is the specification, in float64, element by element:
//
//	g <- scale g
//	m <- beta1 m + (1 - beta1) g          v <- beta2 v + (1 - beta2) g^2
//	p <- p - LR lambda p - LR m' / (sqrt(v') + eps)
//	m' = m / (1 - beta1^t)                v' = v / (1 - beta2^t)
//
// Source: Loshchilov and Hutter 2019 (arXiv 1711.05101), algorithm 2, with the decay
// scaled by the learning rate as in PyTorch.
func specUpdate(p, g, m, v []float64, u update) {
	for i := range p {
		x := u.scale * g[i]
		m[i] = u.beta1*m[i] + (1-u.beta1)*x
		v[i] = u.beta2*v[i] + (1-u.beta2)*x*x
		p[i] -= u.decay*p[i] + u.step*m[i]/(math.Sqrt(v[i])*u.correct+u.eps)
	}
}
