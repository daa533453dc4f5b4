package sft

import (
	"caper/train/run"
	"caper/train/settings"
)

// Config is what a supervised run is made of. Every key has a default (Defaults); a file
// gives some, `key=value` words on the command line give others, and a key that does not
// exist is an error.
type Config struct {
	Model run.Model `toml:"model"`
	Train Training  `toml:"train"`
	LoRA  run.LoRA  `toml:"lora"`

	origin settings.Origin
}

// Training holds data, schedule, optimiser and validation.
type Training struct {
	run.Train
	Benchmark        string   `toml:"bench" comment:"folder of questions and databases"`
	Format           string   `toml:"format" comment:"auto: what the folder looks like; or spider, bird or synsql"`
	Split            string   `toml:"split" comment:"questions to learn from"`
	Rollouts         []string `toml:"rollouts" comment:"candidates (JSON Lines) to learn from in place of gold: those of verdict correct where lines have a verdict"`
	Chat             bool     `toml:"chat" comment:"the prompt is what a user says, in the chat template of model.path"`
	Epochs           int      `toml:"epochs"`
	BatchQueries     int      `toml:"batch_queries" comment:"queries an optimiser step, at least"`
	Together         int      `toml:"queries_together" comment:"queries of one database that are never parted: its schema is computed once for them"`
	HoldoutDatabases float64  `toml:"holdout_databases" comment:"share of the databases kept for validation"`
	HoldoutQuestions float64  `toml:"holdout_questions" comment:"share of the other databases' questions kept for validation"`
	MaxNewTokens     int      `toml:"max_new_tokens" comment:"of an answer in validations"`
	ValidateBatch    int      `toml:"validate_batch" comment:"answers under way together"`
	ValidateTokens   int      `toml:"validate_cache_tokens" comment:"of the sampler's cache of keys and values, which bounds its memory"`
	StopAtEX         float64  `toml:"stop_at_ex" comment:"execution accuracy, of all validated questions, at which the run stops; 0: never"`
}

// Defaults returns the configuration that files and overrides start from.
func Defaults() Config {
	model, train, lora := run.Defaults()
	return Config{
		Model: model,
		Train: Training{Train: train, Format: "auto", Split: "train", Epochs: 2, BatchQueries: 64, Together: 8,
			HoldoutDatabases: 0.05, HoldoutQuestions: 0.02, MaxNewTokens: 512, ValidateBatch: 64, ValidateTokens: 32768},
		LoRA: lora,
	}
}

// LoadConfig reads a TOML file (path may be empty) over the defaults and applies the
// overrides, words of the form section.key=value. A mistake in them is a *settings.Error.
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

// Text writes the configuration as TOML, with a comment on every key that needs one.
func (c Config) Text() string { return settings.Text(&c) }

// clauseToken is in new vocabularies so that a reward model can start from the policy.
const clauseToken = "<|clause|>"

// sections are those that a run reads.
func (c *Config) sections() run.Sections {
	defaults := Defaults()
	return run.Sections{
		Model: &c.Model, Train: &c.Train.Train, LoRA: &c.LoRA,
		Whole: c, Defaults: &defaults, Origin: c.origin, Added: []string{clauseToken},
	}
}

// mistake says what is wrong with the value of a key.
func (c *Config) mistake(key, format string, args ...any) error {
	return c.origin.Mistake(c, key, format, args...)
}

// check reports the first value that no run can use.
func (c *Config) check() error {
	err := c.origin.Check(c,
		settings.Above0("train.epochs", "train.batch_queries", "train.queries_together", "train.max_new_tokens", "train.validate_batch", "train.validate_cache_tokens"),
		settings.Share("train.holdout_databases", "train.holdout_questions", "train.stop_at_ex"))
	if err != nil {
		return err
	}
	if c.Train.Chat && c.Model.Path == "" {
		return c.mistake("train.chat", "a chat template belongs to a model that is there: name its folder, model.path=DIR")
	}
	if c.Train.StopAtEX > 0 && c.Train.HoldoutDatabases == 0 && c.Train.HoldoutQuestions == 0 {
		return c.mistake("train.stop_at_ex", "nothing is held out to measure it on: set train.holdout_databases or train.holdout_questions")
	}
	return c.sections().Check()
}

// checkData finds the benchmark and the rollouts.
func (c *Config) checkData() error {
	if c.Train.Benchmark == "" {
		return c.mistake("train.bench", "name the benchmark: train.bench=DIR")
	}
	folder := []string{c.Train.Benchmark}
	if err := settings.FindFiles(folder); err != nil {
		return c.mistake("train.bench", "%w", err)
	}
	c.Train.Benchmark = folder[0]
	if err := settings.FindFiles(c.Train.Rollouts); err != nil {
		return c.mistake("train.rollouts", "%w", err)
	}
	return nil
}
