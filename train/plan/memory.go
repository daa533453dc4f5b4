package plan

// Activations is what the activations of a batch take under each mode of checkpointing,
// as walked.
type Activations struct {
	None      Checkpointing `json:"none"`      // keep everything that the backward pass reads
	Selective Checkpointing `json:"selective"` // make again what is cheap: norms, SiLU products, convolutions, rotations
	Full      Checkpointing `json:"full"`      // keep each layer's result, and run the layer again
}

// Checkpointing is the memory of one mode, in bytes: between forward and backward pass,
// and at most, with the gradients and what was made again of the layer under way.
type Checkpointing struct {
	Kept float64 `json:"kept_bytes"`
	Peak float64 `json:"peak_bytes"`
}

// Precision is the bytes per parameter of what training keeps besides the bf16 weights.
type Precision struct {
	Gradient, Master, Moments float64
}

// The usual choices: gradients in bf16 or float32; both of AdamW's moments in float32,
// or in bf16 with stochastic rounding.
var (
	Mixed       = Precision{Gradient: 2, Master: 4, Moments: 8}
	MixedFloat  = Precision{Gradient: 4, Master: 4, Moments: 8}
	MomentsBF16 = Precision{Gradient: 2, Master: 4, Moments: 4}
	// What runs here keep with train.moments=bf16; with fp32 it is MixedFloat.
	MomentsBF16Float = Precision{Gradient: 4, Master: 4, Moments: 4}
)

// Static is the memory of one GPU that does not depend on the batch, in bytes.
type Static struct {
	Recipe    string  `json:"recipe"`
	Stage     int     `json:"zero_stage"` // 0: everything on every GPU
	Weights   float64 `json:"weights_bytes"`
	Gradients float64 `json:"gradients_bytes"`
	Master    float64 `json:"master_bytes"`
	Moments   float64 `json:"moments_bytes"`
}

// Total sums the parts up.
func (s Static) Total() float64 { return s.Weights + s.Gradients + s.Master + s.Moments }

// static returns the memory of each GPU of n under a stage of ZeRO (Rajbhandari et al.
// 2020, arXiv 1910.02054): stage 1 cuts what the optimiser holds into n parts, stage 2
// the gradients as well, stage 3 also the weights. trained of the parameters have
// gradients and optimiser state.
func static(recipe string, parameters, trained int, p Precision, stage, n int) Static {
	part := func(from int) float64 {
		if stage >= from {
			return 1 / float64(n)
		}
		return 1
	}
	t := float64(trained)
	return Static{
		Recipe: recipe, Stage: stage,
		Weights:   2 * float64(parameters) * part(3),
		Gradients: p.Gradient * t * part(2),
		Master:    p.Master * t * part(1),
		Moments:   p.Moments * t * part(1),
	}
}
