// Package plan is the arithmetic of a training run before it is started: parameters,
// operations, memory and time of a model on some GPUs. Nothing is computed and no GPU
// is needed; what a step does and keeps is found by walking it on a device of shapes.
package plan

import (
	"caper/engine"
	"caper/model"
	"caper/model/lora"
)

// Options describe the run.
type Options struct {
	Batch Batch // of one GPU: a micro-batch
	GPUs  int
	Card  Card
	// MFU is the share of Card.Peak that the model's own operations reach.
	MFU float64
	// Adapter, if set, is trained instead of the weights.
	Adapter *lora.Config
}

// Plan is what a run takes.
type Plan struct {
	Model   string      `json:"model"`
	Weights Weights     `json:"weights"`
	Trained int         `json:"trained_parameters"`
	GPUs    int         `json:"gpus"`
	Card    Card        `json:"card"`
	Batch   Batch       `json:"batch"`
	FLOPs   FLOPs       `json:"flops_per_token"`
	Static  []Static    `json:"static"`
	Memory  Activations `json:"activations"`
	Fits    []Fit       `json:"fits"`
	Speed   Speed       `json:"speed"`
	Sharing *Sharing    `json:"sharing,omitempty"`

	walk *Walk
}

// FLOPs are operations per token. Model counts what the model needs: the measure of
// MFU. Computed adds what operators compute a second time inside their backward pass;
// Full what it takes when each layer is run again.
type FLOPs struct {
	Forward  float64 `json:"forward"`
	Backward float64 `json:"backward"`
	Model    float64 `json:"model"`
	Computed float64 `json:"computed"`
	Full     float64 `json:"full_recompute"`
}

// Speed is what the card gives at the stated utilisation.
type Speed struct {
	MFU float64 `json:"mfu"`
	// Tokens a second and GPU; with full recomputation at the same rate of operations.
	Tokens     float64 `json:"tokens_per_second_gpu"`
	TokensFull float64 `json:"tokens_per_second_gpu_full"`
}

// Fit is whether a recipe fits the card, with each way of checkpointing, in bytes of one
// GPU: weights, optimiser and the batch's activations.
type Fit struct {
	Static
	None      float64 `json:"none_bytes"`
	Selective float64 `json:"selective_bytes"`
	Full      float64 `json:"full_bytes"`
	// Best is the way that fits with the least to compute again; "no" where none does.
	Best string `json:"best"`
}

// Reserve is the share of a card's memory that is left for the driver, for scratch and
// for gaps.
const Reserve = 0.05

// Make plans the training of a model. name is what it is called; a published one's
// checkpoint is described too.
func Make(name string, c model.Config, o Options) (*Plan, error) {
	walks := map[engine.Checkpointing]*Walk{}
	for _, mode := range []engine.Checkpointing{engine.KeepAll, engine.KeepDear, engine.KeepOutput} {
		w, err := Step(c, o.Batch, o.Adapter, mode)
		if err != nil {
			return nil, err
		}
		walks[mode] = w
	}
	walk, selective, full := walks[engine.KeepAll], walks[engine.KeepDear], walks[engine.KeepOutput]
	p := &Plan{Model: name, Weights: Count(c), GPUs: o.GPUs, Card: o.Card, Batch: o.Batch, walk: walk}
	p.Weights.Release = released(name)
	p.Memory = Activations{walk.checkpointing(), selective.checkpointing(), full.checkpointing()}
	p.FLOPs = perToken(walk, full, o.Batch)
	p.Trained = walk.Trained
	p.Static = statics(walk, o)
	for _, s := range p.Static {
		p.Fits = append(p.Fits, fit(s, p.Memory, o.Card))
	}
	rate := o.MFU * o.Card.Peak
	p.Speed = Speed{MFU: o.MFU, Tokens: rate / p.FLOPs.Model, TokensFull: rate / (p.FLOPs.Model + p.FLOPs.Full - p.FLOPs.Computed)}
	return p, nil
}

func (r *Walk) checkpointing() Checkpointing { return Checkpointing{r.Kept, r.Peak} }

func perToken(none, full *Walk, b Batch) FLOPs {
	n := float64(b.Tokens())
	f := FLOPs{Forward: none.Forward.FLOPs / n, Backward: (none.Backward.FLOPs - none.Backward.Again) / n}
	f.Model = f.Forward + f.Backward
	f.Computed = f.Model + none.Backward.Again/n
	f.Full = f.Computed + full.Replay.FLOPs/n
	return f
}

// statics lists the recipes worth comparing: on one GPU there is nothing to cut.
func statics(w *Walk, o Options) []Static {
	stages := []int{0}
	if o.GPUs > 1 {
		stages = []int{0, 1, 2, 3}
	}
	var all []Static
	for _, r := range []struct {
		name string
		Precision
	}{{"bf16 gradients", Mixed}, {"float32 gradients", MixedFloat}, {"bf16 moments", MomentsBF16}} {
		for _, stage := range stages {
			all = append(all, static(r.name, w.Parameters, w.Trained, r.Precision, stage, o.GPUs))
		}
	}
	return all
}

func fit(s Static, a Activations, card Card) Fit {
	f := Fit{Static: s, None: s.Total() + a.None.Peak, Selective: s.Total() + a.Selective.Peak, Full: s.Total() + a.Full.Peak}
	room := card.Memory * (1 - Reserve)
	switch {
	case f.None <= room:
		f.Best = "none"
	case f.Selective <= room:
		f.Best = "selective"
	case f.Full <= room:
		f.Best = "full"
	default:
		f.Best = "no"
	}
	return f
}
