package plan

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"caper/engine"
	"caper/model"
	"caper/model/lora"
)

func named(t *testing.T, name string, reward bool) model.Config {
	t.Helper()
	c, err := Named(name)
	if err != nil {
		t.Fatal(err)
	}
	c.Reward = reward
	return c
}

func options(t *testing.T, card string, gpus, length int) Options {
	t.Helper()
	c, err := FindCard(card)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Batch: Batch{1, length}, GPUs: gpus, Card: c, MFU: 0.4}
}

func makePlan(t *testing.T, name string, reward bool, o Options) *Plan {
	t.Helper()
	p, err := Make(name, named(t, name, reward), o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*math.Abs(want) {
		t.Errorf("%s: %g, want %g within %g", what, got, want, tolerance)
	}
}

// GFLOP per token at 4,096 tokens, worked out by hand from the networks' dimensions:
// two a multiply-add, attention over half the length. What operators compute twice is
// left out of Model; Computed has it, and there the hand-made figures lack the logits,
// which ours forms again in the backward pass. Theirs has more products in the backward
// pass of the delta rule, 1 % of the smallest model's.
func TestOperationsPerToken(t *testing.T) {
	for _, want := range []struct {
		name                          string
		forward, training, head, full float64
	}{
		{"0.8B", 1.65, 5.06, 0.509, 6.20},
		{"2B", 3.91, 11.83, 1.017, 14.73},
		{"4B", 8.81, 26.68, 1.271, 34.2},
		{"9B", 16.27, 49.06, 2.034, 63.3},
		{"27B", 52.4, 158.1, 2.543, 208.0},
	} {
		f := makePlan(t, want.name, false, options(t, "H200", 1, 4096)).FLOPs
		near(t, want.name+" forward", f.Forward/1e9, want.forward, 3e-3)
		near(t, want.name+" training", f.Computed/1e9, want.training+want.head, 1e-2)
		near(t, want.name+" with full recomputation", f.Full/1e9, want.full+want.head, 1e-2)
	}
	near(t, "9B policy at 8,192", makePlan(t, "9B", false, options(t, "H200", 1, 8192)).FLOPs.Model/1e9, 49.7, 5e-3)
	near(t, "9B reward model at 8,192", makePlan(t, "9B", true, options(t, "H200", 1, 8192)).FLOPs.Model/1e9, 43.6, 5e-3)
}

// GB per GPU of weights, gradients and optimiser; by stage over 8 GPUs.
func TestStaticMemory(t *testing.T) {
	for _, want := range []struct {
		name, recipe string
		gpus, stage  int
		reward       bool
		GB           float64
	}{
		{"0.8B", "bf16 gradients", 1, 0, false, 12.0},
		{"9B", "bf16 gradients", 1, 0, false, 143.3},
		{"9B", "float32 gradients", 1, 0, false, 161.2},
		{"27B", "float32 gradients", 1, 0, false, 484.1},
		{"9B", "bf16 gradients", 1, 0, true, 127},
		{"9B", "bf16 moments", 1, 0, false, 107},
		{"9B", "bf16 moments", 1, 0, true, 95},
		{"4B", "bf16 gradients", 8, 1, false, 23.1},
		{"4B", "float32 gradients", 8, 2, false, 16.8},
		{"9B", "bf16 gradients", 8, 1, false, 49.2},
		{"9B", "float32 gradients", 8, 1, false, 67.1},
		{"9B", "bf16 gradients", 8, 2, false, 33.6},
		{"9B", "bf16 gradients", 8, 3, false, 17.9},
		{"9B", "float32 gradients", 8, 3, false, 20.1},
		{"27B", "bf16 gradients", 8, 2, false, 101},
		{"27B", "bf16 gradients", 8, 3, false, 53.8},
	} {
		found := false
		for _, s := range makePlan(t, want.name, want.reward, options(t, "H200", want.gpus, 64)).Static {
			if s.Recipe == want.recipe && s.Stage == want.stage {
				found = true
				near(t, fmt.Sprint(want), s.Total()/1e9, want.GB, 5e-3)
			}
		}
		if !found {
			t.Errorf("no recipe %v", want)
		}
	}
}

// MB per token of activations over all layers, from a count by hand of what a fused
// implementation would keep: full is the layers' inputs, to which ours adds what the last
// norm and the head read. Of a delta rule it keeps the chunks' inverses where ours keeps
// residuals, and not the normalised queries and keys: up to a tenth apart.
func TestActivationsPerToken(t *testing.T) {
	for _, want := range []struct {
		name                  string
		none, selective, full float64
	}{
		{"0.8B", 1.56, 0.94, 0.049}, {"2B", 2.12, 1.28, 0.098}, {"4B", 4.29, 2.63, 0.164},
		{"9B", 5.27, 3.22, 0.262}, {"27B", 14.4, 8.90, 0.655},
	} {
		m := makePlan(t, want.name, false, options(t, "H200", 1, 4096)).Memory
		near(t, want.name+" none", m.None.Kept/4096e6, want.none, 0.11)
		near(t, want.name+" selective", m.Selective.Kept/4096e6, want.selective, 0.04)
		hidden := float64(named(t, want.name, false).Text.Shared().HiddenSize)
		near(t, want.name+" full", m.Full.Kept/4096e6, want.full+2*2*hidden/1e6, 0.01)
		if m.None.Peak < m.None.Kept || m.Selective.Peak < m.Selective.Kept || m.Full.Peak < m.Full.Kept {
			t.Errorf("%s: a peak below what is kept: %+v", want.name, m)
		}
	}
}

// What is known to fit and what not.
func TestFits(t *testing.T) {
	best := func(p *Plan, recipe string, stage int) string {
		for _, f := range p.Fits {
			if f.Recipe == recipe && f.Stage == stage {
				return f.Best
			}
		}
		t.Fatalf("no recipe %s, stage %d", recipe, stage)
		return ""
	}
	check := func(what, got, want string) {
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	p := makePlan(t, "9B", false, options(t, "H200", 1, 4096))
	check("9B with AdamW on one H200", best(p, "bf16 gradients", 0), "no")
	check("9B with bf16 moments on one H200", best(p, "bf16 moments", 0), "none") // 107 + 22 of 134 GB
	p = makePlan(t, "9B", false, options(t, "H100", 8, 4096))
	check("9B on eight H100, stage 1", best(p, "bf16 gradients", 1), "none")
	check("9B on eight H100, everything everywhere", best(p, "bf16 gradients", 0), "no")
	p = makePlan(t, "9B", false, options(t, "H200", 8, 8192))
	check("9B on eight H200 at 8,192 tokens", best(p, "float32 gradients", 1), "none")
	o := options(t, "H200", 1, 4096)
	o.Adapter = &lora.Config{Rank: 16, Alpha: 32, Targets: []string{lora.AllLinear}}
	p = makePlan(t, "9B", true, o)
	check("9B with LoRA on one H200", best(p, "bf16 gradients", 0), "none")
	if full := makePlan(t, "9B", true, options(t, "H200", 1, 4096)).FLOPs; p.FLOPs.Backward > 0.6*full.Backward {
		t.Errorf("LoRA's backward pass takes %g of the full one: frozen weights take no product", p.FLOPs.Backward/full.Backward)
	}
}

// Walking the step of the largest model takes the memory of a small program.
func TestWalkAllocatesLittle(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w, err := Step(named(t, "9B", false), Batch{2, 8192}, nil, engine.KeepOutput)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if mb := float64(after.TotalAlloc-before.TotalAlloc) / 1e6; mb > 20 {
		t.Errorf("walking took %.0f MB", mb)
	}
	if len(w.Launches) < 1000 {
		t.Errorf("only %d launches", len(w.Launches))
	}
}

func TestUnknownNames(t *testing.T) {
	if _, err := Named("10B"); err == nil || !strings.Contains(err.Error(), "9B") {
		t.Errorf("error %v names no size", err)
	}
	if _, err := FindCard("H300"); err == nil || !strings.Contains(err.Error(), "H200") {
		t.Errorf("error %v names no card", err)
	}
}
