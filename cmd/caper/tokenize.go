package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"caper/data"
	"caper/model/tokenizer"
)

type tokenizeCommand struct {
	Tokenizer string `help:"tokenizer.json in Hugging Face layout." required:"" type:"path"`
	In        string `help:"JSON Lines with \"text\" (or \"ids\" with --decode)." required:"" type:"path"`
	Out       string `help:"The same lines with \"ids\" (or \"text\")." required:"" type:"path"`
	Decode    bool   `help:"From ids to text; special tokens are kept."`
	Threads   int    `help:"0: one per core." default:"0"`
}

func (c *tokenizeCommand) Help() string {
	return `Example:
  caper tokenize --tokenizer model/tokenizer.json --in texts.jsonl --out ids.jsonl`
}

// Validate checks the flags.
func (c *tokenizeCommand) Validate() error {
	return cmp.Or(checkThreads("--threads", c.Threads), checkOutput(c.Out, c.Tokenizer, c.In))
}

func (c *tokenizeCommand) Run(ctx context.Context) error {
	k, err := tokenizer.Load(c.Tokenizer)
	if err != nil {
		return err
	}
	t := tokenizeLines{tokenizer: k}
	change := t.encode
	if c.Decode {
		change = t.decode
	}
	start := time.Now()
	threads := cmp.Or(c.Threads, runtime.NumCPU())
	if err := data.MapLines(ctx, c.In, c.Out, threads, change); err != nil {
		return err
	}
	seconds := time.Since(start).Seconds()
	fmt.Fprintf(os.Stderr, "%s, %s, %.2f MB of text in %s: %.1f MB/s, %s\n", counted(int(t.lines.Load()), "line"),
		counted(int(t.tokens.Load()), "token"), float64(t.bytes.Load())/1e6, c.Out, float64(t.bytes.Load())/1e6/seconds, counted(threads, "thread"))
	return nil
}

// tokenizeLines converts lines and counts what goes through.
type tokenizeLines struct {
	tokenizer            *tokenizer.Tokenizer
	lines, tokens, bytes atomic.Int64
}

func (t *tokenizeLines) encode(line data.Extra) error {
	var text string
	if err := readField(line, "text", &text); err != nil {
		return err
	}
	ids := t.tokenizer.Encode(text, []int32{})
	t.count(ids, text)
	return writeField(line, "ids", ids)
}

func (t *tokenizeLines) decode(line data.Extra) error {
	var ids []int32
	if err := readField(line, "ids", &ids); err != nil {
		return err
	}
	for _, id := range ids {
		if size := t.tokenizer.Size(); id < 0 || int(id) >= size {
			return fmt.Errorf("field \"ids\": %d: the tokenizer's ids end at %d: decode with the tokenizer that made them", id, size-1)
		}
	}
	text := t.tokenizer.Decode(ids, false)
	t.count(ids, text)
	return writeField(line, "text", text)
}

func (t *tokenizeLines) count(ids []int32, text string) {
	t.lines.Add(1)
	t.tokens.Add(int64(len(ids)))
	t.bytes.Add(int64(len(text)))
}

func readField(line data.Extra, key string, into any) error {
	raw, ok := line[key]
	if !ok {
		return fmt.Errorf("field %q is missing: every line needs it", key)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("field %q: %w", key, data.PlainJSONError(err))
	}
	return nil
}

func writeField(line data.Extra, key string, value any) error {
	text, err := data.Marshal(value)
	line[key] = text
	return err
}
