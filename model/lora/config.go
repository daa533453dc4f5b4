// Package lora is low-rank adapters: a small matrix product that is added to each of
// some linear maps of a model whose own weights stay as they are (Hu et al. 2021, arXiv
// 2106.09685). Files have the layout of Hugging Face's PEFT: adapter_config.json and
// adapter_model.safetensors.
package lora

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"caper/model/decoder"
)

// ConfigName and WeightsName are the files of an adapter's folder.
const (
	ConfigName  = "adapter_config.json"
	WeightsName = "adapter_model.safetensors"
)

// Score is the module that an adapter of a reward model holds whole.
const Score = "score"

// Config describes an adapter. The json tags are PEFT's keys.
type Config struct {
	// Base is the folder of the model that the adapter belongs to.
	Base string `json:"base_model_name_or_path"`
	Rank int    `json:"r"`
	// Alpha is the numerator of Scale.
	Alpha float64 `json:"lora_alpha"`
	// RankStabilised divides by the root of the rank (Kalajdzievski 2023, arXiv
	// 2312.03732).
	RankStabilised bool `json:"use_rslora"`
	// TaskType is SEQ_CLS for a reward model, CAUSAL_LM for a language model.
	TaskType string `json:"task_type"`
	// Saved names the modules that the adapter holds whole: Score or none.
	Saved []string `json:"modules_to_save"`
	// Targets chooses the linear maps of a new adapter: names as q_proj or
	// layers.3.mlp.up_proj, regular expressions that match such a name, or AllLinear.
	Targets []string `json:"-"`
}

// AllLinear among the targets stands for every linear map of the layers.
const AllLinear = "all-linear"

// Scale is the factor of the product B A.
func (c Config) Scale() float64 {
	if c.RankStabilised {
		return c.Alpha / math.Sqrt(float64(c.Rank))
	}
	return c.Alpha / float64(c.Rank)
}

// Validate checks the numbers.
func (c Config) Validate() error {
	switch {
	case c.Rank < 1 || c.Rank > 1<<16:
		return fmt.Errorf("r: %d, must lie in [1, 65536]", c.Rank)
	case !(c.Alpha > 0) || math.IsInf(c.Alpha, 0):
		return fmt.Errorf("lora_alpha: %g, must be above 0 and finite", c.Alpha)
	}
	for _, module := range c.Saved {
		// PEFT names both, whichever the model has.
		if module != Score && module != "classifier" {
			return fmt.Errorf("modules_to_save: %q: not supported, only %q", module, Score)
		}
	}
	return nil
}

// IsFolder reports whether dir holds an adapter and no model of its own.
func IsFolder(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, ConfigName))
	return err == nil
}

// ReadConfig reads dir's adapter_config.json. What would change the computation into
// one that is not implemented is refused by its key. Dropout acts in training alone,
// and there ours has none.
func ReadConfig(dir string) (Config, error) {
	path := filepath.Join(dir, ConfigName)
	var c Config
	o, err := decoder.ReadObject(path)
	if err != nil {
		return c, err
	}
	if err := c.parse(o); err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

func (c *Config) parse(o decoder.Object) error {
	for _, err := range []error{
		o.Require("peft_type", "LORA"),
		o.Require("bias", "none"),
		// Other starts change the base model's weights, too.
		o.Require("init_lora_weights", true, false, "gaussian"),
	} {
		if err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(o)) {
		if isEmpty := slices.Contains([]string{"null", "false", "{}", "[]", `""`}, string(o[key])); !isEmpty && !known[key] {
			return o.Require(key) // PEFT has many variants, and more with each version
		}
	}
	for _, key := range []string{"peft_type", "r", "lora_alpha", "base_model_name_or_path"} {
		if !o.Has(key) {
			return fmt.Errorf("%s: missing", key)
		}
	}
	if err := o.DecodeAll(c); err != nil {
		return err
	}
	return c.Validate()
}

// known are the keys whose values are read, or do not change what an adapter computes:
// they tell how it was trained, or to which modules it was given, which its weights
// tell, too.
var known = map[string]bool{
	"peft_type": true, "bias": true, "init_lora_weights": true, "base_model_name_or_path": true, "r": true, "lora_alpha": true,
	"use_rslora": true, "task_type": true, "modules_to_save": true,
	"auto_mapping": true, "inference_mode": true, "peft_version": true, "revision": true, "lora_dropout": true, "target_modules": true,
	"exclude_modules": true, "layers_to_transform": true, "layers_pattern": true, "megatron_core": true, "qalora_group_size": true,
	"ensure_weight_tying": true, "runtime_config": true,
}

// object returns the content of adapter_config.json for an adapter of the given
// modules of a model.
func (c Config) object(modules, targets []string) (decoder.Object, error) {
	o := decoder.Object{}
	if err := o.SetAll(c); err != nil {
		return nil, err
	}
	for key, value := range map[string]any{
		"peft_type": "LORA", "target_modules": targetNames(modules, targets), "inference_mode": true, "bias": "none",
		"lora_dropout": 0.0, "use_dora": false, "fan_in_fan_out": false, "init_lora_weights": true,
	} {
		if err := o.Set(key, value); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// targetNames lists targets as PEFT finds them among modules: by their last names
// where those fit no other module, else by all of each name that no wrapper changes.
func targetNames(modules, targets []string) []string {
	last := map[string]bool{}
	for _, t := range targets {
		last[lastName(t)] = true
	}
	var names []string
	for _, t := range targets {
		names = append(names, lastName(t))
	}
	for _, m := range modules {
		if last[lastName(m)] && !slices.Contains(targets, m) {
			names = names[:0]
			for _, t := range targets {
				names = append(names, strings.TrimPrefix(t, "model."))
			}
			break
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func lastName(module string) string { return module[strings.LastIndex(module, ".")+1:] }

// choose returns the linear maps that a new adapter's targets name.
func (c Config) choose(linears []*decoder.Linear) ([]*decoder.Linear, error) {
	if len(c.Targets) == 0 {
		return nil, errors.New("no targets: name linear maps such as q_proj, or " + AllLinear)
	}
	chosen := map[*decoder.Linear]bool{}
	for _, target := range c.Targets {
		pattern := "^(.*[.])?(" + target + ")$"
		if target == AllLinear {
			pattern = ""
		}
		e, err := regexp.Compile(pattern)
		if err != nil {
			return nil, fmt.Errorf("target %q: neither a name nor a regular expression", target)
		}
		found := false
		for _, l := range linears {
			if e.MatchString(l.Module()) {
				chosen[l], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("target %q: the model has no such linear map, only %s", target, strings.Join(lastNames(linears), ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(linears), func(l *decoder.Linear) bool { return !chosen[l] }), nil
}

func lastNames(linears []*decoder.Linear) []string {
	var names []string
	for _, l := range linears {
		names = append(names, lastName(l.Module()))
	}
	slices.Sort(names)
	return slices.Compact(names)
}
