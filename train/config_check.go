package train

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"caper/engine"
)

// ConfigError is a mistake in a configuration, which whoever wrote that must correct.
// The text names the key and where its value was written.
type ConfigError struct{ err error }

func (e *ConfigError) Error() string { return e.err.Error() }
func (e *ConfigError) Unwrap() error { return e.err }

// mistake says what is wrong with the value of a key.
func (c Config) mistake(key, format string, args ...any) error {
	value := fmt.Sprint(c.values()[key])
	if text, ok := c.values()[key].(string); ok {
		value = fmt.Sprintf("%q", text)
	}
	where, ok := c.given[key]
	if !ok {
		where = cmp.Or(c.file, "configuration")
		value += " (the default)"
	}
	return &ConfigError{fmt.Errorf("%s: %s = %s: %w", where, key, value, fmt.Errorf(format, args...))}
}

// ranges lists the values that numbers may take.
var ranges = []struct {
	want  string
	holds func(x float64) bool
	keys  []string
}{
	{"must be a size from 1 to 1048576", func(x float64) bool { return x >= 1 && x <= 1<<20 }, []string{
		"model.hidden_size", "model.num_hidden_layers", "model.full_attention_interval", "model.intermediate_size",
		"model.num_attention_heads", "model.num_key_value_heads", "model.head_dim",
		"model.linear_num_key_heads", "model.linear_num_value_heads", "model.linear_key_head_dim", "model.linear_value_head_dim",
	}},
	{"must be above 0 and finite", func(x float64) bool { return x > 0 && !math.IsInf(x, 0) }, []string{
		"model.initializer_range", "model.embedding_std", "model.output_scale", "model.min_time_step", "model.max_time_step",
		"train.epochs", "train.batch_pairs", "train.micro_batch_tokens", "train.max_length", "train.lr", "train.eps", "train.grad_clip",
		"train.keep_checkpoints", "train.max_bad_steps", "loss.alpha", "lora.alpha",
	}},
	{"must be 0 or more, and finite", func(x float64) bool { return x >= 0 && !math.IsInf(x, 0) }, []string{
		"train.max_steps", "train.weight_decay", "train.validate_every", "train.validate_questions", "train.patience", "train.checkpoint_every", "train.memory_gb", "lora.rank",
		"loss.offset", "loss.center", "loss.contrast", "loss.divergence", "loss.language_model",
	}},
	{"must lie in [0, 1]", func(x float64) bool { return x >= 0 && x <= 1 }, []string{
		"train.warmup", "train.min_lr_ratio", "train.holdout_databases",
	}},
	{"must lie in [0, 1)", func(x float64) bool { return x >= 0 && x < 1 }, []string{"train.beta1", "train.beta2"}},
	{"must lie in [0, 1024]; 0: one per core", func(x float64) bool { return x >= 0 && x <= 1024 }, []string{"train.threads"}},
}

// check reports the first value that no run can use.
func (c Config) check() error {
	values := c.values()
	for _, r := range ranges {
		for _, key := range r.keys {
			if !r.holds(number(values[key])) {
				return c.mistake(key, "%s", r.want)
			}
		}
	}
	if !slices.Contains([]string{"weight", "offset", "both", "none"}, c.Loss.Margin) {
		return c.mistake("loss.margin", "must be weight, offset, both or none")
	}
	if _, err := engine.ParsePrecision(c.Train.Precision); err != nil {
		return c.mistake("train.precision", "must be fp32 or bf16")
	}
	if _, err := engine.ParseCheckpointing(c.Train.Checkpointing); err != nil {
		return c.mistake("train.checkpointing", "must be none, selective or full")
	}
	if c.Model.Head != headScalar && c.Model.Head != headToken {
		return c.mistake("model.head", "must be scalar or token")
	}
	if c.LoRA.Rank > 0 && c.Model.Path == "" {
		return c.mistake("lora.rank", "an adapter belongs to a model that is there: name its folder, model.path=DIR")
	}
	if c.Model.Path != "" {
		return nil // the shape is the folder's
	}
	return c.checkShape()
}

func number(value any) float64 {
	if n, ok := value.(int64); ok {
		return float64(n)
	}
	x, _ := value.(float64)
	return x
}

// checkRun checks what a run needs beside a configuration that is right in itself.
func (c Config) checkRun() error {
	if err := c.check(); err != nil {
		return err
	}
	if c.Train.Out == "" {
		return c.mistake("train.out", "name the run folder: train.out=DIR")
	}
	if len(c.Train.Tuples) == 0 {
		return c.mistake("train.tuples", "name the tuple files: train.tuples=FILE,...")
	}
	return findFiles(c.Train.Tuples)
}

// checkShape checks that the sizes of a new model fit each other. Its keys have the
// names of config.json, which the model's own check cites.
func (c Config) checkShape() error {
	if m := c.Model; m.MinTimeStep > m.MaxTimeStep {
		return c.mistake("model.min_time_step", "must not be above model.max_time_step")
	}
	if added := addedTokens(c.Model); c.Model.VocabularySize < 256+len(added) || c.Model.VocabularySize > 1<<20 {
		return c.mistake("model.vocab_size", "must lie in [%d, 1048576]: 256 bytes and %d added tokens", 256+len(added), len(added))
	}
	shape := c.Model.shape()
	if dims := shape.RotaryDims(); dims <= 0 || dims%2 != 0 {
		return c.mistake("model.head_dim", "must be a multiple of 8: a quarter of the dimensions turn in pairs")
	}
	if err := shape.Validate(); err != nil {
		key, problem, _ := strings.Cut(err.Error(), ": ")
		return c.mistake("model."+key, "%s", problem)
	}
	return nil
}
