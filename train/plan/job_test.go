package plan

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"caper/configs"
)

func job(t *testing.T, name string, overrides ...string) Job {
	t.Helper()
	j, err := ReadJob(filepath.Join("../../configs", name), overrides, Lengths{2000, 60})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func take(t *testing.T, j Job, card string, items int) *Needs {
	t.Helper()
	c, err := FindCard(card)
	if err != nil {
		t.Fatal(err)
	}
	n, err := j.Take(c, 0.4, items)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func part(t *testing.T, n *Needs, name string) float64 {
	t.Helper()
	for _, p := range n.Parts {
		if strings.HasPrefix(p.Name, name) {
			return p.Bytes
		}
	}
	t.Fatalf("no part %q in %v", name, n.Parts)
	return 0
}

// Every configuration that comes with caper is read. Those that name a published model
// are planned, and do on the cards that docs/launching.md names for them.
func TestConfigurations(t *testing.T) {
	cards := map[string]string{"9b": "H200", "0.8b": "L40S"}
	files, err := fs.Glob(configs.Files, "*.toml")
	if err != nil {
		t.Fatal(err)
	}
	planned := 0
	for _, name := range files {
		j, err := ReadJob(filepath.Join("../../configs", name), nil, Lengths{2000, 60})
		if err != nil && strings.Contains(err.Error(), "model.path is empty") {
			continue // trained from scratch
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		words := strings.Split(strings.TrimSuffix(name, ".toml"), "-") // caper-9b-prm
		if n := take(t, j, cards[words[1]], 1000); !n.Fits || n.Hours <= 0 {
			t.Errorf("%s: %.1f GB on one %s, %.2f hours", name, n.Total/1e9, n.Card.Name, n.Hours)
		}
		planned++
	}
	if planned < 6 {
		t.Errorf("%d configurations of published models", planned)
	}
}

// Bytes that the sampler keeps for the 9B model, from the shapes in its config.json: 8
// layers of 4 heads of 256, keys and values in bf16; 24 of 32 states of 128 x 128 in
// float32.
func TestSamplerCache(t *testing.T) {
	c := CacheOf(named(t, "9B", false), 98304, 64)
	near(t, "keys and values", c.KeysValues, 98304*8*2*4*256*2, 0)
	states := 2 * 64 * 32 * 128 * 128 * 4
	chunks := 64 * 64 * (16*128*2 + 32*128*4 + 32*4)
	windows := 2 * 64 * 3 * 8192 * 2
	near(t, "states", c.States, float64(24*(states+chunks+windows)), 0)
	if c := CacheOf(named(t, "qwen3-8B", false), 1000, 8); c.States != 0 || c.KeysValues != 36*2*8*128*2*1024 { // in blocks of 64 tokens
		t.Errorf("a model without delta nets: %+v", c)
	}
}

// What a policy's update needs beside the policy.
func TestCopies(t *testing.T) {
	n := take(t, job(t, "caper-9b-grpo.toml"), "H200", 0)
	near(t, "weights with adapter", part(t, n, "weights"), 2*8.954e9, 0.01)
	near(t, "reward model", part(t, n, "reward model"), 2*(8.954e9-248320*4096), 1e-3) // no language-model head
	if part(t, n, "reference") != 0 {
		t.Error("under an adapter the reference is the policy without it")
	}
	whole := take(t, job(t, "caper-9b-grpo.toml", "lora.rank=0"), "H200", 0)
	near(t, "reference", part(t, whole, "reference"), 2*8.954e9, 1e-3)
	near(t, "moments", part(t, whole, "moments"), 8*8.954e9, 1e-3)
	if whole.Fits || whole.GPUs[2] < 2 || whole.GPUs[3] < 2 || whole.GPUs[3] > whole.GPUs[2] {
		t.Errorf("all weights of 9B: fits %v, cards by stage %v", whole.Fits, whole.GPUs)
	}
	for _, p := range take(t, job(t, "caper-9b-dapo.toml"), "H200", 0).Parts {
		if strings.HasPrefix(p.Name, "re") {
			t.Errorf("DAPO by execution has no %s", p.Name)
		}
	}
}

// Seconds of a step by hand: 2 operations a parameter and token forward, as many for the
// gradients of activations, with attention and delta rule on top; embeddings take none.
func TestStepTime(t *testing.T) {
	const layers, head = 6919.6e6, 248320 * 4096
	n := take(t, job(t, "caper-9b-prm.toml"), "H200", 90000)
	tokens := 64*2000.0 + 128*60
	near(t, "tokens", n.Load.Tokens(), tokens, 0)
	near(t, "training", n.Phases[0].FLOPs, 4*layers*tokens, 0.05)
	full := take(t, job(t, "caper-9b-prm.toml", "train.checkpointing=full"), "H200", 0)
	near(t, "with each layer run again", full.Seconds, 1.5*n.Seconds, 0.05) // forward twice, backward once
	if n.Steps != 2*90000/64+1 {
		t.Errorf("%d steps", n.Steps)
	}
	near(t, "hours", n.Hours, n.Seconds*float64(n.Steps)/3600, 1e-9)

	n = take(t, job(t, "caper-9b-grpo.toml", "train.max_steps=7"), "H200", 90000)
	tokens = 48*2000 + 384*60
	near(t, "reference", n.Phases[1].FLOPs, 2*(layers+head)*tokens, 0.05)
	// 384 answers, 64 at a time, 60 tokens each: as often are weights, keys and values of
	// 2,030 tokens and states read.
	reading := 6 * 60 * (2*8.97e9 + 64*2030*32768 + 64*24*32*128*128*4) / 4.8e12
	near(t, "sampling", n.Phases[0].Seconds-n.Phases[0].FLOPs/(0.4*n.Card.Peak), reading, 0.1)
	if n.Steps != 7 {
		t.Errorf("%d steps, want train.max_steps", n.Steps)
	}
}
