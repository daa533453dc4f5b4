package grpo

import (
	"slices"

	"caper/eval"
	"caper/kernels/policyloss"
	"caper/model/remote"
	"caper/train/policy"
	"caper/train/reward"
	"caper/train/run"
	"caper/train/settings"
)

// Config is what a policy run is made of. Every key has a default (Defaults); a file gives
// some, `key=value` words on the command line give others, and a key that does not exist is
// an error.
type Config struct {
	Model   run.Model `toml:"model"`
	Train   Training  `toml:"train"`
	Rollout Rollout   `toml:"rollout"`
	Reward  Reward    `toml:"reward"`
	Policy  Policy    `toml:"policy"`
	LoRA    run.LoRA  `toml:"lora"`

	origin settings.Origin
}

// Training holds questions, schedule and optimiser.
type Training struct {
	run.Train
	Benchmark       string `toml:"bench" comment:"folder of questions and databases"`
	Format          string `toml:"format" comment:"auto: what the folder looks like; or spider, bird or synsql"`
	Split           string `toml:"split" comment:"questions to learn from"`
	Curriculum      string `toml:"curriculum" comment:"sampling table to draw questions by, in place of the split's (caper train dapo makes one)"`
	ValidationSplit string `toml:"validation_split" comment:"questions of validations; empty: none"`
	Questions       int    `toml:"questions" comment:"of the split, at most; 0: all"`
	Epochs          int    `toml:"epochs" comment:"times that the questions are gone through, without dynamic sampling"`
	BatchQuestions  int    `toml:"batch_questions" comment:"questions a step"`
}

// Rollout says how answers are sampled.
type Rollout struct {
	Samples     int     `toml:"samples" comment:"answers to a question: the group"`
	Temperature float64 `toml:"temperature"`
	TopP        float64 `toml:"top_p"`
	MaxTokens   int     `toml:"max_tokens" comment:"of an answer"`
	MaxPrompt   int     `toml:"max_prompt" comment:"tokens of a prompt; questions with longer ones are left out and counted"`
	Chat        bool    `toml:"chat" comment:"the prompt is what a user says, in the model's chat template, and the query is looked for in the answer"`
	CacheTokens int     `toml:"cache_tokens" comment:"of the sampler's cache of keys and values, which bounds its memory"`
	Batch       int     `toml:"batch" comment:"samples under way together, at most"`
	// Dynamic sampling (DAPO, arXiv 2503.14476): groups without a signal are replaced.
	DynamicBatches int `toml:"dynamic_batches" comment:"times at most that questions are drawn for a step until batch_questions groups have a signal; 1: no dynamic sampling"`
	// A model server in place of the sampler on the trainer's own weights.
	Server      string  `toml:"server" comment:"root of a model server's API, such as http://localhost:8000/v1; empty: answers are sampled here"`
	ServerAPI   string  `toml:"server_api" comment:"what it speaks: openai, transformers, vllm or sglang"`
	ServerModel string  `toml:"server_model" comment:"name that it knows the policy by"`
	ServerCalls int     `toml:"server_calls" comment:"calls under way at a time"`
	PerCall     int     `toml:"per_call" comment:"answers that a call asks for; 0: the whole group"`
	CallTimeout float64 `toml:"call_timeout" comment:"seconds of one attempt of a call"`
	Attempts    int     `toml:"attempts" comment:"of a call"`
	StepTimeout float64 `toml:"step_timeout" comment:"seconds after which a step goes on without the answers that are late"`
	Reload      string  `toml:"reload" comment:"address or shell command that makes the server load the weights in CAPER_POLICY; empty: by its API"`
	Ahead       bool    `toml:"ahead" comment:"the server answers the next step's questions, with weights that are a step old, while this step's are learned from"`
	LogEvery    int     `toml:"log_every" comment:"steps between those whose answers are written to rollouts.jsonl; 0: none"`
}

// Reward says what answers are rewarded for (caper.md 1.4.8).
type Reward struct {
	Kind          string  `toml:"kind" comment:"clause, token, sparse or arctic"`
	Model         string  `toml:"model" comment:"folder of the clause reward model; with sparse and arctic it is only watched"`
	Temperature   float64 `toml:"temperature" comment:"p = sigmoid(score / temperature)"`
	Rule          string  `toml:"rule" comment:"of execution: spider, test-suite, bird or strict; empty: the benchmark's"`
	Execution     float64 `toml:"lambda_e" comment:"reward of a right result"`
	Clauses       float64 `toml:"lambda_c" comment:"reward of all clauses of a query together, at most"`
	Gamma         float64 `toml:"gamma" comment:"discount from clause to clause"`
	OverlongAfter int     `toml:"overlong_buffer" comment:"last tokens before max_tokens over which a penalty grows to -1; 0: none"`
	Workers       int     `toml:"workers" comment:"queries executed at a time; 0: one per core"`
	CacheMB       int     `toml:"cache_mb" comment:"size of the cache of results"`
	Window        int     `toml:"watch_window" comment:"steps that the watch over reward model and lengths compares with as many before; 0: no watch"`
}

// Policy is the objective.
type Policy struct {
	Advantage     string  `toml:"advantage" comment:"aligned, pooled or deepseek"`
	MaxAdvantage  float64 `toml:"max_advantage" comment:"advantages are cut off there, either way; 0: nowhere"`
	ClipLow       float64 `toml:"clip_low" comment:"the ratio to the old policy counts down to 1 - clip_low"`
	ClipHigh      float64 `toml:"clip_high" comment:"and up to 1 + clip_high"`
	DualClip      float64 `toml:"dual_clip" comment:"advantages that a token of negative advantage costs at most; 0: no bound"`
	KL            float64 `toml:"kl" comment:"weight of the divergence from the reference (k3)"`
	Reference     string  `toml:"reference" comment:"folder of the reference; empty: the model that the run starts from"`
	Normalisation string  `toml:"normalisation" comment:"the loss is a mean over sample, over token, or divided by a constant"`
	Passes        int     `toml:"passes" comment:"updates with the answers of a step"`
	Importance    float64 `toml:"importance_cap" comment:"tokens count by the policy's probability over that which they were drawn with, up to this; 0: alike"`
	// The entropy bonus moves with the entropy (Skywork-OR1, arXiv 2505.22312).
	EntropyTarget float64 `toml:"entropy_target" comment:"nats a token below which there is an entropy bonus; 0: never"`
	EntropyDelta  float64 `toml:"entropy_delta" comment:"by which the bonus' weight grows in a step below the target and shrinks above"`
	EntropyMax    float64 `toml:"entropy_max" comment:"largest weight"`
}

// Defaults returns the configuration that files and overrides start from.
func Defaults() Config {
	c := Config{
		Train: Training{Format: "auto", Split: "train", Epochs: 1, BatchQuestions: 48},
		Rollout: Rollout{Samples: 8, Temperature: 1, TopP: 1, MaxTokens: 512, MaxPrompt: 8192, CacheTokens: 32768, Batch: 64,
			DynamicBatches: 1, ServerAPI: string(remote.OpenAI), ServerCalls: 16, CallTimeout: 120, Attempts: 4, StepTimeout: 1800, LogEvery: 10},
		Reward: Reward{Kind: string(reward.Clause), Temperature: 1, Execution: 1, Clauses: 0.5, Gamma: 1, CacheMB: 256, Window: 20},
		Policy: Policy{Advantage: string(policy.Aligned), MaxAdvantage: 5, ClipLow: 0.2, ClipHigh: 0.2, KL: 0.001,
			Normalisation: string(policyloss.PerToken), Passes: 1, Importance: 2, EntropyDelta: 0.005, EntropyMax: 0.05},
	}
	c.Model, c.Train.Train, c.LoRA = run.Defaults()
	c.Train.MaxLength = c.Rollout.MaxPrompt + c.Rollout.MaxTokens
	c.Train.LR, c.Train.MinLRRatio, c.Train.Warmup = 1e-6, 1, 0
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

// ParseConfig is LoadConfig for a text; name stands for the file in errors.
func ParseConfig(text []byte, name string, overrides []string) (Config, error) {
	c := Defaults()
	var err error
	if c.origin, err = settings.Read(&c, text, name, overrides); err != nil {
		return c, err
	}
	return c, c.check()
}

// Within returns the configuration as part of a larger one, of which origin knows where the
// values were written.
func (c Config) Within(origin settings.Origin) (Config, error) {
	c.origin = origin
	return c, c.check()
}

// Text writes the configuration as TOML.
func (c Config) Text() string { return settings.Text(&c) }

func (c *Config) sections() run.Sections {
	defaults := Defaults()
	return run.Sections{Model: &c.Model, Train: &c.Train.Train, LoRA: &c.LoRA, Whole: c, Defaults: &defaults, Origin: c.origin}
}

func (c *Config) mistake(key, format string, args ...any) error {
	return c.origin.Mistake(c, key, format, args...)
}

var ranges = []settings.Range{
	settings.Above0("train.epochs", "train.batch_questions", "rollout.samples", "rollout.temperature", "rollout.max_tokens", "rollout.max_prompt",
		"rollout.cache_tokens", "rollout.batch", "rollout.dynamic_batches", "rollout.server_calls", "rollout.call_timeout", "rollout.attempts", "rollout.step_timeout", "reward.temperature", "reward.cache_mb", "policy.passes"),
	settings.AtLeast0("train.questions", "rollout.log_every", "rollout.per_call", "reward.lambda_e", "reward.lambda_c", "reward.overlong_buffer", "reward.workers", "reward.watch_window",
		"policy.max_advantage", "policy.clip_high", "policy.dual_clip", "policy.kl", "policy.importance_cap",
		"policy.entropy_target", "policy.entropy_delta", "policy.entropy_max"),
	settings.Share("rollout.top_p", "reward.gamma", "policy.clip_low"),
}

// check reports the first value that no run can use.
func (c *Config) check() error {
	if err := c.origin.Check(c, ranges...); err != nil {
		return err
	}
	if _, err := reward.Parse(c.Reward.Kind); err != nil {
		return c.mistake("reward.kind", "want one of %q", reward.Kinds)
	}
	if modes := []policy.Mode{policy.Aligned, policy.Pooled, policy.StepRewards}; !slices.Contains(modes, policy.Mode(c.Policy.Advantage)) {
		return c.mistake("policy.advantage", "want one of %q", modes)
	}
	if _, err := policyloss.Normalisation(c.Policy.Normalisation).Weights([]int{1}, 1); err != nil {
		return c.mistake("policy.normalisation", "want sample, token or constant")
	}
	if d := c.Policy.DualClip; d != 0 && d <= 1 {
		return c.mistake("policy.dual_clip", "must be 0 or above 1: a ratio of 1 is no outlier")
	}
	if c.Reward.OverlongAfter >= c.Rollout.MaxTokens {
		return c.mistake("reward.overlong_buffer", "must be below rollout.max_tokens = %d", c.Rollout.MaxTokens)
	}
	if !slices.Contains(remote.APIs, remote.API(c.Rollout.ServerAPI)) {
		return c.mistake("rollout.server_api", "want one of %q", remote.APIs)
	}
	if c.Rollout.Ahead && c.Rollout.Server == "" {
		return c.mistake("rollout.ahead", "the sampler here uses the weights that are being trained: only a server can be ahead (rollout.server)")
	}
	if c.Rollout.MaxTokens >= c.Train.MaxLength {
		return c.mistake("rollout.max_tokens", "must be below train.max_length = %d, which is of prompt and answer", c.Train.MaxLength)
	}
	if c.Rollout.Samples < 2 {
		return c.mistake("rollout.samples", "a group needs 2 answers at least: advantages compare them")
	}
	if c.Reward.Rule != "" {
		if _, err := eval.ParseRule(c.Reward.Rule); err != nil {
			return c.mistake("reward.rule", "want spider, test-suite, bird or strict")
		}
	}
	return c.sections().Check()
}

// Ready says what a run needs that is not there: models, questions.
func (c Config) Ready() error { return c.checkRun() }

// checkRun checks what a run needs beside a configuration that is right in itself.
func (c *Config) checkRun() error {
	if err := c.check(); err != nil {
		return err
	}
	if kind := reward.Kind(c.Reward.Kind); kind.NeedsScores() && c.Reward.Model == "" {
		return c.mistake("reward.model", "reward.kind = %s needs a clause reward model: name its folder, reward.model=DIR (caper train prm makes one)", kind)
	}
	for _, folder := range []struct {
		key, want string
		path      *string
		needed    bool
	}{
		{"model.path", "name the policy to start from: model.path=DIR (caper train sft makes one)", &c.Model.Path, true},
		{"train.bench", "name the benchmark: train.bench=DIR", &c.Train.Benchmark, true},
		{"train.curriculum", "", &c.Train.Curriculum, false},
		{"reward.model", "", &c.Reward.Model, false},
		{"policy.reference", "", &c.Policy.Reference, false},
	} {
		if *folder.path == "" {
			if folder.needed {
				return c.mistake(folder.key, "%s", folder.want)
			}
			continue
		}
		paths := []string{*folder.path}
		if err := settings.FindFiles(paths); err != nil {
			return c.mistake(folder.key, "%w", err)
		}
		*folder.path = paths[0]
	}
	return nil
}

// crediting is the configuration as credit uses it.
func (c *Config) crediting() crediting {
	kind := reward.Kind(c.Reward.Kind)
	o := kind.Policy(policy.Options{Execution: c.Reward.Execution, Clauses: c.Reward.Clauses, Gamma: c.Reward.Gamma, Mode: policy.Mode(c.Policy.Advantage)})
	return crediting{kind: kind, options: o, most: c.Policy.MaxAdvantage, longest: c.Rollout.MaxTokens, buffer: c.Reward.OverlongAfter}
}

// longestPrompt is the most tokens that a question's prompt may have.
func (c *Config) longestPrompt() int {
	return min(c.Rollout.MaxPrompt, c.Train.MaxLength-c.Rollout.MaxTokens)
}

func (c *Config) loss() policyloss.Options {
	p := c.Policy
	return policyloss.Options{Low: p.ClipLow, High: p.ClipHigh, DualClip: p.DualClip, KL: p.KL}
}
