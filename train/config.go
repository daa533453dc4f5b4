package train

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"caper/engine"
	"caper/model/lora"
)

// ConfigName is the file in a run folder that holds its resolved configuration.
const ConfigName = "config.toml"

// Config is what a reward-model run is made of. Every key has a default
// (Defaults); a file gives some, `key=value` words on the command line give
// others, and a key that does not exist is an error.
type Config struct {
	Model Model `toml:"model"`
	Train Train `toml:"train"`
	Loss  Loss  `toml:"loss"`
	LoRA  LoRA  `toml:"lora"`

	file  string            // that it was read from, "" for none
	given map[string]string // where the value of a key was written: FILE:LINE or an override
}

// Model says where the weights come from: a folder in Hugging Face layout, or a
// new Qwen3.5 model of the given shape with a vocabulary trained on the tuples.
type Model struct {
	Path              string   `toml:"path" comment:"HF model folder to start from; empty: a new model of the shape below"`
	HiddenSize        int      `toml:"hidden_size"`
	Layers            int      `toml:"num_hidden_layers" comment:"in every full_attention_interval-th layer full attention, in the others gated delta nets"`
	FullAttentionGap  int      `toml:"full_attention_interval"`
	IntermediateSize  int      `toml:"intermediate_size"`
	AttentionHeads    int      `toml:"num_attention_heads"`
	KeyValueHeads     int      `toml:"num_key_value_heads"`
	HeadDim           int      `toml:"head_dim"`
	LinearKeyHeads    int      `toml:"linear_num_key_heads"`
	LinearValueHeads  int      `toml:"linear_num_value_heads"`
	LinearKeyDim      int      `toml:"linear_key_head_dim"`
	LinearValueDim    int      `toml:"linear_value_head_dim"`
	VocabularySize    int      `toml:"vocab_size" comment:"size of the vocabulary trained on the tuples' text"`
	Head              string   `toml:"head" comment:"scalar: a linear map to one number; token: the logits of label_tokens"`
	LabelTokens       []string `toml:"label_tokens" comment:"score = logit of the first less that of the second, if there is one"`
	ClauseToken       string   `toml:"clause_token" comment:"added token that ends a clause; its hidden state is scored"`
	EndToken          string   `toml:"end_token" comment:"added token that ends the query: the END unit"`
	InitializerStdDev float64  `toml:"initializer_range" comment:"standard deviation of fresh matrices"`
	EmbeddingStdDev   float64  `toml:"embedding_std"`
	OutputScale       float64  `toml:"output_scale" comment:"factor on the matrices that write to the residual stream"`
	MinTimeStep       float64  `toml:"min_time_step" comment:"of the delta nets' heads, which start with memories of different length"`
	MaxTimeStep       float64  `toml:"max_time_step"`
}

// Train holds data, schedule and optimiser (caper.md 1.4.7).
type Train struct {
	Tuples            []string `toml:"tuples" comment:"tuple files (JSON Lines)"`
	Out               string   `toml:"out" comment:"run folder"`
	Seed              uint64   `toml:"seed"`
	Epochs            int      `toml:"epochs"`
	MaxSteps          int      `toml:"max_steps" comment:"optimiser steps at most; 0: as many as the epochs have"`
	BatchPairs        int      `toml:"batch_pairs" comment:"pairs an optimiser step, at least; questions are never split"`
	MicroBatchTokens  int      `toml:"micro_batch_tokens" comment:"tokens of one packed forest at most"`
	Checkpointing     string   `toml:"checkpointing" comment:"none, selective or full: which activations the backward pass makes again to save memory"`
	MemoryGB          float64  `toml:"memory_gb" comment:"most that steps may take, in GB of 1e9 bytes; 0: nine tenths of the machine's memory"`
	MaxLength         int      `toml:"max_length" comment:"tokens of one sequence; longer pairs are left out and counted"`
	LR                float64  `toml:"lr"`
	MinLRRatio        float64  `toml:"min_lr_ratio" comment:"learning rate at the end, as a share of lr"`
	Warmup            float64  `toml:"warmup" comment:"share of the steps with a rising learning rate"`
	Beta1             float64  `toml:"beta1"`
	Beta2             float64  `toml:"beta2"`
	Epsilon           float64  `toml:"eps"`
	WeightDecay       float64  `toml:"weight_decay"`
	GradClip          float64  `toml:"grad_clip" comment:"largest global gradient norm"`
	HoldoutDatabases  float64  `toml:"holdout_databases" comment:"share of the databases kept for validation"`
	ValidateEvery     int      `toml:"validate_every" comment:"steps between validations; 0: at the end only"`
	ValidateQuestions int      `toml:"validate_questions" comment:"failed queries localised at each validation, at most"`
	Patience          int      `toml:"patience" comment:"validations without a better Top-1 before stopping; 0: never"`
	CheckpointEvery   int      `toml:"checkpoint_every" comment:"steps between checkpoints; 0: at the end only"`
	KeepCheckpoints   int      `toml:"keep_checkpoints"`
	MaxBadSteps       int      `toml:"max_bad_steps" comment:"non-finite steps in a row before the run stops"`
	Threads           int      `toml:"threads" comment:"0: one per core"`
	Precision         string   `toml:"precision" comment:"of linear layers' products: fp32, or bf16: factors rounded to bfloat16, sums and weights float32"`
}

// Loss chooses the preference objective (caper.md 1.4.7): how the margin delta
// enters, and what it is made of.
type Loss struct {
	Margin   string  `toml:"margin" comment:"weight, offset, both or none"`
	Severity bool    `toml:"severity" comment:"scale margins by edit cost over its 75th percentile, clipped to [0.25, 1]"`
	Offset   float64 `toml:"offset" comment:"m of the offset form"`
	Center   float64 `toml:"center" comment:"c: weight of the term that centres scores"`
	Alpha    float64 `toml:"alpha" comment:"alpha of the annotation: margins are divided by it"`
	// Divergence adds the preference at the first token where the two clauses part,
	// on the same score head: there the context is the same to the token, so the
	// model is told where, and not only that, the worse clause goes wrong.
	Divergence float64 `toml:"divergence" comment:"weight of the preference at the first differing token; 0: none. For models without pre-training"`
	// Contrast adds the preference of a wrong query's other clauses, and its end,
	// over the clause that holds the root cause: scores of different clauses of one
	// query then compare, as localisation needs.
	Contrast float64 `toml:"contrast" comment:"weight of the preference of a wrong query's other clauses over the faulty one; 0: none"`
	// LanguageModel adds the next-token loss of correct queries, which teaches a
	// model without pre-training to read its input (as a regulariser of reward
	// models: Yang et al. 2024, arXiv 2406.10216).
	LanguageModel float64 `toml:"language_model" comment:"weight of the next-token loss on correct queries; 0: none. For models without pre-training"`
}

// The values of Model.Head.
const (
	headScalar = "scalar"
	headToken  = "token"
)

// LoRA trains a low-rank adapter on the linear maps of a model that is loaded, and the
// score head, in place of all weights.
type LoRA struct {
	Rank    int      `toml:"rank" comment:"0: no adapter, all weights are trained"`
	Alpha   float64  `toml:"alpha" comment:"the adapter's product is multiplied by alpha / rank"`
	Targets []string `toml:"targets" comment:"names or regular expressions of linear maps, or all-linear"`
}

// Defaults returns the configuration that files and overrides start from.
func Defaults() Config {
	return Config{
		Model: Model{
			HiddenSize: 64, Layers: 4, FullAttentionGap: 2, IntermediateSize: 192,
			AttentionHeads: 4, KeyValueHeads: 4, HeadDim: 32,
			LinearKeyHeads: 4, LinearValueHeads: 4, LinearKeyDim: 32, LinearValueDim: 32,
			VocabularySize: 2560, Head: headScalar, LabelTokens: []string{"+", "-"}, ClauseToken: "<|clause|>", EndToken: "<|im_end|>",
			InitializerStdDev: 0.09, EmbeddingStdDev: 1, OutputScale: 0.3, MinTimeStep: 0.001, MaxTimeStep: 0.1,
		},
		Train: Train{
			Seed: 1, Epochs: 2, BatchPairs: 64, MicroBatchTokens: 8192, MaxLength: 8192,
			LR: 1e-5, MinLRRatio: 0.1, Warmup: 0.03, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8,
			WeightDecay: 0.1, GradClip: 1, HoldoutDatabases: 0.05, ValidateQuestions: 256,
			KeepCheckpoints: 2, MaxBadSteps: 5, Precision: engine.Float32.String(), Checkpointing: engine.KeepAll.String(),
		},
		LoRA: LoRA{Alpha: 32, Targets: []string{lora.AllLinear}},
		Loss: Loss{Margin: "weight", Offset: 1, Center: 0.01, Alpha: 1},
	}
}

// LoadConfig reads a TOML file (path may be empty) over the defaults and applies
// the overrides, words of the form section.key=value. A mistake in them is a
// *ConfigError.
func LoadConfig(path string, overrides []string) (Config, error) {
	if path == "" {
		return ParseConfig(nil, "", overrides)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("configuration: %w", err)
	}
	return ParseConfig(text, path, overrides)
}

// ParseConfig is LoadConfig for a text; name stands for the file in errors.
func ParseConfig(text []byte, name string, overrides []string) (Config, error) {
	c := Defaults()
	c.file, c.given = name, map[string]string{}
	if err := c.read(text, func(line int) string { return fmt.Sprintf("%s:%d", name, line) }); err != nil {
		return c, err
	}
	for _, word := range overrides {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			return c, &ConfigError{fmt.Errorf("override %q: want section.key=value", word)}
		}
		where := "override " + strconv.Quote(word)
		if err := c.read([]byte(key+" = "+tomlValue(key, value)), func(int) string { return where }); err != nil {
			return c, err
		}
	}
	return c, c.check()
}

// read decodes text over c and notes where each key stands.
func (c *Config) read(text []byte, place func(line int) string) error {
	if err := decode(text, c, place); err != nil {
		return &ConfigError{err}
	}
	for key, line := range keyLines(text) {
		c.given[key] = place(line)
	}
	return nil
}

// keyLines finds the line of every key: a strict decoder that has a place for none
// of them lists them all.
func keyLines(text []byte) map[string]int {
	var none struct {
		Model, Train, Loss, LoRA struct{}
	}
	d := toml.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	lines := map[string]int{}
	var missing *toml.StrictMissingError
	if errors.As(d.Decode(&none), &missing) {
		for _, e := range missing.Errors {
			row, _ := e.Position()
			lines[strings.Join(e.Key(), ".")] = row
		}
	}
	return lines
}

// tomlValue writes a command-line word as TOML, in the form that its key takes: text
// in quotes, a list of texts from words between commas or a TOML list, anything
// else as it is.
func tomlValue(key, word string) string {
	switch Defaults().values()[key].(type) {
	case string:
		return strconv.Quote(word)
	case []any:
		if strings.HasPrefix(word, "[") {
			return word
		}
		words := strings.Split(word, ",")
		for i := range words {
			words[i] = strconv.Quote(words[i])
		}
		return "[" + strings.Join(words, ",") + "]"
	}
	if toml.Unmarshal([]byte("V = "+word), new(struct{ V any })) != nil {
		return strconv.Quote(word) // refused where the key is decoded, with its name
	}
	return word
}

func decode(text []byte, c *Config, place func(line int) string) error {
	d := toml.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(c)
	var strict *toml.StrictMissingError
	if errors.As(err, &strict) {
		e := strict.Errors[0]
		row, _ := e.Position()
		key := strings.Join(e.Key(), ".")
		return fmt.Errorf("%s: unknown key %q; the nearest is %q", place(row), key, nearest(key, keys()))
	}
	var bad *toml.DecodeError
	if errors.As(err, &bad) {
		row, _ := bad.Position()
		key := strings.Join(bad.Key(), ".")
		if want := wanted(key); want != "" {
			return fmt.Errorf("%s: %s: want %s", place(row), key, want)
		}
		return fmt.Errorf("%s: %s", place(row), strings.TrimPrefix(bad.Error(), "toml: "))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", place(1), err)
	}
	return nil
}

// wanted names the type of a key's value, "" where there is no such key.
func wanted(key string) string {
	if key == "train.seed" {
		return "a whole number, 0 or more"
	}
	switch Defaults().values()[key].(type) {
	case int64:
		return "a whole number"
	case float64:
		return "a number"
	case bool:
		return "true or false"
	case string:
		return "a text in quotes"
	case []any:
		return "a list of texts in quotes"
	}
	return ""
}

// values returns every value under its key, section.key.
func (c Config) values() map[string]any {
	var tree map[string]map[string]any
	if err := toml.Unmarshal([]byte(c.Text()), &tree); err != nil {
		panic(err) // Text writes TOML
	}
	all := map[string]any{}
	for section, values := range tree {
		for key, value := range values {
			all[section+"."+key] = value
		}
	}
	return all
}

// keys lists every key of a configuration, sorted.
func keys() []string { return slices.Sorted(maps.Keys(Defaults().values())) }

// nearest returns the known key with the smallest Levenshtein distance.
func nearest(key string, known []string) string {
	return slices.MinFunc(known, func(a, b string) int { return levenshtein(key, a) - levenshtein(key, b) })
}

func levenshtein(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// Text writes the configuration as TOML, with a comment on every key that needs
// one.
func (c Config) Text() string {
	text, err := toml.Marshal(c)
	if err != nil {
		panic(err) // only plain fields: cannot fail
	}
	return string(text)
}
