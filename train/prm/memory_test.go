package prm

import (
	"strings"
	"testing"

	"caper/engine"
	"caper/model"
	"caper/train/run"
)

// What is planned before the first step is what the tape holds after the last, to the
// byte, under every mode of checkpointing, with every term of the loss, and for adapters.
func TestPlannedMemoryIsWhatStepsReach(t *testing.T) {
	base := trained(t, smallConfig(t, "train.max_steps=1"), run.Options{}).ModelDir
	for _, mode := range []string{"none", "selective", "full"} {
		for _, extra := range [][]string{
			nil,
			{"loss.contrast=1", "loss.divergence=0.5", "loss.language_model=0.3", "train.micro_batch_tokens=150"},
			{"model.path=" + base, "lora.rank=2", "train.micro_batch_tokens=100"},
			{"model.head=token"},
		} {
			r := opened(t, smallConfig(t, append(extra, "train.checkpointing="+mode)...))
			planned, err := r.run.Survey(t.Context(), r.walk, r.run.Tape.Checkpointing, r.config.Train.MicroBatchTokens)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.run.Loop(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			// A tape that was told nothing takes the same steps in blocks: it needs no less.
			if got := r.run.Tape.Bytes(); got != planned.Bytes() || got == 0 {
				t.Errorf("%s %v: planned %d bytes, %v, reached %d", mode, extra, planned.Bytes(), planned, got)
			}
		}
	}
}

// Every planned byte is used: with any less, the tape has to take more.
func TestPlannedMemoryIsNeeded(t *testing.T) {
	r := opened(t, smallConfig(t, "train.checkpointing=selective"))
	planned, err := r.run.Survey(t.Context(), r.walk, r.run.Tape.Checkpointing, r.config.Train.MicroBatchTokens)
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
		r.run.Tape = engine.NewTape(r.run.Device)
		r.run.Tape.Checkpointing = engine.KeepDear
		r.run.Tape.Reserve(less)
		if _, err := r.run.Loop(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if r.run.Tape.Bytes() <= planned.Bytes() {
			t.Errorf("arena %d: %d elements suffice, planned %d", i, less[i], elements)
		}
	}
}

// A run that needs more memory than there is is refused with what would make it fit.
func TestTooLittleMemory(t *testing.T) {
	r := opened(t, smallConfig(t))
	takes := func(mode engine.Checkpointing, tokens int) float64 {
		d, err := r.run.Survey(t.Context(), r.walk, mode, tokens)
		if err != nil {
			t.Fatal(err)
		}
		return float64(r.run.Memory(d).Total()) / 1e9
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
		_, err := Train(t.Context(), c, run.Options{})
		if k.want == "" && err != nil || k.want != "" && (err == nil || !strings.Contains(err.Error(), k.want) || !strings.Contains(err.Error(), "gradients")) {
			t.Errorf("%g GB: error %v", k.gigabytes, err)
		}
	}
}

// A model that does not fit is refused before its weights are read.
func TestWeightsThatDoNotFit(t *testing.T) {
	c := smallConfig(t)
	c.Train.MaxSteps = 1
	first, err := Train(t.Context(), c, run.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c = smallConfig(t)
	c.Model.Path, c.Train.MemoryGB = first.ModelDir, 1e-6
	if _, err := Train(t.Context(), c, run.Options{}); err == nil || !strings.Contains(err.Error(), "without any activations") {
		t.Errorf("error %v", err)
	}
	m, err := model.Load(first.ModelDir, engine.CPU(1))
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	for _, p := range m.Params() {
		want += p.Rows * p.Cols
	}
	if n, err := model.CountParameters(first.ModelDir); err != nil || n != want {
		t.Errorf("%d parameters, want %d; error %v", n, want, err)
	}
}
