package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"caper/data"
	"caper/model/tokenizer"
)

type tokenizeCommand struct {
	Tokenizer string `help:"tokenizer.json in Hugging Face layout." required:"" type:"path"`
	In        string `help:"JSON Lines with \"text\" (or \"ids\" with --decode)." required:"" type:"path"`
	Out       string `help:"The same lines with \"ids\" (or \"text\")." required:"" type:"path"`
	Decode    bool   `help:"From ids to text; special tokens are kept."`
}

func (c *tokenizeCommand) Help() string {
	return `Example:
  caper tokenize --tokenizer model/tokenizer.json --in texts.jsonl --out ids.jsonl`
}

// Validate checks the flags.
func (c *tokenizeCommand) Validate() error { return checkOutput(c.Out, c.Tokenizer, c.In) }

func (c *tokenizeCommand) Run(ctx context.Context) error {
	k, err := tokenizer.Load(c.Tokenizer)
	if err != nil {
		return err
	}
	return mapLines(ctx, c.In, c.Out, func(line map[string]json.RawMessage) error {
		if c.Decode {
			var ids []int32
			if err := field(line, "ids", &ids); err != nil {
				return err
			}
			for _, id := range ids {
				if id < 0 || int(id) >= k.Size() {
					return fmt.Errorf("field \"ids\": %d: the tokenizer's ids end at %d: decode with the tokenizer that made them", id, k.Size()-1)
				}
			}
			return setField(line, "text", k.Decode(ids, false))
		}
		var text string
		if err := field(line, "text", &text); err != nil {
			return err
		}
		return setField(line, "ids", k.Encode(text, []int32{}))
	})
}

// mapLines applies change to every JSON object of a JSON Lines file and writes the
// results, all or nothing.
func mapLines(ctx context.Context, in, out string, change func(map[string]json.RawMessage) error) error {
	f, err := os.Open(in)
	if err != nil {
		return err
	}
	defer f.Close()
	w, err := data.Create(out)
	if err != nil {
		return err
	}
	defer w.Discard()
	r := bufio.NewReader(f)
	for n := 1; ; n++ {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		text, err := r.ReadBytes('\n')
		if err == io.EOF && len(text) == 0 {
			return w.Commit()
		}
		if err != nil && err != io.EOF {
			return fmt.Errorf("%s:%d: %w", in, n, err)
		}
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		var line map[string]json.RawMessage
		if err := json.Unmarshal(text, &line); err != nil {
			return fmt.Errorf("%s:%d: want a JSON object: %w", in, n, data.PlainJSONError(err))
		}
		if err := change(line); err != nil {
			return fmt.Errorf("%s:%d: %w", in, n, err)
		}
		if err := w.WriteLine(line); err != nil {
			return err
		}
	}
}

func field(line map[string]json.RawMessage, key string, into any) error {
	raw, ok := line[key]
	if !ok {
		return fmt.Errorf("field %q is missing: every line needs it", key)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("field %q: %w", key, data.PlainJSONError(err))
	}
	return nil
}

func setField(line map[string]json.RawMessage, key string, value any) error {
	text, err := data.Marshal(value)
	line[key] = text
	return err
}
