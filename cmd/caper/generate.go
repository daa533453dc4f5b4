package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"caper/data"
	"caper/kernels/sampling"
	"caper/model"
	"caper/model/chat"
	"caper/model/generate"
)

type generateCommand struct {
	Model  string `help:"Language model folder." required:"" type:"path"`
	In     string `help:"JSON Lines with \"ids\", \"messages\" or \"prompt\"; other fields are kept." xor:"prompt" required:"" type:"path"`
	Prompt string `help:"One prompt, in place of a file." xor:"prompt" required:""`
	Out    string `help:"One line a sample. With --prompt it may be left out: texts go to stdout." type:"path"`
	Field  string `help:"Field of the sampled text; sql makes the lines candidates." default:"text"`

	N           int      `name:"n" help:"Samples of a prompt." default:"1"`
	MaxTokens   int      `help:"Most tokens of a sample, the end token among them." default:"512"`
	Temperature float64  `help:"0: always the most probable token." default:"1"`
	TopK        int      `help:"Only the k most probable tokens; 0: all." default:"0"`
	TopP        float64  `help:"Only the most probable tokens that together have this probability; 1: all." default:"1"`
	MinP        float64  `help:"Only tokens at least this many times as probable as the most probable." default:"0"`
	Stop        []string `help:"Text that ends a sample and is cut off." sep:"none" placeholder:"TEXT"`
	StopToken   []int32  `help:"Token id that ends a sample, beside the model's own end tokens." placeholder:"ID"`
	IgnoreEnd   bool     `help:"The model's own end tokens end nothing."`
	Seed        uint64   `help:"With a line's number and a sample's, keys its random numbers." default:"1"`

	Chat     bool   `help:"Each prompt is what a user says, in the model's chat template."`
	Template string `help:"Name of the chat template where the model folder has none: qwen3, qwen3.5 or qwen3.5-small." placeholder:"NAME"`
	Thinking string `help:"What the opened turn asks of the model: default, on or off." default:"default" enum:"default,on,off"`

	Batch      int `help:"Most samples computed together." default:"64"`
	Tokens     int `help:"Tokens of the cache of keys and values, which bounds memory." default:"32768"`
	modelFlags `embed:""`
	Resume     bool `help:"Go on where a stopped run to the same file left off."`
}

func (c *generateCommand) Help() string {
	return `Example:
  caper generate --model qwen --prompt "SELECT" --n 4
  caper generate --model qwen --in prompts.jsonl --out samples.jsonl --n 8 --temperature 0.8 --seed 1
  caper generate --model qwen --in questions.jsonl --chat --thinking off --field sql --stop ";" --out candidates.jsonl

A prompt is taken as text: <|im_end|> in it is no control token. A line of the output has the fields of its prompt, the text, "sample" (its number), "ids" (the prompt's and the sample's tokens together, for caper logprobs), "prompt_tokens", "logprobs" of the sampled tokens at temperature 1, "drawn_logprobs" after temperature and filters, and "finish": stop_token, stop_string, length or not_finite. The same seed gives the same samples, whatever --batch, --tokens and --threads are.`
}

// Validate checks the flags.
func (c *generateCommand) Validate() error {
	var err error
	if c.Out == "" && c.In != "" {
		err = errors.New("--out is missing: name the file for the samples")
	}
	if c.Out != "" && data.IsParquet(c.Out) {
		err = fmt.Errorf("--out %s: samples are written as JSON Lines: name the file .jsonl", c.Out)
	}
	if rule := c.rule().Check(); rule != nil && err == nil {
		err = fmt.Errorf("--%w", rule)
	}
	return cmp.Or(err, checkNumber("--n", c.N, 1, 1<<20), checkNumber("--max-tokens", c.MaxTokens, 1, 1<<30),
		checkNumber("--batch", c.Batch, 1, 1<<16), checkNumber("--tokens", c.Tokens, 1, 1<<30),
		c.modelFlags.check(), checkRereadable("--in", c.In), checkOutput(c.Out, c.In))
}

func (c *generateCommand) rule() sampling.Rule {
	return sampling.Rule{Temperature: c.Temperature, TopK: c.TopK, TopP: c.TopP, MinP: c.MinP}
}

func (c *generateCommand) Run(ctx context.Context) error {
	m, err := c.load(c.Model)
	if err != nil {
		return err
	}
	g, err := generate.New(m, generate.Options{Batch: c.Batch, Tokens: c.Tokens})
	if err != nil {
		return fmt.Errorf("%s: %w", c.Model, err)
	}
	prompts, err := c.prompts(m)
	if err != nil {
		return err
	}
	if c.In == "" {
		return c.one(ctx, g, prompts)
	}
	fmt.Fprintf(os.Stderr, "cache of %d tokens, %d samples at once: %.0f MiB, on %s\n", c.Tokens, c.Batch, float64(g.Bytes())/(1<<20), m.Device().Name())
	return c.file(ctx, g, prompts)
}

// prompts returns what turns lines into requests.
func (c *generateCommand) prompts(m *model.Model) (*promptReader, error) {
	p := &promptReader{model: m, chat: c.Chat, thinking: map[string]chat.Thinking{
		"default": chat.DefaultThinking, "on": chat.ThinkingOn, "off": chat.ThinkingOff}[c.Thinking]}
	p.request = generate.Request{
		Samples: c.N, MaxTokens: c.MaxTokens, Rule: c.rule(), StopTokens: c.StopToken, StopStrings: c.Stop, Seed: c.Seed,
	}
	if !c.IgnoreEnd {
		ends, err := generate.EndTokens(c.Model)
		if err != nil {
			return nil, err
		}
		p.request.StopTokens = append(ends, c.StopToken...)
	}
	p.template = func() (*chat.Template, error) {
		if c.Template != "" {
			return chat.ByName(c.Template)
		}
		return chat.Load(c.Model)
	}
	return p, nil
}

// one serves --prompt.
func (c *generateCommand) one(ctx context.Context, g *generate.Generator, prompts *promptReader) error {
	line := data.Extra{}
	if err := writeField(line, "prompt", c.Prompt); err != nil {
		return err
	}
	r, err := prompts.read(line)
	if err != nil {
		return err
	}
	if err := g.Check(&r.Request); err != nil {
		return err
	}
	results, err := g.Generate(ctx, []generate.Request{r.Request})
	if err != nil {
		return err
	}
	if c.Out == "" {
		for _, s := range results[0].Samples {
			if _, err := fmt.Println(s.Text); err != nil {
				return err
			}
		}
		return nil
	}
	w, err := data.Create(c.Out)
	if err != nil {
		return err
	}
	defer w.Discard()
	if err := r.write(w.WriteLine, c.Field, results[0].Samples); err != nil {
		return err
	}
	return w.Commit()
}

// file serves --in.
func (c *generateCommand) file(ctx context.Context, g *generate.Generator, prompts *promptReader) error {
	out, err := openSamples(c)
	if err != nil {
		return err
	}
	started := time.Now()
	if err = out.check(g, prompts); err == nil {
		err = out.fill(ctx, g, prompts)
	}
	if err != nil {
		kept := out.keep()
		switch {
		case kept && ctx.Err() != nil: // no context.Canceled: its message says that nothing is kept
			return fmt.Errorf("interrupted: %s are done and kept beside %s: go on with --resume", counted(out.state.Lines, "prompt"), c.Out)
		case kept:
			return fmt.Errorf("%w; go on with --resume", err)
		}
		return err
	}
	if err := out.file.Commit(); err != nil {
		return err
	}
	seconds := time.Since(started).Seconds()
	fmt.Fprintf(os.Stderr, "%s of %s in %s: %.0f tokens/s\n", counted(out.samples, "sample"), counted(out.state.Lines, "prompt"), c.Out, float64(out.tokens)/seconds)
	return nil
}
