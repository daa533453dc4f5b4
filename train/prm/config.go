package prm

import (
	"slices"

	"caper/train/run"
	"caper/train/settings"
)

// Config is what a reward-model run is made of. Every key has a default
// (Defaults); a file gives some, `key=value` words on the command line give
// others, and a key that does not exist is an error.
type Config struct {
	Model Model    `toml:"model"`
	Train Training `toml:"train"`
	Loss  Loss     `toml:"loss"`
	LoRA  run.LoRA `toml:"lora"`

	origin settings.Origin
}

// Model says where the weights come from and how clauses are scored. The vocabulary of a
// new model is trained on the tuples.
type Model struct {
	run.Model
	Head        string   `toml:"head" comment:"scalar: a linear map to one number; token: the logits of label_tokens"`
	LabelTokens []string `toml:"label_tokens" comment:"score = logit of the first less that of the second, if there is one"`
	ClauseToken string   `toml:"clause_token" comment:"added token that ends a clause; its hidden state is scored. end_token, likewise, is the END unit"`
}

// Training holds data, schedule and optimiser (caper.md 1.4.7).
type Training struct {
	run.Train
	Tuples           []string `toml:"tuples" comment:"tuple files (JSON Lines)"`
	Epochs           int      `toml:"epochs"`
	BatchPairs       int      `toml:"batch_pairs" comment:"pairs an optimiser step, at least; questions are never split"`
	HoldoutDatabases float64  `toml:"holdout_databases" comment:"share of the databases kept for validation"`
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

// Defaults returns the configuration that files and overrides start from.
func Defaults() Config {
	model, train, lora := run.Defaults()
	return Config{
		Model: Model{Model: model, Head: headScalar, LabelTokens: []string{"+", "-"}, ClauseToken: "<|clause|>"},
		Train: Training{Train: train, Epochs: 2, BatchPairs: 64, HoldoutDatabases: 0.05},
		LoRA:  lora,
		Loss:  Loss{Margin: "weight", Offset: 1, Center: 0.01, Alpha: 1},
	}
}

// LoadConfig reads a TOML file (path may be empty) over the defaults and applies
// the overrides, words of the form section.key=value. A mistake in them is a
// *settings.Error.
func LoadConfig(path string, overrides []string) (Config, error) {
	c := Defaults()
	var err error
	if c.origin, err = settings.Load(&c, path, overrides); err != nil {
		return c, err
	}
	return c, c.check()
}

// ParseConfig is LoadConfig for a text; name stands for the file in errors.
func ParseConfig(text []byte, name string, overrides []string) (Config, error) {
	c := Defaults()
	var err error
	if c.origin, err = settings.Read(&c, text, name, overrides); err != nil {
		return c, err
	}
	return c, c.check()
}

// Text writes the configuration as TOML, with a comment on every key that needs
// one.
func (c Config) Text() string { return settings.Text(&c) }

// sections are those that a run reads.
func (c *Config) sections() run.Sections {
	defaults := Defaults()
	return run.Sections{
		Model: &c.Model.Model, Train: &c.Train.Train, LoRA: &c.LoRA,
		Whole: c, Defaults: &defaults, Origin: c.origin, Added: []string{c.Model.ClauseToken},
	}
}

// mistake says what is wrong with the value of a key.
func (c *Config) mistake(key, format string, args ...any) error {
	return c.origin.Mistake(c, key, format, args...)
}

// check reports the first value that no run can use.
func (c *Config) check() error {
	err := c.origin.Check(c,
		settings.Above0("train.epochs", "train.batch_pairs", "loss.alpha"),
		settings.AtLeast0("loss.offset", "loss.center", "loss.contrast", "loss.divergence", "loss.language_model"),
		settings.Share("train.holdout_databases"))
	if err != nil {
		return err
	}
	if !slices.Contains([]string{"weight", "offset", "both", "none"}, c.Loss.Margin) {
		return c.mistake("loss.margin", "must be weight, offset, both or none")
	}
	if c.Model.Head != headScalar && c.Model.Head != headToken {
		return c.mistake("model.head", "must be scalar or token")
	}
	return c.sections().Check()
}

// checkData finds the tuple files.
func (c *Config) checkData() error {
	if len(c.Train.Tuples) == 0 {
		return c.mistake("train.tuples", "name the tuple files: train.tuples=FILE,...")
	}
	return settings.FindFiles(c.Train.Tuples)
}
