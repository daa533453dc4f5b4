package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"caper/data"
	"caper/engine"
	"caper/model"
	"caper/model/lora"
	"caper/model/tokenizer"
	"caper/train/plan"
	"caper/train/settings"
)

type planCommand struct {
	Model         string   `help:"Model folder (config.json suffices), or a published size: 0.8B, 2B, 4B, 9B, 27B (Qwen3.5), qwen3-0.6B to qwen3-32B."`
	Config        string   `help:"Configuration of a training, in place of --model: what each part of it takes." type:"existingfile" placeholder:"FILE"`
	Overrides     []string `arg:"" optional:"" help:"With --config: section.key=value, over the file."`
	Prompt        int      `help:"With --config: mean tokens of a prompt." default:"2000"`
	Answer        int      `help:"With --config: mean tokens of an answer." default:"60"`
	Items         int      `help:"With --config: pairs or questions to train on, where no file is given." placeholder:"N"`
	Reward        bool     `help:"With a scalar score head in place of the language-model head."`
	LoRA          int      `name:"lora" help:"Train an adapter of this rank on all linear maps instead of the weights." placeholder:"RANK"`
	GPUs          int      `name:"gpus" help:"Number of GPUs." default:"1"`
	Card          string   `help:"H200, H100, A100, A100-40GB, B200, L40S or RTX4090." default:"H200"`
	Memory        float64  `help:"GB (1e9 bytes) of a card, in place of the named one's." placeholder:"GB"`
	Peak          float64  `help:"Dense bf16 TFLOP/s of a card, in place of the named one's." placeholder:"TFLOPS"`
	MFU           float64  `name:"mfu" help:"Share of the peak that the model's own operations reach." default:"0.4"`
	Tokens        int      `help:"Tokens of a micro-batch on one GPU." default:"8192"`
	Length        int      `help:"Tokens of a sequence; 0: as long as the micro-batch." default:"0"`
	Tuples        string   `help:"Tuple file: how long an epoch takes, with prompts shared and without." type:"existingfile" placeholder:"FILE"`
	Rollouts      string   `help:"Rollout file, likewise. Lines without a prompt need --bench." type:"existingfile" placeholder:"FILE"`
	Bench         string   `help:"Benchmark folder, for rollouts without a prompt." type:"path"`
	Format        string   `help:"auto, spider, bird or synsql." default:"auto" enum:"auto,spider,bird,synsql"`
	Split         string   `help:"Split of the benchmark." default:"dev"`
	Tokenizer     string   `help:"tokenizer.json to count tokens with; without it and without one in the model folder, tokens are bytes / 3.5." type:"existingfile" placeholder:"FILE"`
	Checkpointing string   `help:"Of the dry run: none, selective or full; the plan compares all three." default:"none" enum:"none,selective,full"`
	DryRun        bool     `help:"List every launch of a training step, with shapes, operations and bytes, and stop."`
	JSON          bool     `help:"Print JSON on stdout."`
}

func (c *planCommand) Help() string {
	return `Example:
  caper plan --model 9B --gpus 8 --tokens 8192
  caper plan --model 9B --reward --tuples tuples.jsonl
  caper plan --model 9B --dry-run
  caper plan --config configs/caper-9b-grpo.toml --items 9428 rollout.samples=16

No GPU is needed and nothing is allocated: the step is walked on a device whose tensors have shapes alone.`
}

// Validate checks the flags.
func (c *planCommand) Validate() error {
	if c.Length == 0 {
		c.Length = c.Tokens
	}
	switch {
	case (c.Model == "") == (c.Config == ""):
		return errors.New("give one of --model and --config")
	case c.Config == "" && len(c.Overrides) > 0:
		return fmt.Errorf("%s: overrides belong to --config", c.Overrides[0])
	case c.Config != "" && (c.DryRun || c.GPUs != 1 || c.Tuples != "" || c.Rollouts != ""):
		return errors.New("--dry-run, --gpus, --tuples and --rollouts go with --model; --config says how many GPUs are enough")
	case c.Prompt < 1 || c.Answer < 1 || c.Prompt > 1<<20 || c.Answer > 1<<20 || c.Items < 0:
		return errors.New("--prompt and --answer must be from 1 to 1048576, and --items not negative")
	case c.GPUs < 1 || c.GPUs > 1<<20:
		return fmt.Errorf("--gpus %d: must be at least 1", c.GPUs)
	case c.Tokens < 2 || c.Tokens > 1<<24:
		return fmt.Errorf("--tokens %d: must be from 2 to %d", c.Tokens, 1<<24)
	case c.Length < 2 || c.Length > c.Tokens:
		return fmt.Errorf("--length %d: must be from 2 to --tokens", c.Length)
	case !(c.MFU > 0 && c.MFU <= 1):
		return fmt.Errorf("--mfu %g: must be above 0 and at most 1", c.MFU)
	case c.LoRA < 0 || c.Memory < 0 || c.Peak < 0:
		return errors.New("--lora, --memory and --peak must not be negative")
	case c.Tuples != "" && c.Rollouts != "":
		return errors.New("--tuples and --rollouts: give one of them")
	}
	return nil
}

func (c *planCommand) Run(ctx context.Context) error {
	if c.Config != "" {
		return c.job()
	}
	config, err := c.config()
	if err != nil {
		return err
	}
	options, err := c.options()
	if err != nil {
		return usageError{err}
	}
	if c.DryRun {
		mode, err := engine.ParseCheckpointing(c.Checkpointing)
		if err != nil {
			return usageError{err}
		}
		walk, err := plan.Step(config, options.Batch, options.Adapter, mode)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(walk)
		}
		return walk.WriteText(os.Stdout)
	}
	p, err := plan.Make(c.Model, config, options)
	if err != nil {
		return err
	}
	if err := c.share(ctx, p); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(p)
	}
	return p.WriteText(os.Stderr)
}

// job plans the training that a configuration describes.
func (c *planCommand) job() error {
	j, err := plan.ReadJob(c.Config, c.Overrides, plan.Lengths{Prompt: c.Prompt, Answer: c.Answer})
	if errors.As(err, new(*settings.Error)) {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	options, err := c.options()
	if err != nil {
		return usageError{err}
	}
	needs, err := j.Take(options.Card, c.MFU, c.Items)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(needs)
	}
	return needs.WriteText(os.Stderr)
}

// config is the folder's configuration, or the published one's of that name.
func (c *planCommand) config() (model.Config, error) {
	_, err := os.Stat(c.Model)
	if errors.Is(err, fs.ErrNotExist) {
		config, err := plan.Named(c.Model)
		config.Reward = c.Reward
		if err != nil {
			err = usageError{err}
		}
		return config, err
	}
	config, err := model.ReadConfig(c.Model)
	config.Reward = config.Reward || c.Reward
	return config, err
}

func (c *planCommand) options() (plan.Options, error) {
	card, err := plan.FindCard(c.Card)
	if c.Memory > 0 {
		card.Memory = 1e9 * c.Memory
	}
	if c.Peak > 0 {
		card.Peak = 1e12 * c.Peak
	}
	o := plan.Options{
		Batch: plan.Batch{Sequences: c.Tokens / c.Length, Length: c.Length},
		GPUs:  c.GPUs, Card: card, MFU: c.MFU,
	}
	if c.LoRA > 0 {
		o.Adapter = &lora.Config{Rank: c.LoRA, Alpha: float64(c.LoRA), Targets: []string{lora.AllLinear}}
	}
	return o, err
}

// share counts the tokens of the given file.
func (c *planCommand) share(ctx context.Context, p *plan.Plan) error {
	if c.Tuples == "" && c.Rollouts == "" {
		return nil
	}
	encode, err := c.encoder()
	if err != nil {
		return err
	}
	var texts iter.Seq[plan.Text]
	if c.Tuples != "" {
		texts, err = plan.TupleTexts(ctx, data.ReadTuples(c.Tuples))
	} else {
		texts, err = c.rolloutTexts(ctx)
	}
	if err != nil {
		return err
	}
	sharing := plan.Share(texts, encode)
	if sharing.Sequences == 0 {
		return fmt.Errorf("%s: nothing to count in it: give a file with lines", c.Tuples+c.Rollouts)
	}
	p.SetSharing(sharing)
	return nil
}

func (c *planCommand) rolloutTexts(ctx context.Context) (iter.Seq[plan.Text], error) {
	var bench *data.Benchmark
	if c.Bench != "" {
		var err error
		if bench, err = data.OpenBenchmark(c.Bench, c.Format); err != nil {
			return nil, err
		}
		defer bench.Close()
	}
	prompt := func(r data.Rollout) (string, error) {
		p, err := promptOf(r, bench)
		if err != nil {
			err = fmt.Errorf("%s: question %s: %w", c.Rollouts, r.QuestionID, err)
		}
		return p, err
	}
	return plan.RolloutTexts(ctx, data.ReadRollouts(c.Rollouts, bench, c.Split), prompt)
}

// encoder is the tokenizer named, or the model folder's; nil where there is none.
func (c *planCommand) encoder() (func(string) []int32, error) {
	path := cmp.Or(c.Tokenizer, filepath.Join(c.Model, "tokenizer.json"))
	if _, err := os.Stat(path); err != nil {
		return nil, nil
	}
	k, err := tokenizer.Load(path)
	if err != nil {
		return nil, err
	}
	return func(text string) []int32 { return k.EncodeText(text, nil) }, nil
}
