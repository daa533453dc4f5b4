package run

import (
	"context"
	"fmt"
	"math"

	"caper/engine"
	"caper/model"
)

// Memory is what a run's training steps hold, in bytes. Data, validation and the
// program itself come on top; Reserve is left for them.
type Memory struct {
	Weights     int `json:"weights_bytes"`
	Gradients   int `json:"gradients_bytes"`
	Moments     int `json:"moments_bytes"`     // of the optimiser
	Activations int `json:"activations_bytes"` // with their gradients and scratch: all that the tape holds
}

// Total sums the parts up.
func (m Memory) Total() int { return m.Weights + m.Gradients + m.Moments + m.Activations }

// Reserve is the share of the machine's memory that steps may not plan to use.
const Reserve = 0.1

// String gives the total and the parts.
func (m Memory) String() string {
	return fmt.Sprintf("%s: weights %s, gradients %s, optimiser %s, activations %s",
		bytesText(m.Total()), bytesText(m.Weights), bytesText(m.Gradients), bytesText(m.Moments), bytesText(m.Activations))
}

// bytesText writes a size in decimal units.
func bytesText(n int) string {
	switch {
	case n < 1e6:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 1e9:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.2f GB", float64(n)/1e9)
}

// plan finds the memory of a run's steps before the first of them, and takes it. A run
// that needs more than there is is refused.
func (r *Run) plan(ctx context.Context, walk Walk) (Memory, error) {
	demand, err := r.Survey(ctx, walk, r.Tape.Checkpointing, r.sections.Train.MicroBatchTokens)
	if err != nil {
		return Memory{}, err
	}
	m := r.Memory(demand)
	if limit := r.memoryLimit(m); m.Total() > limit {
		return m, r.tooLarge(ctx, walk, m, limit)
	}
	r.Tape.Reserve(demand)
	return m, nil
}

// planWeights refuses a model whose weights alone, with what training keeps of each, do
// not fit, before they are loaded. A GPU says so itself.
func (r *Run) planWeights() error {
	if engine.GPUOf(r.Device) != nil {
		return nil
	}
	n, err := model.CountParameters(r.sections.Model.Path)
	if err != nil {
		return err
	}
	m := Memory{Weights: 4 * n}
	if r.sections.LoRA.Rank == 0 {
		m.Gradients, m.Moments = 4*n, 8*n
	}
	if limit := r.sections.Train.memoryLimit(); m.Total() > limit {
		return r.sections.mistake("model.path", "without any activations it takes %s; there is %s (train.memory_gb): train an adapter (lora.rank=16) or a smaller model", m, bytesText(limit))
	}
	return nil
}

func (r *Run) momentBytes() int {
	if r.bfloat16Moments() {
		return 2
	}
	return 4
}

// Memory adds what lasts for the whole run to the demand of the tape.
func (r *Run) Memory(d engine.Demand) Memory {
	m := Memory{Activations: d.Bytes(), Gradients: 4 * elements(r.Params)}
	for _, p := range r.Model.Params() {
		m.Weights += p.Bytes()
	}
	for _, p := range r.Params {
		m.Moments += 2 * r.momentBytes() * p.Rows * p.Cols
		if p.Bytes() < 4*p.Rows*p.Cols { // the optimiser keeps the weight itself in float32
			m.Moments += 4 * p.Rows * p.Cols
		}
	}
	return m
}

// memoryLimit is what steps may take on the run's device: of a GPU, what the run has taken
// already and what nobody uses.
func (r *Run) memoryLimit(m Memory) int {
	g := engine.GPUOf(r.Device)
	if g == nil || r.sections.Train.MemoryGB > 0 {
		return r.sections.Train.memoryLimit()
	}
	free, err := g.FreeMemory()
	if err != nil {
		return 0
	}
	return m.Total() - m.Activations + int(free)
}

// Walk takes the steps that are left on a twin of the run whose device and model have
// shapes alone, in micro-batches of at most tokens: forward and backward passes, nothing
// else. It is called before Begin returns, and stops when ctx ends.
type Walk func(ctx context.Context, twin *Run, tokens int) error

// Surveyed is how many steps a Walk takes at most: those of longer runs are much alike.
const Surveyed = 2048

// Survey walks the run's own micro-batches on a device of shapes and returns what the
// largest take.
func (r *Run) Survey(ctx context.Context, walk Walk, mode engine.Checkpointing, tokens int) (engine.Demand, error) {
	dev := engine.Shapes(4)
	if engine.GPUOf(r.Device) != nil {
		dev = engine.CUDAShapes()
	}
	twin := &Run{Device: dev, Tape: engine.NewTape(dev), Total: r.Total, Log: r.Log, sections: r.sections}
	twin.Tape.Checkpointing = mode
	var err error
	if twin.Model, err = r.Model.OnShapes(dev); err != nil {
		return engine.Demand{}, err
	}
	if err := walk(ctx, twin, tokens); err != nil {
		return engine.Demand{}, err
	}
	return twin.Tape.Demand(), nil
}

// tooLarge says what to change in a run that needs more memory than there is: more
// checkpointing, then smaller micro-batches, as far as they help.
func (r *Run) tooLarge(ctx context.Context, walk Walk, m Memory, limit int) error {
	const leastTokens = 64
	refuse := func(key, remedy string) error {
		return r.sections.mistake(key, "a step takes %s; there is %s (train.memory_gb): %s", m, bytesText(limit), remedy)
	}
	mode, tokens := r.Tape.Checkpointing, r.sections.Train.MicroBatchTokens
	for mode < engine.KeepOutput || tokens/2 >= leastTokens {
		if mode < engine.KeepOutput {
			mode++
		} else {
			tokens /= 2
		}
		d, err := r.Survey(ctx, walk, mode, tokens)
		if err != nil {
			return err
		}
		if smaller := r.Memory(d); smaller.Total() <= limit {
			change := fmt.Sprintf("train.checkpointing=%s", mode)
			if tokens < r.sections.Train.MicroBatchTokens {
				change += fmt.Sprintf(" train.micro_batch_tokens=%d", tokens)
			}
			return refuse("train.micro_batch_tokens", fmt.Sprintf("with %s it takes %s", change, bytesText(smaller.Total())))
		}
	}
	return refuse("model.path", "train an adapter (lora.rank=16), a smaller model, or shorter sequences (train.max_length)")
}

// memoryLimit is what steps may take: train.memory_gb, or else the machine's or the
// container's memory but for Reserve.
func (t Train) memoryLimit() int {
	if t.MemoryGB > 0 {
		return int(min(1e9*t.MemoryGB, math.MaxInt/2))
	}
	return int((1 - Reserve) * float64(engine.MachineMemory()))
}
