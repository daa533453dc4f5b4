package train

import (
	"context"
	"fmt"
	"math"

	"caper/engine"
	"caper/model"
)

// Memory is what a run's training steps hold, in bytes. Tuples, validation and the
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
func (r *prm) plan(ctx context.Context) (Memory, error) {
	demand, err := r.survey(ctx, r.tape.Checkpointing, r.config.Train.MicroBatchTokens)
	if err != nil {
		return Memory{}, err
	}
	m := r.memory(demand)
	if limit := r.memoryLimit(m); m.Total() > limit {
		return m, r.tooLarge(ctx, m, limit)
	}
	r.tape.Reserve(demand)
	return m, nil
}

// planWeights refuses a model whose weights alone, with what training keeps of each, do
// not fit, before they are loaded. A GPU says so itself.
func (r *prm) planWeights() error {
	if engine.GPUOf(r.device) != nil {
		return nil
	}
	n, err := model.CountParameters(r.config.Model.Path)
	if err != nil {
		return err
	}
	m := Memory{Weights: 4 * n}
	if r.config.LoRA.Rank == 0 {
		m.Gradients, m.Moments = 4*n, 8*n
	}
	if limit := r.config.Train.memoryLimit(); m.Total() > limit {
		return r.config.mistake("model.path", "without any activations it takes %s; there is %s (train.memory_gb): train an adapter (lora.rank=16) or a smaller model", m, bytesText(limit))
	}
	return nil
}

// memory adds what lasts for the whole run to the demand of the tape.
func (r *prm) memory(d engine.Demand) Memory {
	m := Memory{Activations: d.Bytes(), Gradients: 4 * elements(r.params)}
	for _, p := range r.model.Params() {
		m.Weights += p.Bytes()
	}
	for _, p := range r.params {
		m.Moments += 2 * 4 * p.Rows * p.Cols
		if p.Bytes() < 4*p.Rows*p.Cols { // the optimiser keeps the weight itself in float32
			m.Moments += 4 * p.Rows * p.Cols
		}
	}
	return m
}

// memoryLimit is what steps may take on the run's device: of a GPU, what the run has taken
// already and what nobody uses.
func (r *prm) memoryLimit(m Memory) int {
	g := engine.GPUOf(r.device)
	if g == nil || r.config.Train.MemoryGB > 0 {
		return r.config.Train.memoryLimit()
	}
	free, err := g.FreeMemory()
	if err != nil {
		return 0
	}
	return m.Total() - m.Activations + int(free)
}

// surveyed is how many steps are walked at most: those of longer runs are much alike.
const surveyed = 2048

// survey walks the run's own micro-batches on a device of shapes and returns what the
// largest take.
func (r *prm) survey(ctx context.Context, mode engine.Checkpointing, tokens int) (engine.Demand, error) {
	dev := engine.Shapes(4)
	if engine.GPUOf(r.device) != nil {
		dev = engine.CUDAShapes()
	}
	twin := &prm{config: r.config, device: dev, data: r.data, state: r.state, tape: engine.NewTape(dev)}
	twin.tape.Checkpointing = mode
	var err error
	if twin.model, err = r.model.OnShapes(dev); err != nil {
		return engine.Demand{}, err
	}
	for range min(r.total-r.state.Step, surveyed) {
		if ctx.Err() != nil {
			return engine.Demand{}, ctx.Err()
		}
		if twin.state.Next == 0 || twin.order == nil {
			twin.shuffle()
		}
		questions := twin.take()
		of := twin.sums(questions)
		for twin.batch.lay(questions, tokens); twin.batch.pack(twin.config.Loss); {
			twin.microBatch(of)
		}
	}
	return twin.tape.Demand(), nil
}

// tooLarge says what to change in a run that needs more memory than there is: more
// checkpointing, then smaller micro-batches, as far as they help.
func (r *prm) tooLarge(ctx context.Context, m Memory, limit int) error {
	const leastTokens = 64
	refuse := func(key, remedy string) error {
		return r.config.mistake(key, "a step takes %s; there is %s (train.memory_gb): %s", m, bytesText(limit), remedy)
	}
	mode, tokens := r.tape.Checkpointing, r.config.Train.MicroBatchTokens
	for mode < engine.KeepOutput || tokens/2 >= leastTokens {
		if mode < engine.KeepOutput {
			mode++
		} else {
			tokens /= 2
		}
		d, err := r.survey(ctx, mode, tokens)
		if err != nil {
			return err
		}
		if smaller := r.memory(d); smaller.Total() <= limit {
			change := fmt.Sprintf("train.checkpointing=%s", mode)
			if tokens < r.config.Train.MicroBatchTokens {
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
