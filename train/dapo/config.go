package dapo

import (
	"cmp"
	"path/filepath"

	"caper/train/grpo"
	"caper/train/run"
	"caper/train/settings"
)

// Config is a specialist's training: the configuration of a policy run, which is the first
// stage's, and what it does not have.
type Config struct {
	grpo.Config
	Curriculum Curriculum `toml:"curriculum"`
	Second     Second     `toml:"second"`

	origin settings.Origin
}

// Curriculum says what is learned from.
type Curriculum struct {
	Samples  int     `toml:"samples" comment:"answers to a question by which its rate of success is found"`
	Anchors  float64 `toml:"anchors" comment:"share of the questions that are always answered right which stays, at most"`
	Siblings bool    `toml:"siblings" comment:"questions that are always or never answered right get a harder or easier sibling"`
	Tries    int     `toml:"sibling_tries" comment:"changed queries tried for a sibling"`
	Rows     int     `toml:"sibling_rows" comment:"of a sibling's result, at most"`
	// Without a server, siblings are asked in the words of the built-in benchmark.
	Server      string `toml:"server" comment:"model server that words siblings, such as http://localhost:8000/v1; empty: the built-in benchmark's phrases do"`
	ServerModel string `toml:"server_model" comment:"name of the model there"`
	ServerKey   string `toml:"server_key" comment:"environment variable that holds the server's token"`
	MaxTokens   int    `toml:"server_tokens" comment:"of an answer of that server"`
}

// Second is the second stage: the questions that the first stage's policy seldom answers
// right. All else is as in the first.
type Second struct {
	Epochs        int     `toml:"epochs" comment:"0: there is no second stage"`
	MaxSteps      int     `toml:"max_steps" comment:"0: as many as the epochs have"`
	LR            float64 `toml:"lr"`
	Samples       int     `toml:"samples" comment:"answers to a question"`
	Low           float64 `toml:"low" comment:"rates of success of its questions"`
	High          float64 `toml:"high"`
	EntropyTarget float64 `toml:"entropy_target" comment:"nats a token below which there is an entropy bonus; 0: never"`
}

// Defaults returns the configuration that files and overrides start from: DAPO's settings
// of the policy run (arXiv 2503.14476), and the two stages of sirius.md 2.3.
func Defaults() Config {
	c := Config{Config: grpo.Defaults(),
		Curriculum: Curriculum{Samples: 8, Anchors: 0.05, Siblings: true, Tries: 12, Rows: 1000, ServerKey: "CAPER_API_KEY", MaxTokens: 1024},
		Second:     Second{Epochs: 1, LR: 5e-7, Samples: 16, Low: 1.0 / 8, High: 4.0 / 8, EntropyTarget: 0.2}}
	c.Reward.Kind, c.Reward.OverlongAfter = "sparse", 100 // a fifth of max_tokens, as DAPO's 4k of 20k
	c.Policy.ClipHigh, c.Policy.KL, c.Policy.EntropyMax = 0.28, 0, 0.02
	c.Rollout.DynamicBatches = 10
	return c
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

// Text writes the configuration as TOML.
func (c Config) Text() string { return settings.Text(&c) }

func (c *Config) mistake(key, format string, args ...any) error {
	return c.origin.Mistake(c, key, format, args...)
}

func (c *Config) check() (err error) {
	if c.Config, err = c.Config.Within(c.origin); err != nil {
		return err
	}
	if err := c.origin.Check(c,
		settings.Above0("curriculum.sibling_tries", "curriculum.sibling_rows", "curriculum.server_tokens", "second.lr"),
		settings.AtLeast0("second.epochs", "second.max_steps", "second.entropy_target"),
		settings.Share("curriculum.anchors", "second.low", "second.high"),
		settings.Within("must be 2 or more: groups compare answers", func(x float64) bool { return x >= 2 }, "curriculum.samples", "second.samples"),
	); err != nil {
		return err
	}
	if c.Second.Low > c.Second.High {
		return c.mistake("second.low", "must not be above second.high = %g", c.Second.High)
	}
	if c.Train.Curriculum != "" {
		return c.mistake("train.curriculum", "this training makes its own tables: use caper train grpo for one that is there")
	}
	return nil
}

// stage is the configuration of a stage's run.
func (c *Config) stage(number int, model, table string) grpo.Config {
	s := c.Config
	s.Train.Out, s.Train.Curriculum, s.Model.Path = c.folder("stage", number), table, cmp.Or(model, s.Model.Path)
	s.Train.Questions = 0 // that bound is the table's
	if number == 2 {
		s.Train.LR, s.Train.Epochs, s.Train.MaxSteps = c.Second.LR, c.Second.Epochs, c.Second.MaxSteps
		s.Rollout.Samples, s.Policy.EntropyTarget = c.Second.Samples, c.Second.EntropyTarget
	}
	return s
}

func (c *Config) folder(what string, number int) string {
	return filepath.Join(c.Train.Out, what+"-"+string(rune('0'+number)))
}

// configPath is the file that a run of this configuration begins with.
func (c *Config) configPath() string { return filepath.Join(c.Train.Out, run.ConfigName) }
