package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"caper/data"
	"caper/model"
	"caper/model/chat"
	"caper/model/generate"
)

// promptReader turns lines into requests.
type promptReader struct {
	model    *model.Model
	request  generate.Request // what all have in common
	chat     bool
	thinking chat.Thinking
	template func() (*chat.Template, error)
	loaded   *chat.Template
}

// promptLine is a line and the request that it makes.
type promptLine struct {
	generate.Request
	fields data.Extra
}

// read takes the prompt from "ids", "messages" or "prompt", whichever is there first.
func (p *promptReader) read(line data.Extra) (promptLine, error) {
	r := promptLine{p.request, line}
	var err error
	r.Prompt, err = p.tokens(line)
	return r, err
}

func (p *promptReader) tokens(line data.Extra) ([]int32, error) {
	if _, ok := line["ids"]; ok {
		return readIDs(line, p.model.Config.Text.Shared().VocabSize)
	}
	k := p.model.Tokenizer
	if k == nil {
		return nil, errors.New("the model folder has no tokenizer.json: give \"ids\"")
	}
	if raw, ok := line["messages"]; ok {
		var messages []chat.Message
		if err := json.Unmarshal(raw, &messages); err != nil {
			return nil, fmt.Errorf("field \"messages\": %w", data.PlainJSONError(err))
		}
		return p.conversation(messages)
	}
	var text string
	if err := readField(line, "prompt", &text); err != nil {
		return nil, err
	}
	if p.chat {
		return p.conversation([]chat.Message{{Role: chat.User, Content: text}})
	}
	return k.EncodeText(text, nil), nil
}

func (p *promptReader) conversation(messages []chat.Message) ([]int32, error) {
	if p.loaded == nil {
		var err error
		if p.loaded, err = p.template(); err != nil {
			return nil, err
		}
	}
	return p.loaded.Encode(p.model.Tokenizer, messages, chat.Options{AddGenerationPrompt: true, Thinking: p.thinking})
}

// write writes a line for each sample.
func (r promptLine) write(writeLine func(any) error, field string, samples []generate.Sample) error {
	for i, s := range samples {
		line := data.Extra{}
		for name, raw := range r.fields {
			line[name] = raw
		}
		for name, value := range map[string]any{
			field: s.Text, "sample": i, "ids": append(r.Prompt[:len(r.Prompt):len(r.Prompt)], s.Tokens...), "prompt_tokens": len(r.Prompt),
			"logprobs": s.LogProbs, "drawn_logprobs": s.Drawn, "finish": s.Finish,
		} {
			if err := writeField(line, name, value); err != nil {
				return err
			}
		}
		if err := writeLine(line); err != nil {
			return err
		}
	}
	return nil
}
