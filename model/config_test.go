package model

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"caper/model/decoder"
	"caper/model/qwen35"
)

const officialConfig = `{
  "architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5", "tie_word_embeddings": true,
  "vision_config": {"depth": 12},
  "text_config": {
    "model_type": "qwen3_5_text", "attention_bias": false, "attn_output_gate": true, "hidden_act": "silu", "dtype": "bfloat16",
    "vocab_size": 248320, "hidden_size": 1024, "intermediate_size": 3584, "num_hidden_layers": 24, "full_attention_interval": 4,
    "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256, "eos_token_id": 248044,
    "linear_num_key_heads": 16, "linear_num_value_heads": 16, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4, "rms_norm_eps": 1e-06, "output_gate_type": "swish",
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000000, "partial_rotary_factor": 0.25, "mrope_section": [11, 11, 10]}}}`

const qwen3Config = `{
  "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "attention_bias": false, "hidden_act": "silu", "head_dim": 128,
  "vocab_size": 151936, "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16,
  "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_theta": 1000000, "rope_scaling": null, "tie_word_embeddings": true,
  "sliding_window": null, "use_sliding_window": false, "torch_dtype": "bfloat16"}`

func parse(t *testing.T, text string) (Config, error) {
	t.Helper()
	var o decoder.Object
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return parseConfig(o)
}

func TestOfficialConfig(t *testing.T) {
	c, err := parse(t, officialConfig)
	if err != nil {
		t.Fatal(err)
	}
	text := c.Text.(qwen35.Config)
	if !text.Tied || text.RotaryDims() != 64 || text.LayerTypes[3] != decoder.FullAttention || text.LayerTypes[22] != decoder.LinearAttention || c.Reward {
		t.Errorf("%+v", text)
	}
	o, err := c.object("float32")
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"model_type": `"qwen3_5_text"`, "architectures": `["Qwen3_5ForCausalLM"]`, "dtype": `"float32"`, "eos_token_id": `248044`, "tie_word_embeddings": `true`,
	} {
		if string(o[key]) != want {
			t.Errorf("written %s: %s, want %s", key, o[key], want)
		}
	}
	if _, err := parse(t, qwen3Config); err != nil {
		t.Error(err)
	}
}

// A key that would change the computation is refused with its name and value.
func TestConfigRefuses(t *testing.T) {
	for _, c := range []struct{ config, from, to, want string }{
		{officialConfig, `"silu"`, `"gelu"`, `hidden_act: "gelu"`},
		{officialConfig, `"attention_bias": false`, `"attention_bias": true`, `attention_bias: true`},
		{officialConfig, `"attn_output_gate": true`, `"attn_output_gate": false`, `attn_output_gate: false`},
		{officialConfig, `"rope_type": "default"`, `"rope_type": "yarn"`, `rope_parameters: rope_type: "yarn"`},
		{officialConfig, `"swish"`, `"sigmoid"`, `output_gate_type: "sigmoid"`},
		{officialConfig, `0.25`, `0.02`, `partial_rotary_factor: 0.02`},
		{officialConfig, `"full_attention_interval": 4`, `"layer_types": ["full_attention"]`, `layer_types: 1 entries for num_hidden_layers 24`},
		{officialConfig, `"full_attention_interval": 4`, `"full_attention_interval": 0`, `full_attention_interval: 0`},
		{officialConfig, `"hidden_size": 1024`, `"hidden_size": "wide"`, `hidden_size: string`},
		{officialConfig, `"hidden_size": 1024`, `"hidden_size": -1`, `hidden_size: -1`},
		{officialConfig, `"num_hidden_layers": 24`, `"num_hidden_layers": 1e15`, `num_hidden_layers`},
		{officialConfig, `"hidden_size": 1024, `, ``, `hidden_size: missing`},
		{officialConfig, `"num_key_value_heads": 2`, `"num_key_value_heads": 3`, `num_attention_heads: 8`},
		{officialConfig, `"linear_num_value_heads": 16`, `"linear_num_value_heads": 24`, `linear_num_value_heads: 24`},
		{officialConfig, `"tie_word_embeddings": true`, `"quantization_config": {"bits": 4}`, `quantization_config: {"bits":4}`},
		{officialConfig, `"text_config"`, `"words"`, `text_config: missing`},
		{officialConfig, `"qwen3_5"`, `"qwen3_5_moe"`, `model_type: "qwen3_5_moe"`},
		{officialConfig, `ForConditionalGeneration`, `Model`, `Qwen3_5Model`},
		{officialConfig, `"rope_parameters"`, `"rope_scaling": {"rope_type": "default"}, "rope_parameters"`, `rope_scaling: stands beside`},
		{officialConfig, `"rope_type": "default"`, `"type": "yarn"`, `rope_parameters: type: "yarn"`},
		{qwen3Config, `"rope_scaling": null`, `"rope_scaling": {"rope_type": "yarn"}`, `rope_scaling: rope_type: "yarn"`},
		{qwen3Config, `"rope_scaling": null`, `"rope_scaling": {"type": "linear"}`, `rope_scaling: type: "linear"`},
		{qwen3Config, `"use_sliding_window": false`, `"use_sliding_window": true`, `use_sliding_window: true`},
		{qwen3Config, `Qwen3ForCausalLM"]`, `Qwen3ForSequenceClassification"], "id2label": {"0": "a", "1": "b"}`, `id2label: 2 labels`},
		{qwen3Config, `Qwen3ForCausalLM`, `Qwen3_5ForCausalLM`, `architectures`},
	} {
		text := strings.Replace(c.config, c.from, c.to, 1)
		if text == c.config {
			t.Fatalf("%s is not in the configuration", c.from)
		}
		if _, err := parse(t, text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.to, err, c.want)
		}
	}
}

// Positions are given in several places, which transformers reads in this order: the
// key's own object, then the top level, then what the family has always had.
func TestRopeKeys(t *testing.T) {
	for _, c := range []struct {
		config, from, to string
		theta            float64
		dims             int
	}{
		{officialConfig, `"rope_theta": 10000000,`, ``, 1e7, 64},
		{officialConfig, `"rope_parameters": {"rope_type": "default", "rope_theta": 10000000,`, `"rope_theta": 5000, "rope_parameters": {`, 5000, 64},
		{officialConfig, `"rope_parameters"`, `"rope_theta": 5000, "partial_rotary_factor": 0.5, "rope_parameters"`, 1e7, 64},
		{officialConfig, `"rope_theta": 10000000, "partial_rotary_factor": 0.25`, `"rope_theta": 10000000`, 1e7, 64},
		{qwen3Config, `"rope_theta": 1000000, "rope_scaling": null`, `"rope_scaling": {"rope_type": "default", "rope_theta": 7000}`, 7000, 128},
		{qwen3Config, `"rope_theta": 1000000`, `"rope_theta": 7000, "partial_rotary_factor": 0.5`, 7000, 128}, // transformers' Qwen3 turns all
		{qwen3Config, `"rope_theta": 1000000, "rope_scaling": null`, `"rope_parameters": {"rope_theta": 7000, "partial_rotary_factor": 0.5}`, 7000, 128},
	} {
		text := strings.Replace(c.config, c.from, c.to, 1)
		if text == c.config {
			t.Fatalf("%s is not in the configuration", c.from)
		}
		parsed, err := parse(t, text)
		if err != nil {
			t.Errorf("%s: %v", c.to, err)
			continue
		}
		if shared := parsed.Text.Shared(); shared.Rope.Theta != c.theta || shared.RotaryDims() != c.dims {
			t.Errorf("%s: theta %g and %d dimensions, want %g and %d", c.to, shared.Rope.Theta, shared.RotaryDims(), c.theta, c.dims)
		}
	}
}

func FuzzConfig(f *testing.F) {
	f.Add(officialConfig)
	f.Add(qwen3Config)
	f.Fuzz(func(t *testing.T, text string) {
		var o decoder.Object
		if json.Unmarshal([]byte(text), &o) != nil {
			return
		}
		c, err := parseConfig(o)
		if err != nil {
			return
		}
		if _, err := c.object("float32"); err != nil {
			t.Fatal(err)
		}
	})
}

// What a checkpoint's config.json says is said again when the model is saved.
func TestGoldenConfigs(t *testing.T) {
	dir := goldenFolder(t)
	for _, name := range []string{"qwen35-tied", "qwen35-untied", "qwen3", "qwen3-tied", "reward"} {
		path := filepath.Join(dir, name, ConfigName)
		want, err := decoder.ReadObject(path)
		if err != nil {
			t.Fatal(err)
		}
		c, err := ReadConfig(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.object("float32")
		if err != nil {
			t.Fatal(err)
		}
		delete(want, "transformers_version")
		for key := range want {
			var a, b any
			json.Unmarshal(want[key], &a)
			json.Unmarshal(got[key], &b)
			if !reflect.DeepEqual(a, b) {
				t.Errorf("%s: %s: %s became %s", name, key, want[key], got[key])
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d keys became %d", name, len(want), len(got))
		}
	}
}
