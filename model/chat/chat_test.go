package chat

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"caper/model/tokenizer"
)

// The golden file holds what the published templates give in jinja2; see
// benchmarks/tokenizer/chat_golden.py.
type goldenLine struct {
	Messages            []Message
	AddGenerationPrompt bool               `json:"add_generation_prompt"`
	EnableThinking      *bool              `json:"enable_thinking"`
	Want                map[string]*string // by template; null where it raises an error
}

func (l goldenLine) options() Options {
	o := Options{AddGenerationPrompt: l.AddGenerationPrompt}
	switch {
	case l.EnableThinking == nil:
	case *l.EnableThinking:
		o.Thinking = ThinkingOn
	default:
		o.Thinking = ThinkingOff
	}
	return o
}

func TestRenderIsTheTemplate(t *testing.T) {
	f, err := os.Open("testdata/golden.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	refused, lines := map[string]int{}, 0
	for scan := bufio.NewScanner(f); scan.Scan(); lines++ {
		var l goldenLine
		if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		for name, want := range l.Want {
			template, err := ByName(name)
			if err != nil {
				t.Fatal(err)
			}
			got, err := template.Render(l.Messages, l.options())
			switch {
			case want == nil && err == nil:
				t.Errorf("line %d: %s renders %q, want an error", lines+1, name, got)
			case want == nil:
				refused[name]++
			case err != nil || got != *want:
				t.Errorf("line %d: %s renders %q, %v, want %q", lines+1, name, got, err, *want)
			}
		}
	}
	if lines != 100 || refused["qwen3.5"] == 0 || refused["qwen3.5"] == lines {
		t.Errorf("%d lines, %v refused", lines, refused)
	}
}

var controls = []string{turnStart, turnEnd, thinkStart, thinkEnd}

func smallTokenizer(t *testing.T) *tokenizer.Tokenizer {
	t.Helper()
	k, err := tokenizer.Train(slices.Values([]string{"user assistant system think SELECT name FROM singer \n\n"}),
		tokenizer.TrainOptions{VocabSize: 300, Added: controls})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// conversations draws conversations that every template takes.
func conversations(content *rapid.Generator[string]) *rapid.Generator[[]Message] {
	return rapid.Custom(func(t *rapid.T) []Message {
		messages := []Message{{Role: User, Content: "q"}}
		if rapid.Bool().Draw(t, "system") {
			messages = slices.Insert(messages, 0, Message{Role: System, Content: content.Draw(t, "system message")})
		}
		for range rapid.IntRange(0, 4).Draw(t, "turns") {
			role := rapid.SampledFrom([]string{User, Assistant}).Draw(t, "role")
			messages = append(messages, Message{Role: role, Content: content.Draw(t, "content")})
			if role == Assistant {
				messages[len(messages)-1].Reasoning = content.Draw(t, "reasoning")
			}
		}
		return messages
	})
}

func optionsOf(t *rapid.T) Options {
	return Options{rapid.Bool().Draw(t, "prompt"), rapid.SampledFrom([]Thinking{DefaultThinking, ThinkingOn, ThinkingOff}).Draw(t, "thinking")}
}

var templates = []*Template{Qwen3, Qwen35, Qwen35Small}

// Where messages spell out no control token, the ids are those of the rendered
// text, as in transformers.
func TestEncodeIsRenderThenEncode(t *testing.T) {
	k := smallTokenizer(t)
	words := rapid.StringOf(rapid.SampledFrom([]rune("SELECT user\n e\u0301<|_>\t")))
	rapid.Check(t, func(t *rapid.T) {
		messages, o := conversations(words).Draw(t, "messages"), optionsOf(t)
		for _, template := range templates {
			text, err := template.Render(messages, o)
			if err != nil {
				t.Fatal(err)
			}
			ids, err := template.Encode(k, messages, o)
			if err != nil {
				t.Fatal(err)
			}
			if want := k.Encode(text, nil); !slices.Equal(ids, want) {
				t.Fatalf("%s: %q encodes as %v, want %v", template.Name(), text, ids, want)
			}
		}
	})
}

// Whatever messages say, the control tokens are those of the same conversation
// about nothing.
func TestMessagesCannotControl(t *testing.T) {
	k := smallTokenizer(t)
	hostile := rapid.Map(rapid.SliceOf(rapid.SampledFrom(append([]string{"x", "\n", "<", "|im_end|>", " "}, controls...))),
		func(parts []string) string { return strings.Join(parts, "") })
	rapid.Check(t, func(t *rapid.T) {
		messages, o := conversations(hostile).Draw(t, "messages"), optionsOf(t)
		for _, template := range templates {
			got, err := template.Encode(k, messages, o)
			if err != nil {
				t.Fatal(err)
			}
			tame := slices.Clone(messages)
			for i, m := range tame {
				// Whether a turn shows reasoning is for the message to say.
				reasoning, _ := separate(m.Reasoning, m.Content)
				tame[i] = Message{Role: m.Role, Content: "x", Reasoning: strings.Repeat("r", min(1, len(reasoning)))}
			}
			want, err := template.Encode(k, tame, o)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(controlIDs(k, got), controlIDs(k, want)) {
				t.Fatalf("%s: control tokens %v of %+v, want %v", template.Name(), controlIDs(k, got), messages, controlIDs(k, want))
			}
		}
	})
}

func controlIDs(k *tokenizer.Tokenizer, ids []int32) []int32 {
	first := int32(k.Size() - len(controls))
	return slices.DeleteFunc(slices.Clone(ids), func(id int32) bool { return id < first })
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		template *Template
		messages []Message
		fault    string
	}{
		{Qwen3, nil, "no messages"},
		{Qwen35, []Message{{Role: Assistant}}, "no message of role user"},
		{Qwen35, []Message{{Role: User}, {Role: System}}, "message 1"},
		{Qwen3, []Message{{Role: "tool"}}, `message 0: role "tool" is not supported`},
	} {
		if _, err := c.template.Render(c.messages, Options{}); err == nil || !strings.Contains(err.Error(), c.fault) || !strings.Contains(err.Error(), c.template.name) {
			t.Errorf("%+v: error %v does not name %s", c.messages, err, c.fault)
		}
	}
	k, err := tokenizer.Train(slices.Values([]string{"x"}), tokenizer.TrainOptions{VocabSize: 256})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Qwen3.Encode(k, []Message{{Role: User}}, Options{}); err == nil || !strings.Contains(err.Error(), turnStart) {
		t.Errorf("a tokenizer without control tokens: %v", err)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "tokenizer_config.json") {
		t.Errorf("empty folder: %v", err)
	}
	for _, c := range []struct{ name, content, fault string }{
		{"tokenizer_config.json", `{"chat_template": 1}`, "no chat_template"},
		{"tokenizer_config.json", `{"chat_template": "{{ messages }}"}`, "qwen3.5-small"},
		{"chat_template.jinja", "{{ messages }}", "qwen3.5-small"},
	} {
		if err := os.WriteFile(filepath.Join(dir, c.name), []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), c.name) || !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s in %s: %v", c.content, c.name, err)
		}
	}
	if _, err := ByName("llama"); err == nil || !strings.Contains(err.Error(), "qwen3.5-small") {
		t.Errorf("unknown name: %v", err)
	}
}
