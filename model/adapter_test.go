package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"caper/engine"
	"caper/model/decoder"
	"caper/model/lora"
	"caper/model/safetensors"
)

// adaptedModel saves a small model, loads it frozen and puts an adapter on it, whose B
// is no longer zero.
func adaptedModel(t *testing.T, family string, dev engine.Device, reward bool, targets ...string) *Model {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "base")
	base := newModel(t, small(family), engine.CPU(1))
	if err := base.SaveAs(dir, Format{DType: safetensors.BF16}); err != nil {
		t.Fatal(err)
	}
	m, err := Load(dir, dev, Frozen)
	if err != nil {
		t.Fatal(err)
	}
	if reward {
		m.ToReward(3)
	}
	if err := m.AddAdapter(lora.Config{Rank: 3, Alpha: 4.5, Targets: targets}, dir, 5); err != nil {
		t.Fatal(err)
	}
	for _, p := range m.Adapter.Parameters {
		if strings.HasSuffix(p.Name, "lora_B.weight") {
			r := engine.Random(6, p.Name, 0, 0)
			for i := range p.Rows {
				for j := range p.Cols {
					if p.At(i, j) != 0 {
						t.Fatalf("%s does not start at zero", p.Name)
					}
					p.Set(i, j, float64(float32(0.3*r.NormFloat64())))
				}
			}
		}
	}
	return m
}

// hidden returns the hidden states of a few sequences.
func hidden(m *Model) []float64 {
	tape := engine.NewTape(m.Device())
	tape.Poison = true
	var tree engine.Tree
	tree.Pack(differenceSequences)
	return elements(m.Backbone.Hidden(tape, &tree), nil)
}

// An adapter trains and nothing else but the score head does; its gradients are those
// of difference quotients.
func TestAdapterGradients(t *testing.T) {
	for _, family := range families {
		m := adaptedModel(t, family, engine.Reference(), true, lora.AllLinear)
		trained := m.Trainable()
		if len(trained) != len(m.Adapter.Parameters)+1 || len(trained) != len(m.Decays()) || trained[0] != m.Score {
			t.Fatalf("%d parameters are trained", len(trained))
		}
		zeroGrads(m)
		rewardLoss(m, true)
		rng := rand.New(rand.NewPCG(7, 7))
		for _, p := range trained {
			i, j := rng.IntN(p.Rows), rng.IntN(p.Cols)
			x := p.At(i, j)
			at := func(step float64) float64 {
				p.Set(i, j, x+step)
				defer p.Set(i, j, x)
				return rewardLoss(m, false)
			}
			const h = 1e-4 // fourth order, as in TestFiniteDifferences
			got, want := p.Grad.At(i, j), (8*(at(h)-at(-h))-(at(2*h)-at(-2*h)))/(12*h)
			if math.Abs(got-want) > 1e-7*(1+math.Abs(want)) {
				t.Errorf("%s %s[%d,%d]: gradient %.9g, difference quotient %.9g", family, p.Name, i, j, got, want)
			}
		}
	}
}

// Merged, the model computes the same; unmerged, it has its own weights to the bit.
func TestMerge(t *testing.T) {
	for _, family := range families {
		for dev, tolerance := range map[engine.Device]float64{engine.Reference(): 1e-12, engine.CPU(2): 2e-5} {
			m := adaptedModel(t, family, dev, false, "(q|in_proj_qkv|down)_proj|in_proj_qkv", "up_proj")
			with, before := hidden(m), weights(m)
			m.Adapter.Merge()
			m.Adapter.Merge() // once is enough
			if e := maxAbs(hidden(m), with); !(e <= tolerance) {
				t.Errorf("%s on %s: merged differs by %.2g", family, dev.Name(), e)
			}
			changed := 0
			for i, p := range m.parameters {
				if slices.Equal(before[i], elements(p.Tensor, nil)) {
					continue
				}
				changed++
				// Each element is the sum in float64, rounded once.
				b, a := m.adapterOf(p.Name)
				for r := range p.Rows {
					for c := range p.Cols {
						want := before[i][r*p.Cols+c]
						for k := range a.Rows {
							want += 1.5 * b.At(r, k) * a.At(k, c)
						}
						if p.F32 != nil {
							want = float64(float32(want))
						}
						if got := p.At(r, c); math.Abs(got-want) > 1e-15*math.Abs(want) {
							t.Fatalf("%s[%d,%d] is %g, want %g", p.Name, r, c, got, want)
						}
					}
				}
			}
			if changed != len(m.Adapter.Parameters)/2 || changed == 0 {
				t.Errorf("%s: %d weights changed", family, changed)
			}
			m.Adapter.Unmerge()
			if !slices.EqualFunc(weights(m), before, slices.Equal[[]float64]) || !slices.Equal(hidden(m), with) {
				t.Errorf("%s on %s: unmerged is not what it was", family, dev.Name())
			}
		}
	}
}

func weights(m *Model) [][]float64 {
	var all [][]float64
	for _, p := range m.parameters {
		all = append(all, elements(p.Tensor, nil))
	}
	return all
}

// adapterOf returns the two matrices that belong to a weight.
func (m *Model) adapterOf(weight string) (b, a *engine.Param) {
	for _, p := range m.Adapter.Parameters {
		switch p.Name {
		case strings.TrimSuffix(weight, "weight") + "lora_A.weight":
			a = p.Param
		case strings.TrimSuffix(weight, "weight") + "lora_B.weight":
			b = p.Param
		}
	}
	return b, a
}

// An adapter's folder holds what PEFT's does, loads as the same model, and is exported
// as a plain one in the element types of its base.
func TestAdapterSaveLoadExport(t *testing.T) {
	for _, family := range families {
		for _, reward := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/reward=%t", family, reward), func(t *testing.T) {
				m := adaptedModel(t, family, engine.CPU(1), reward, "o_proj", "layers.0.mlp.up_proj")
				dir, out := t.TempDir(), t.TempDir()
				if err := m.Save(dir); err != nil {
					t.Fatal(err)
				}
				checkAdapterFolder(t, dir, reward)
				for _, strip := range []bool{false, true} {
					if strip { // a folder of PEFT's own has no config.json
						os.Remove(filepath.Join(dir, ConfigName))
					}
					got, err := Load(dir, engine.CPU(1))
					if err != nil {
						t.Fatal(err)
					}
					if !slices.Equal(hidden(got), hidden(m)) || (got.Score == nil) == reward || len(got.Trainable()) != len(m.Trainable()) {
						t.Errorf("another model came back: %+v", got.Config)
					}
					if reward && !slices.Equal(got.Score.F32, m.Score.F32) {
						t.Error("the score head changed")
					}
				}
				if err := Export(dir, out, Format{MaxShardBytes: 2000}); err != nil {
					t.Fatal(err)
				}
				merged, err := Load(out, engine.CPU(1), Frozen)
				if err != nil {
					t.Fatal(err)
				}
				m.Adapter.Merge()
				for i, p := range merged.parameters {
					want := elements(m.parameters[i].Tensor, nil)
					if e := relativeL2(elements(p.Tensor, nil), want); p.Name != m.parameters[i].Name || e > 1.0/256 {
						t.Errorf("%s differs by %g", p.Name, e)
					}
					if isShort := p.FileType == safetensors.BF16; isShort != (!p.Float32 && p.Name != "score.weight") {
						t.Errorf("%s was written as %s", p.Name, p.FileType)
					}
				}
			})
		}
	}
}

func checkAdapterFolder(t *testing.T, dir string, reward bool) {
	t.Helper()
	f, err := safetensors.Open(filepath.Join(dir, lora.WeightsName))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	names := f.Names()
	if !slices.Contains(names, "base_model.model.model.layers.0.mlp.up_proj.lora_A.weight") || slices.Contains(names, "base_model.model.score.weight") != reward {
		t.Errorf("tensors %v", names)
	}
	o, err := decoder.ReadObject(filepath.Join(dir, lora.ConfigName))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"peft_type": `"LORA"`, "r": "3", "lora_alpha": "4.5", "bias": `"none"`, "use_rslora": "false",
		"task_type": map[bool]string{false: `"CAUSAL_LM"`, true: `"SEQ_CLS"`}[reward], "modules_to_save": map[bool]string{false: "null", true: `["score"]`}[reward],
	}
	for key, value := range want {
		if got := strings.Join(strings.Fields(string(o[key])), ""); got != value {
			t.Errorf("%s: %s, want %s", key, got, value)
		}
	}
	var targets []string
	if err := o.Decode("target_modules", &targets); err != nil || !slices.Contains(targets, "layers.0.mlp.up_proj") || slices.Contains(targets, "up_proj") {
		t.Errorf("target_modules %v, error %v", targets, err)
	}
}

// What an adapter's folder asks for and is not implemented is refused by name.
func TestAdapterRefuses(t *testing.T) {
	m := adaptedModel(t, "qwen35", engine.CPU(1), false, "o_proj")
	for key, c := range map[string]struct {
		value any
		want  string
	}{
		"peft_type":               {"IA3", `peft_type: "IA3"`},
		"use_dora":                {true, "use_dora: true"},
		"bias":                    {"all", `bias: "all"`},
		"rank_pattern":            {map[string]int{"q": 2}, `rank_pattern: {"q":2}`},
		"alpha_pattern":           {map[string]int{"q": 2}, "alpha_pattern"},
		"r":                       {0, "r: 0"},
		"use_qalora":              {true, "use_qalora: true: not supported"},
		"init_lora_weights":       {"pissa", `init_lora_weights: "pissa"`},
		"some_new_config":         {map[string]int{"a": 1}, `some_new_config: {"a":1}: not supported`},
		"lora_alpha":              {-1, "lora_alpha: -1"},
		"modules_to_save":         {[]string{"embed_tokens"}, `modules_to_save: "embed_tokens"`},
		"base_model_name_or_path": {"Qwen/Qwen3.5-0.8B", `no folder "Qwen/Qwen3.5-0.8B"`},
	} {
		dir := t.TempDir()
		if err := m.Save(dir); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, lora.ConfigName)
		o, err := decoder.ReadObject(path)
		if err == nil {
			err = o.Set(key, c.value)
		}
		if err == nil {
			err = writeJSON(path, o)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Load(dir, engine.CPU(1)); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v, want %q", key, err, c.want)
		}
	}
	for _, target := range []string{"q_prj", "embed_tokens", "(", "proj"} {
		fresh := adaptedModel(t, "qwen3", engine.CPU(1), false, "o_proj")
		fresh.Adapter = nil
		if err := fresh.AddAdapter(lora.Config{Rank: 1, Alpha: 1, Targets: []string{target}}, "", 1); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("target %q", target)) {
			t.Errorf("target %q: error %v", target, err)
		}
	}
	spoilt := t.TempDir()
	if err := m.Save(spoilt); err != nil {
		t.Fatal(err)
	}
	entry := safetensors.Entry{Name: "base_model.model.model.embed_tokens.lora_embedding_A", DType: safetensors.F32, Shape: []int{1}, F32: []float32{1}}
	if err := m.Adapter.Save(spoilt, &decoder.Parameter{Param: engine.NewParam(engine.CPU(1), entry.Name, 1, 1), Shape: []int{1}}); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(spoilt, engine.CPU(1)); err == nil || !strings.Contains(err.Error(), "lora_embedding_A") {
		t.Errorf("a tensor of another kind of adapter: error %v", err)
	}
}
