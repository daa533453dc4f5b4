package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"

	"caper/data"
	"caper/model"
)

type logprobsCommand struct {
	Model      string `help:"Language model folder." required:"" type:"path"`
	IDs        string `name:"ids" help:"JSON Lines with \"ids\", the tokens of a sequence." required:"" type:"path"`
	Out        string `help:"The same lines with \"logprobs\"." required:"" type:"path"`
	Budget     int    `help:"Most tokens computed at once; 0 chooses. It changes speed and memory, and delta nets' results by rounding." default:"0"`
	modelFlags `embed:""`
}

func (c *logprobsCommand) Help() string {
	return `Example:
  caper logprobs --model qwen --ids ids.jsonl --out logprobs.jsonl

A line of T ids gets T-1 numbers: the natural logarithm of the probability of each id but the first, given those before it. What lines begin with alike is computed once.`
}

// Validate checks the flags.
func (c *logprobsCommand) Validate() error {
	return cmp.Or(c.check(), checkNumber("--budget", c.Budget, 0, 1<<30), checkOutput(c.Out, c.IDs))
}

func (c *logprobsCommand) Run(ctx context.Context) error {
	m, err := c.load(c.Model)
	if err != nil {
		return err
	}
	prober, err := model.NewLogProber(m, c.Budget)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Model, err)
	}
	w, err := data.Create(c.Out)
	if err != nil {
		return err
	}
	defer w.Discard()
	lines, tokens := 0, 0
	var objects []data.Extra
	var sequences [][]int32
	flush := func() error {
		for i, values := range prober.LogProbs(sequences) {
			for _, x := range values {
				if math.IsNaN(x) || math.IsInf(x, 0) {
					return fmt.Errorf("%s: the model gives %g as a log-prob of ids %v: its weights are damaged; see caper inspect", c.Model, x, sequences[i])
				}
			}
			if values == nil {
				values = []float64{}
			}
			if err := writeField(objects[i], "logprobs", values); err != nil {
				return err
			}
			if err := w.WriteLine(objects[i]); err != nil {
				return err
			}
		}
		objects, sequences, tokens = objects[:0], sequences[:0], 0
		return nil
	}
	vocab := m.Config.Text.Shared().VocabSize
	for object, err := range data.ReadObjects(c.IDs, func(o data.Extra) (data.Extra, error) { _, err := readIDs(o, vocab); return o, err }) {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		ids, _ := readIDs(object, vocab) // as checked above
		objects, sequences = append(objects, object), append(sequences, ids)
		lines++
		if tokens += len(ids); tokens > linesTokens {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	if err := w.Commit(); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "log-probs of %s in %s%s\n", counted(lines, "sequence"), c.Out, saved(prober.Sharing))
	return nil
}

// linesTokens is how many tokens of lines are read before they are computed.
const linesTokens = 1 << 16

// readIDs returns a line's ids, which must be the model's.
func readIDs(object data.Extra, vocab int) ([]int32, error) {
	raw, ok := object["ids"]
	if !ok {
		return nil, fmt.Errorf("field \"ids\" is missing: make it with caper tokenize")
	}
	var ids []int32
	if err := json.Unmarshal(raw, &ids); err != nil {
		return nil, fmt.Errorf("field \"ids\": %w", data.PlainJSONError(err))
	}
	for _, id := range ids {
		if id < 0 || int(id) >= vocab {
			return nil, fmt.Errorf("field \"ids\": %d: the model's ids end at %d: use the tokenizer that belongs to it", id, vocab-1)
		}
	}
	return ids, nil
}
