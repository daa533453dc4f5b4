package chat

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// Template is the chat template of a family of models.
type Template struct {
	name string
	// turn writes message i of a conversation whose last question is message
	// lastQuery.
	turn func(s *script, messages []Message, i, lastQuery int)
	// strict templates refuse conversations without a question and system
	// messages after the first.
	strict bool
	// on, off and otherwise write the opening of the assistant's next turn.
	on, off, otherwise func(s *script)
}

// The published templates.
var (
	// Qwen3 is that of the hybrid Qwen3 models, 0.6B to 32B. They think unless
	// told not to.
	Qwen3 = &Template{name: "qwen3", turn: turnQwen3, on: nothing, off: emptyThought, otherwise: nothing}
	// Qwen35 is that of Qwen3.5 models of 4B and more, which think unless told
	// not to.
	Qwen35 = &Template{name: "qwen3.5", turn: turnQwen35, strict: true, on: openThought, off: emptyThought, otherwise: openThought}
	// Qwen35Small is that of Qwen3.5 models of 2B and less, which do not think
	// unless told to.
	Qwen35Small = &Template{name: "qwen3.5-small", turn: turnQwen35, strict: true, on: openThought, off: emptyThought, otherwise: emptyThought}
)

// Name returns the name by which ByName finds the template.
func (t *Template) Name() string { return t.name }

const (
	turnStart  = "<|im_start|>"
	turnEnd    = "<|im_end|>"
	thinkStart = "<think>"
	thinkEnd   = "</think>"
)

// nothing leaves it to the model whether it opens a thought.
func nothing(*script) {}

// openThought makes the model think.
func openThought(s *script) {
	s.control(thinkStart)
	s.add("\n")
}

// emptyThought makes the model believe that it has thought.
func emptyThought(s *script) { thought(s, "") }

func thought(s *script, reasoning string) {
	s.control(thinkStart)
	s.add("\n" + reasoning + "\n")
	s.control(thinkEnd)
	s.add("\n\n")
}

// write writes a conversation.
func (t *Template) write(messages []Message, o Options) (*script, error) {
	lastQuery, err := t.check(messages)
	if err != nil {
		return nil, fmt.Errorf("chat template %s: %w", t.name, err)
	}
	s := new(script)
	for i, m := range messages {
		s.control(turnStart)
		s.add(m.Role + "\n")
		t.turn(s, messages, i, lastQuery)
		s.control(turnEnd)
		s.add("\n")
	}
	if o.AddGenerationPrompt {
		s.control(turnStart)
		s.add(Assistant + "\n")
		switch o.Thinking {
		case ThinkingOn:
			t.on(s)
		case ThinkingOff:
			t.off(s)
		default:
			t.otherwise(s)
		}
	}
	return s, nil
}

// check refuses what the template cannot write, and finds the last question: the
// last message of a user that is not a tool's answer, else the last message.
func (t *Template) check(messages []Message) (lastQuery int, err error) {
	if len(messages) == 0 {
		return 0, errors.New("no messages: a conversation has at least a user's")
	}
	lastQuery = -1
	for i, m := range messages {
		switch m.Role {
		case System:
			if t.strict && i > 0 {
				return 0, fmt.Errorf("message %d: a system message must be the first", i)
			}
		case User:
			content := m.Content
			if t.strict {
				content = trim(content)
			}
			if !strings.HasPrefix(content, "<tool_response>") || !strings.HasSuffix(content, "</tool_response>") {
				lastQuery = i
			}
		case Assistant:
		default:
			return 0, fmt.Errorf("message %d: role %q is not supported: use %s, %s or %s", i, m.Role, System, User, Assistant)
		}
	}
	if lastQuery < 0 {
		if t.strict {
			return 0, fmt.Errorf("no message of role %s asks anything", User)
		}
		lastQuery = len(messages) - 1
	}
	return lastQuery, nil
}

// turnQwen3 writes contents as they are. Reasoning is kept behind the last
// question only; the last turn shows it even where there is none.
func turnQwen3(s *script, messages []Message, i, lastQuery int) {
	m := messages[i]
	if m.Role != Assistant {
		s.add(m.Content)
		return
	}
	reasoning, content := separate(m.Reasoning, m.Content)
	if i > lastQuery && (i == len(messages)-1 || reasoning != "") {
		thought(s, strings.Trim(reasoning, "\n"))
		content = strings.TrimLeft(content, "\n")
	}
	s.add(content)
}

// turnQwen35 writes contents without the white space around them. Every turn
// behind the last question shows its reasoning, even where there is none.
func turnQwen35(s *script, messages []Message, i, lastQuery int) {
	m := messages[i]
	if m.Role != Assistant {
		s.add(trim(m.Content))
		return
	}
	reasoning, content := separate(m.Reasoning, trim(m.Content))
	if i > lastQuery {
		thought(s, trim(reasoning))
	}
	s.add(content)
}

// separate takes the reasoning out of a content that holds it, unless it is given.
func separate(reasoning, content string) (string, string) {
	end := strings.Index(content, thinkEnd)
	if reasoning != "" || end < 0 {
		return reasoning, content
	}
	reasoning = strings.TrimRight(content[:end], "\n")
	if start := strings.LastIndex(reasoning, thinkStart); start >= 0 {
		reasoning = reasoning[start+len(thinkStart):]
	}
	content = content[strings.LastIndex(content, thinkEnd)+len(thinkEnd):]
	return strings.TrimLeft(reasoning, "\n"), strings.TrimLeft(content, "\n")
}

// trim is Python's strip, which jinja uses: it takes the four ASCII separators for
// white space too.
func trim(text string) string {
	return strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r >= 0x1C && r <= 0x1F })
}
