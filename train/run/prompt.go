package run

import (
	"caper/data"
	"caper/model"
	"caper/model/chat"
)

// Prompter returns what turns a question into what a policy reads before its answer: the
// benchmark's prompt as text, or, where chatFolder names the model's folder, as what a
// user says in the chat template there, without thinking.
func Prompter(bench *data.Benchmark, m *model.Model, chatFolder string) (func(data.Question) ([]int32, error), error) {
	if chatFolder == "" {
		return func(q data.Question) ([]int32, error) {
			text, err := bench.Prompt(q)
			return m.Tokenizer.EncodeText(text, nil), err
		}, nil
	}
	template, err := chat.Load(chatFolder)
	if err != nil {
		return nil, err
	}
	return func(q data.Question) ([]int32, error) {
		text, err := bench.Prompt(q)
		if err != nil {
			return nil, err
		}
		return template.Encode(m.Tokenizer, []chat.Message{{Role: chat.User, Content: text}},
			chat.Options{AddGenerationPrompt: true, Thinking: chat.ThinkingOff})
	}, nil
}
