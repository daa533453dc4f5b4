package train

import (
	"strings"
	"testing"

	"caper/engine"
	"caper/model"
)

// What is planned before the first step is what the tape holds after the last, to the
// byte, under every mode of checkpointing, with every term of the loss, and for adapters.
func TestPlannedMemoryIsWhatStepsReach(t *testing.T) {
	base := trained(t, smallConfig(t, "train.max_steps=1"), Options{}).ModelDir
	for _, mode := range []string{"none", "selective", "full"} {
		for _, extra := range [][]string{
			nil,
			{"loss.contrast=1", "loss.divergence=0.5", "loss.language_model=0.3", "train.micro_batch_tokens=150"},
			{"model.path=" + base, "lora.rank=2", "train.micro_batch_tokens=100"},
			{"model.head=token"},
		} {
			r := opened(t, smallConfig(t, append(extra, "train.checkpointing="+mode)...))
			planned, err := r.survey(t.Context(), r.tape.Checkpointing, r.config.Train.MicroBatchTokens)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.loop(t.Context()); err != nil {
				t.Fatal(err)
			}
			// A tape that was told nothing takes the same steps in blocks: it needs no less.
			if got := r.tape.Bytes(); got != planned.Bytes() || got == 0 {
				t.Errorf("%s %v: planned %d bytes, %v, reached %d", mode, extra, planned.Bytes(), planned, got)
			}
		}
	}
}

// Every planned byte is used: with any less, the tape has to take more.
func TestPlannedMemoryIsNeeded(t *testing.T) {
	r := opened(t, smallConfig(t, "train.checkpointing=selective"))
	planned, err := r.survey(t.Context(), r.tape.Checkpointing, r.config.Train.MicroBatchTokens)
	if err != nil {
		t.Fatal(err)
	}
	for i, elements := range planned {
		if elements == 0 {
			continue
		}
		less := planned
		less[i] -= 16 // a cache line
		r := opened(t, smallConfig(t, "train.checkpointing=selective"))
		r.tape = engine.NewTape(r.device)
		r.tape.Checkpointing = engine.KeepDear
		r.tape.Reserve(less)
		if _, err := r.loop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r.tape.Bytes() <= planned.Bytes() {
			t.Errorf("arena %d: %d elements suffice, planned %d", i, less[i], elements)
		}
	}
}

// A run that needs more memory than there is is refused with what would make it fit.
func TestTooLittleMemory(t *testing.T) {
	r := opened(t, smallConfig(t))
	takes := func(mode engine.Checkpointing, tokens int) float64 {
		d, err := r.survey(t.Context(), mode, tokens)
		if err != nil {
			t.Fatal(err)
		}
		return float64(r.memory(d).Total()) / 1e9
	}
	for _, k := range []struct {
		gigabytes float64
		want      string
	}{
		{takes(engine.KeepAll, 8192), ""},
		{takes(engine.KeepDear, 8192), "with train.checkpointing=selective it takes"},
		{takes(engine.KeepOutput, 8192), "with train.checkpointing=full it takes"},
		{takes(engine.KeepOutput, 128), "with train.checkpointing=full train.micro_batch_tokens=128 it takes"},
		{1e-6, "lora.rank"},
	} {
		c := smallConfig(t)
		c.Train.MemoryGB = k.gigabytes
		_, err := PRM(t.Context(), c, Options{})
		if k.want == "" && err != nil || k.want != "" && (err == nil || !strings.Contains(err.Error(), k.want) || !strings.Contains(err.Error(), "gradients")) {
			t.Errorf("%g GB: error %v", k.gigabytes, err)
		}
	}
}

// A model that does not fit is refused before its weights are read.
func TestWeightsThatDoNotFit(t *testing.T) {
	c := smallConfig(t)
	c.Train.MaxSteps = 1
	first, err := PRM(t.Context(), c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	c = smallConfig(t)
	c.Model.Path, c.Train.MemoryGB = first.ModelDir, 1e-6
	if _, err := PRM(t.Context(), c, Options{}); err == nil || !strings.Contains(err.Error(), "without any activations") {
		t.Errorf("error %v", err)
	}
	m, err := model.Load(first.ModelDir, engine.CPU(1))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := model.CountParameters(first.ModelDir); err != nil || n != elements(m.Params()) {
		t.Errorf("%d parameters, want %d; error %v", n, elements(m.Params()), err)
	}
}
