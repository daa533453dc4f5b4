package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"caper/kernels/sampling"
)

// API is what a server speaks beside OpenAI's API.
type API string

const (
	// OpenAI is that API alone: prompts and answers are text.
	OpenAI API = "openai"
	// Transformers is `transformers serve`: text, one answer a call, and a
	// generation_config in place of its defaults, which would keep 50 tokens only.
	Transformers API = "transformers"
	// VLLM takes prompts as tokens and gives tokens and log-probs.
	VLLM API = "vllm"
	// SGLang does so by its own call, /generate. It knows no seed for a call.
	SGLang API = "sglang"
)

// APIs are those there are.
var APIs = []API{OpenAI, Transformers, VLLM, SGLang}

// Draw asks for samples that continue a prompt.
type Draw struct {
	// Prompt is the text, Tokens the same in the model's tokens. Which of them is sent
	// is the API's matter.
	Prompt string
	Tokens []int32
	// N is how many samples are asked for; a server may give fewer.
	N         int
	MaxTokens int // of a sample, the end token among them
	Rule      sampling.Rule
	EndTokens []int32
	// Seed of the call, below 2^31, where the API has one.
	Seed uint32
}

// Answer is one sample.
type Answer struct {
	Text string
	// Tokens drawn and their log-probs, as the server counts them; nil where it gives
	// none. Servers differ in whether the end token is among them, and in whether
	// log-probs are those before or after temperature and filters.
	Tokens   []int32
	LogProbs []float32
	// Cut says that the sample reached MaxTokens.
	Cut bool
	// Wrong says why the answer cannot be used; "" where it can.
	Wrong string
}

// Check says whether the server can draw by a rule.
func (s *Server) Check(r sampling.Rule) error {
	if (s.API == OpenAI || s.API == "") && (r.TopK != 0 || r.MinP != 0) {
		return fmt.Errorf("top-k %d and min-p %g: OpenAI's API has neither: use temperature and top-p, or a server that speaks %v", r.TopK, r.MinP, APIs[1:])
	}
	return r.Check()
}

// Sample draws, and tries again where the whole answer is wrong: at least one answer
// comes, or an error, which is a *CallError or ctx's.
func (s *Server) Sample(ctx context.Context, d Draw) (answers []Answer, cost Cost, err error) {
	url, request, read := s.under("/completions"), s.completion(d), readChoices
	if s.API == SGLang {
		url, request, read = s.beside("/generate"), generation(d), readGenerated
	}
	body, err := json.Marshal(request)
	if err != nil {
		return nil, cost, fmt.Errorf("model server: %w", err)
	}
	cost, err = s.exchange(ctx, s.Timeout, url, body, func(text []byte) (used usage, failure *CallError) {
		answers, used, failure = read(text)
		if failure == nil && len(answers) == 0 {
			failure = garbled("the answer has no samples")
		}
		return used, failure
	})
	if err != nil {
		return nil, cost, err
	}
	return answers[:min(len(answers), d.N)], cost, nil
}

// topP is the rule's, as servers have it: 1 keeps all.
func topP(r sampling.Rule) float64 {
	if r.TopP == 0 {
		return 1
	}
	return r.TopP
}

// completion is a request of OpenAI's completions. What draws tokens is always said:
// servers take what is left out from the model's folder.
func (s *Server) completion(d Draw) map[string]any {
	request := map[string]any{
		"model": s.Model, "prompt": d.Prompt, "max_tokens": d.MaxTokens, "seed": d.Seed, "temperature": d.Rule.Temperature, "top_p": topP(d.Rule),
	}
	switch s.API {
	case Transformers:
		config := map[string]any{"do_sample": d.Rule.Temperature > 0, "top_k": d.Rule.TopK, "eos_token_id": d.EndTokens}
		if d.Rule.MinP > 0 {
			config["min_p"] = d.Rule.MinP
		}
		text, _ := json.Marshal(config)
		request["generation_config"] = string(text)
	case VLLM:
		request["prompt"], request["n"], request["logprobs"] = d.Tokens, d.N, 1
		request["return_token_ids"], request["return_tokens_as_token_ids"] = true, true // newer and older ones
		request["stop_token_ids"], request["top_k"], request["min_p"], request["repetition_penalty"] = d.EndTokens, noneBelow0(d.Rule.TopK), d.Rule.MinP, 1
	default:
		request["n"] = d.N
	}
	return request
}

// generation is a request of SGLang's own call.
func generation(d Draw) map[string]any {
	return map[string]any{
		"input_ids": d.Tokens, "return_logprob": true,
		"sampling_params": map[string]any{
			"n": d.N, "max_new_tokens": d.MaxTokens, "temperature": d.Rule.Temperature, "top_p": topP(d.Rule), "top_k": noneBelow0(d.Rule.TopK),
			"min_p": d.Rule.MinP, "stop_token_ids": d.EndTokens,
		},
	}
}

// noneBelow0 is a top-k of servers that say -1 for all tokens.
func noneBelow0(topK int) int {
	if topK == 0 {
		return -1
	}
	return topK
}

// readChoices reads an answer of completions.
func readChoices(text []byte) ([]Answer, usage, *CallError) {
	var answer struct {
		Choices []struct {
			Index    int
			Text     *string
			Finish   string  `json:"finish_reason"`
			TokenIDs []int32 `json:"token_ids"`
			LogProbs *struct {
				Tokens []string
				Of     []*float32 `json:"token_logprobs"`
			}
		}
		Usage usage
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, usage{}, garbled("%v", err)
	}
	var answers []Answer
	for _, c := range answer.Choices {
		a := Answer{Tokens: c.TokenIDs}
		if c.Text == nil {
			a.Wrong = "no text"
		} else {
			a.Text = *c.Text
		}
		a.finish(c.Finish)
		if c.LogProbs != nil {
			if a.Tokens == nil {
				a.Tokens = namedTokens(c.LogProbs.Tokens)
			}
			a.weigh(c.LogProbs.Of)
		}
		answers = append(answers, a)
	}
	return answers, answer.Usage, nil
}

// namedTokens reads tokens written as token_id:17; nil where they are written otherwise.
func namedTokens(names []string) []int32 {
	tokens := make([]int32, len(names))
	for i, name := range names {
		digits, named := strings.CutPrefix(name, "token_id:")
		id, err := strconv.ParseInt(digits, 10, 32)
		if !named || err != nil {
			return nil
		}
		tokens[i] = int32(id)
	}
	return tokens
}

// readGenerated reads an answer of SGLang: one sample, or a list of them.
func readGenerated(text []byte) ([]Answer, usage, *CallError) {
	type sample struct {
		Text *string
		Meta struct {
			usage
			Finish struct{ Type string } `json:"finish_reason"`
			Tokens [][]json.RawMessage   `json:"output_token_logprobs"` // log-prob, token, text
		} `json:"meta_info"`
	}
	samples := make([]sample, 1)
	var err error
	if strings.HasPrefix(strings.TrimSpace(string(text)), "[") {
		err = json.Unmarshal(text, &samples)
	} else {
		err = json.Unmarshal(text, &samples[0])
	}
	if err != nil {
		return nil, usage{}, garbled("%v", err)
	}
	var answers []Answer
	var used usage
	for _, s := range samples {
		var a Answer
		if s.Text == nil {
			a.Wrong = "no text"
		} else {
			a.Text = *s.Text
		}
		a.finish(s.Meta.Finish.Type)
		logProbs := make([]*float32, len(s.Meta.Tokens))
		a.Tokens = make([]int32, len(s.Meta.Tokens))
		for i, parts := range s.Meta.Tokens {
			if len(parts) < 2 || json.Unmarshal(parts[0], &logProbs[i]) != nil || json.Unmarshal(parts[1], &a.Tokens[i]) != nil {
				a.Wrong = "a token that is none"
			}
		}
		a.weigh(logProbs)
		used.Prompt, used.Completion = s.Meta.Prompt, used.Completion+s.Meta.Completion
		answers = append(answers, a)
	}
	return answers, used, nil
}

// finish takes the reason why the sample ended.
func (a *Answer) finish(reason string) {
	a.Cut = reason == "length"
	if reason != "length" && reason != "stop" {
		a.Wrong = fmt.Sprintf("ended by %q", reason)
	}
}

// weigh takes the log-probs of the tokens, which must be some: servers that give no
// tokens may give log-probs of pieces of text, which are no use.
func (a *Answer) weigh(logProbs []*float32) {
	if a.Tokens == nil {
		return
	}
	const roundingError = 1e-3
	if len(logProbs) != len(a.Tokens) || slices.ContainsFunc(logProbs, func(p *float32) bool { return p == nil || *p > roundingError }) {
		a.Wrong = fmt.Sprintf("%d tokens whose log-probs are not as many numbers below 0", len(a.Tokens))
		return
	}
	for _, p := range logProbs {
		a.LogProbs = append(a.LogProbs, *p)
	}
}
