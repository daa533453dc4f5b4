// Package chat writes conversations in the form that Qwen's chat models were
// trained on. It gives the text that the model's chat_template.jinja gives in
// transformers, and the ids, with one difference that is on purpose: control
// tokens come from the template alone. "<|im_end|>" in a message is spelt out in
// ordinary tokens and ends nothing, where transformers would end the turn.
//
// The templates are known by name and written in Go (turns.go); Load finds out
// which one a model folder has. Roles are system, user and assistant, contents
// are text: tool calls and pictures are refused.
package chat

import (
	"fmt"
	"strings"

	"caper/model/tokenizer"
)

// Message is one turn of a conversation.
type Message struct {
	Role    string `json:"role"` // one of the constants below
	Content string `json:"content"`
	// Reasoning is what an assistant thought before Content. Where it is empty,
	// what Content holds up to "</think>" counts as reasoning.
	Reasoning string `json:"reasoning_content,omitempty"`
}

// The roles.
const (
	System    = "system"
	User      = "user"
	Assistant = "assistant"
)

// Options say how a conversation ends.
type Options struct {
	// AddGenerationPrompt opens the assistant's next turn, for generation.
	AddGenerationPrompt bool
	// Thinking tells what the opened turn asks of the model.
	Thinking Thinking
}

// Thinking switches a model's reasoning.
type Thinking int

const (
	// DefaultThinking is what the model's template does when nothing is said.
	DefaultThinking Thinking = iota
	// ThinkingOn lets the model reason before it answers.
	ThinkingOn
	// ThinkingOff makes the model answer at once.
	ThinkingOff
)

// part is a piece of a written conversation: a control token or text.
type part struct {
	text    string
	control bool
}

// script is a conversation as it is written. Neighbouring texts are one part,
// because words may merge across the seam.
type script struct{ parts []part }

// add appends text.
func (s *script) add(text string) {
	if last := len(s.parts) - 1; last >= 0 && !s.parts[last].control {
		s.parts[last].text += text
	} else if text != "" {
		s.parts = append(s.parts, part{text: text})
	}
}

// control appends a control token.
func (s *script) control(token string) { s.parts = append(s.parts, part{token, true}) }

// Render returns the conversation as text, for people to read. Control tokens that
// messages spell out look like those of the template; Encode keeps them apart.
func (t *Template) Render(messages []Message, o Options) (string, error) {
	s, err := t.write(messages, o)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, p := range s.parts {
		text.WriteString(p.text)
	}
	return text.String(), nil
}

// Encode returns the conversation as token ids of the model's tokenizer k.
func (t *Template) Encode(k *tokenizer.Tokenizer, messages []Message, o Options) ([]int32, error) {
	s, err := t.write(messages, o)
	if err != nil {
		return nil, err
	}
	var ids []int32
	for _, p := range s.parts {
		if !p.control {
			ids = k.EncodeText(p.text, ids)
			continue
		}
		id, ok := k.ID(p.text)
		if !ok {
			return nil, fmt.Errorf("chat template %s: the tokenizer has no token %q: use the tokenizer.json of a chat model", t.name, p.text)
		}
		ids = append(ids, id)
	}
	return ids, nil
}
