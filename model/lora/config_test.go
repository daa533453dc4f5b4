package lora

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"caper/model/decoder"
)

// linears returns linear maps with the given modules' names.
func linears(modules ...string) []*decoder.Linear {
	p := decoder.Describe()
	for _, m := range modules {
		p.AddLinear(m+".weight", nil, 1, 1)
	}
	return p.Linears
}

var modules = []string{"model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.o_proj", "model.layers.0.mlp.up_proj", "model.layers.1.linear_attn.out_proj", "model.layers.1.mlp.up_proj"}

// Targets are found among linear maps by the ends of their names at dots, as PEFT finds
// them, and are written as names that PEFT finds them by.
func TestTargets(t *testing.T) {
	for _, c := range []struct {
		targets []string
		chosen  []int
		written []string
	}{
		{[]string{"q_proj"}, []int{0}, []string{"q_proj"}},
		{[]string{"up_proj"}, []int{2, 4}, []string{"up_proj"}},
		{[]string{"proj"}, nil, nil},
		{[]string{"t_proj"}, nil, nil},
		{[]string{"layers.1.mlp.up_proj"}, []int{4}, []string{"layers.1.mlp.up_proj"}},
		{[]string{"layers[.]1[.].*"}, []int{3, 4}, []string{"layers.1.linear_attn.out_proj", "layers.1.mlp.up_proj"}},
		{[]string{"o_proj|up_proj", "q_proj"}, []int{0, 1, 2, 4}, []string{"o_proj", "q_proj", "up_proj"}},
		{[]string{AllLinear}, []int{0, 1, 2, 3, 4}, []string{"o_proj", "out_proj", "q_proj", "up_proj"}},
		{[]string{"q_proj", "gate_proj"}, nil, nil},
		{[]string{"("}, nil, nil},
		{nil, nil, nil},
	} {
		chosen, err := Config{Targets: c.targets}.choose(linears(modules...))
		if (err != nil) != (c.chosen == nil) {
			t.Errorf("%q: error %v", c.targets, err)
			continue
		}
		var names, want []string
		for _, l := range chosen {
			names = append(names, l.Module())
		}
		for _, i := range c.chosen {
			want = append(want, modules[i])
		}
		if !slices.Equal(names, want) {
			t.Errorf("%q: %q, want %q", c.targets, names, want)
		}
		if err == nil && !slices.Equal(targetNames(modules, names), c.written) {
			t.Errorf("%q: written as %q, want %q", c.targets, targetNames(modules, names), c.written)
		}
		for _, module := range modules { // PEFT's rule for a list of names
			found := slices.ContainsFunc(c.written, func(name string) bool { return module == name || strings.HasSuffix(module, "."+name) })
			if found != slices.Contains(names, module) {
				t.Errorf("%q: PEFT finds %s: %t", c.targets, module, found)
			}
		}
	}
}

func TestScale(t *testing.T) {
	if s := (Config{Rank: 16, Alpha: 32}).Scale(); s != 2 {
		t.Errorf("scale %g, want 2", s)
	}
	if s := (Config{Rank: 16, Alpha: 32, RankStabilised: true}).Scale(); s != 8 {
		t.Errorf("rank-stabilised scale %g, want 8", s)
	}
}

// What is accepted can be computed with and written.
func FuzzConfig(f *testing.F) {
	f.Add(`{"peft_type":"LORA","r":4,"lora_alpha":8,"base_model_name_or_path":"x","target_modules":["q_proj"],"use_rslora":true}`)
	f.Add(`{"peft_type":"LORA","r":1e9,"lora_alpha":null,"base_model_name_or_path":"","bias":"none","rank_pattern":{}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var o decoder.Object
		if json.Unmarshal([]byte(text), &o) != nil {
			return
		}
		var c Config
		if c.parse(o) != nil {
			return
		}
		if s := c.Scale(); !(s >= 0) {
			t.Errorf("scale %g of %+v", s, c)
		}
		if _, err := c.object(nil, nil); err != nil {
			t.Error(err)
		}
	})
}
