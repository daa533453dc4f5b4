package plan

import (
	"math"

	"caper/engine"
	"caper/model"
	"caper/model/lora"
)

// Job is a training run as far as memory and time depend on it.
type Job struct {
	Stage   string // sft, prm or grpo
	Name    string // of the model
	Model   model.Config
	Adapter *lora.Config
	// MicroBatch is the largest forest of a step, in tokens; MaxLength its longest sequence.
	MicroBatch, MaxLength int
	Checkpointing         engine.Checkpointing
	Precision             Precision // of gradients and optimiser

	Load    Load
	Sampler *Sampler // nil where nothing is sampled
	Copies  []Copy
	// Steps is how many steps the run has, 0 where that depends on the data; then Items
	// is how many prompts a step takes up, and Epochs how often the run goes through them.
	Steps, Items, Epochs int
}

// Load is what a step computes, in tokens: so many prompts, each once, and continuations.
type Load struct {
	Prompts       int `json:"prompts"`
	Continuations int `json:"continuations"` // of all prompts
	Prompt        int `json:"prompt_tokens"`
	Answer        int `json:"answer_tokens"`
	Passes        int `json:"passes"` // training passes over them
}

// Tokens are those of a step's packed trees.
func (l Load) Tokens() float64 {
	return float64(l.Prompts)*float64(l.Prompt) + float64(l.Continuations)*float64(l.Answer)
}

// Sampler is the native sampler of a policy.
type Sampler struct {
	Tokens int // that its cache of keys and values holds
	Batch  int // samples under way together, at most
}

// Copy is a further model that only computes: the reference, the reward model.
type Copy struct {
	Role    string
	Model   *model.Config // nil: no weights of its own
	Remark  string
	Batches bool // whether it runs over every packed token of a step
}

// Part is a share of a GPU's memory.
type Part struct {
	Name  string  `json:"name"`
	Bytes float64 `json:"bytes"`
}

// Phase is a share of a step: operations of the models, and seconds on one GPU.
type Phase struct {
	Name    string  `json:"name"`
	FLOPs   float64 `json:"flops"`
	Seconds float64 `json:"seconds"`
}

// Needs is what a Job takes.
type Needs struct {
	Stage string  `json:"stage"`
	Model string  `json:"model"`
	Card  Card    `json:"card"`
	Parts []Part  `json:"memory_one_gpu"`
	Total float64 `json:"memory_total_bytes"`
	Fits  bool    `json:"fits_one_gpu"`
	// GPUs is the least number of cards on which a step fits, by stage of ZeRO; 0 where
	// the parts that every GPU holds are too large already.
	GPUs   map[int]int `json:"gpus_by_zero_stage"`
	Load   Load        `json:"load"`
	Phases []Phase     `json:"step"`
	// Seconds of a step and hours of the run on one GPU; Steps is 0 where it depends on
	// the data, and then there are no hours.
	Seconds float64 `json:"step_seconds"`
	Steps   int     `json:"steps"`
	Hours   float64 `json:"hours"`
}

// Take returns what a job takes on a card at a utilisation. items is the number of pairs
// or questions to train on, 0 where it is not known.
func (j Job) Take(card Card, mfu float64, items int) (*Needs, error) {
	sequences := max(1, (j.MicroBatch+j.MaxLength-1)/j.MaxLength)
	largest, err := Step(j.Model, Batch{sequences, j.MicroBatch / sequences}, j.Adapter, j.Checkpointing)
	if err != nil {
		return nil, err
	}
	n := &Needs{Stage: j.Stage, Model: j.Name, Card: card, Load: j.Load}
	shared := []Part{{"activations, at most", largest.Peak}}
	if j.Sampler != nil {
		cache := CacheOf(j.Model, j.Sampler.Tokens, j.Sampler.Batch)
		shared = append(shared, Part{"sampler: keys and values", cache.KeysValues}, Part{"sampler: states of delta nets", cache.States})
	}
	for _, c := range j.Copies {
		bytes := 0.0
		if c.Model != nil {
			bytes = float64(Count(*c.Model).TensorSize)
		}
		shared = append(shared, Part{c.Role + ": " + c.Remark, bytes})
	}
	s := static("", largest.Parameters, largest.Trained, j.Precision, 0, 1)
	n.Parts = append([]Part{{"weights", s.Weights}, {"gradients", s.Gradients}, {"master weights", s.Master}, {"moments", s.Moments}}, shared...)
	for _, p := range n.Parts {
		n.Total += p.Bytes
	}
	room := card.Memory * (1 - Reserve)
	n.Fits = n.Total <= room
	n.GPUs = leastGPUs(n.Total-s.Total(), largest, j.Precision, room)
	if err := j.time(n, card, mfu); err != nil {
		return nil, err
	}
	if n.Steps = j.Steps; n.Steps == 0 && items > 0 {
		n.Steps = (items*j.Epochs + j.Items - 1) / j.Items
	}
	n.Hours = n.Seconds * float64(n.Steps) / 3600
	return n, nil
}

// mostGPUs is where the search for a number of cards ends.
const mostGPUs = 1024

// leastGPUs finds, by stage of ZeRO, the least number of cards whose room holds the parts
// that each has and its share of the others.
func leastGPUs(each float64, w *Walk, p Precision, room float64) map[int]int {
	least := map[int]int{}
	for stage := 1; stage <= 3; stage++ {
		for n := 1; n <= mostGPUs; n++ {
			if each+static("", w.Parameters, w.Trained, p, stage, n).Total() <= room {
				least[stage] = n
				break
			}
		}
	}
	return least
}

// time fills in the phases of a step.
func (j Job) time(n *Needs, card Card, mfu float64) error {
	walk, err := Step(j.Model, Batch{1, j.Load.Prompt + j.Load.Answer}, j.Adapter, j.Checkpointing)
	if err != nil {
		return err
	}
	perToken := func(w Work) float64 { return (w.FLOPs - w.Again) / float64(j.Load.Prompt+j.Load.Answer) }
	tokens, rate := j.Load.Tokens(), mfu*card.Peak
	add := func(name string, flops, seconds float64) {
		n.Phases = append(n.Phases, Phase{name, flops, seconds})
		n.Seconds += seconds
	}
	if j.Sampler != nil {
		flops := tokens * perToken(walk.Forward)
		add("sample", flops, flops/rate+j.decoding(walk, card))
	}
	for _, c := range j.Copies {
		if !c.Batches {
			continue
		}
		own := j.Model
		if c.Model != nil {
			own = *c.Model
		}
		w, err := Step(own, Batch{1, j.Load.Prompt + j.Load.Answer}, nil, engine.KeepAll)
		if err != nil {
			return err
		}
		flops := tokens * perToken(w.Forward)
		add(c.Role, flops, flops/rate)
	}
	// What checkpointing makes again takes time and is no part of the utilisation.
	passes := float64(max(1, j.Load.Passes))
	flops := passes * tokens * (perToken(walk.Forward) + perToken(walk.Backward))
	add("train", flops, (flops+passes*tokens*walk.Replay.FLOPs/float64(j.Load.Prompt+j.Load.Answer))/rate)
	return nil
}

// decoding is the time to read weights and cache for every step of the sampler, which
// bounds it where a batch is small: an answer's tokens come one after another.
func (j Job) decoding(w *Walk, card Card) float64 {
	batch := min(j.Sampler.Batch, j.Load.Continuations)
	rounds := math.Ceil(float64(j.Load.Continuations)/float64(batch)) * float64(j.Load.Answer)
	cache := CacheOf(j.Model, batch*(j.Load.Prompt+j.Load.Answer/2), batch)
	return rounds * (elementBytes*float64(w.Parameters) + cache.KeysValues + cache.States/2) / card.Bandwidth
}
