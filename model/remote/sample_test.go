package remote

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"

	"caper/kernels/sampling"
)

// spoken is a server of an API that keeps the last request and answers with reply.
func spoken(t *testing.T, api API, reply string) (*Server, *http.Request, map[string]any) {
	t.Helper()
	var last http.Request
	request := map[string]any{}
	s, _ := stub(t, func(_ int64, w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		clear(request)
		json.Unmarshal(body, &request)
		last = *r
		io.WriteString(w, reply)
	})
	s.API, s.Attempts = api, 1
	return s, &last, request
}

var drawn = Draw{Prompt: "a b", Tokens: []int32{5, 6}, N: 2, MaxTokens: 9, Rule: sampling.Rule{Temperature: 0.7}, EndTokens: []int32{3}, Seed: 11}

// What each API is asked, as its documentation says, and what is read of its answers.
// vLLM: OpenAI-compatible server, completions, extra parameters. SGLang: native APIs,
// /generate. transformers serve: /v1/completions, whose prompt is a string and whose
// unknown fields are refused.
func TestSample(t *testing.T) {
	for _, c := range []struct {
		name        string
		api         API
		path        string
		asked       string
		reply       string
		want        []Answer
		in, out     int
		absentAsked []string
	}{
		{"vllm", VLLM, "/v1/completions",
			`{"model":"m","prompt":[5,6],"n":2,"max_tokens":9,"temperature":0.7,"top_p":1,"top_k":-1,"min_p":0,"seed":11,"stop_token_ids":[3],"logprobs":1,"return_token_ids":true}`,
			`{"choices":[{"index":0,"text":"x","finish_reason":"stop","token_ids":[7,3],"logprobs":{"tokens":["x",""],"token_logprobs":[-0.5,0]}},
			  {"index":1,"text":"yz","finish_reason":"length","token_ids":[8],"logprobs":{"tokens":["yz"],"token_logprobs":[-2]}}],"usage":{"prompt_tokens":2,"completion_tokens":3}}`,
			[]Answer{{Text: "x", Tokens: []int32{7, 3}, LogProbs: []float32{-0.5, 0}}, {Text: "yz", Tokens: []int32{8}, LogProbs: []float32{-2}, Cut: true}}, 2, 3, nil},
		{"older vllm", VLLM, "/v1/completions", `{}`,
			`{"choices":[{"text":"x","finish_reason":"stop","logprobs":{"tokens":["token_id:7","token_id:3"],"token_logprobs":[-0.5,-1]}}]}`,
			[]Answer{{Text: "x", Tokens: []int32{7, 3}, LogProbs: []float32{-0.5, -1}}}, 0, 0, nil},
		{"sglang", SGLang, "/generate",
			`{"input_ids":[5,6],"return_logprob":true,"sampling_params":{"n":2,"max_new_tokens":9,"temperature":0.7,"top_p":1,"top_k":-1,"min_p":0,"stop_token_ids":[3]}}`,
			`[{"text":"x","output_ids":[7,3],"meta_info":{"finish_reason":{"type":"stop","matched":3},"prompt_tokens":2,"completion_tokens":2,"output_token_logprobs":[[-0.5,7,null],[-1,3,null]]}},
			  {"text":"y","output_ids":[8],"meta_info":{"finish_reason":{"type":"length","length":1},"prompt_tokens":2,"completion_tokens":1,"output_token_logprobs":[[-2,8,null]]}}]`,
			[]Answer{{Text: "x", Tokens: []int32{7, 3}, LogProbs: []float32{-0.5, -1}}, {Text: "y", Tokens: []int32{8}, LogProbs: []float32{-2}, Cut: true}}, 2, 3, nil},
		{"sglang, one", SGLang, "/generate", `{}`,
			`{"text":"x","meta_info":{"finish_reason":{"type":"stop"},"output_token_logprobs":[[-0.5,7,"x"]]}}`,
			[]Answer{{Text: "x", Tokens: []int32{7}, LogProbs: []float32{-0.5}}}, 0, 0, nil},
		{"transformers", Transformers, "/v1/completions",
			`{"model":"m","prompt":"a b","max_tokens":9,"temperature":0.7,"top_p":1,"seed":11,"generation_config":"{\"do_sample\":true,\"eos_token_id\":[3],\"top_k\":0}"}`,
			`{"choices":[{"index":0,"text":"x","finish_reason":"stop"}],"usage":{"prompt_tokens":2,"completion_tokens":2}}`,
			[]Answer{{Text: "x"}}, 2, 2, []string{"n", "top_k", "logprobs", "stop_token_ids"}},
		{"openai", OpenAI, "/v1/completions", `{"model":"m","prompt":"a b","n":2}`,
			`{"choices":[{"text":"x","finish_reason":"stop","logprobs":{"tokens":["x"],"token_logprobs":[-0.5]}},{"text":"y","finish_reason":"stop"},{"text":"not asked for","finish_reason":"stop"}]}`,
			[]Answer{{Text: "x"}, {Text: "y"}}, 0, 0, []string{"top_k", "min_p"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, request, body := spoken(t, c.api, c.reply)
			answers, cost, err := s.Sample(context.Background(), drawn)
			if err != nil || !reflect.DeepEqual(answers, c.want) || cost.TokensIn != c.in || cost.TokensOut != c.out {
				t.Errorf("%+v, %+v, %v\nwant %+v", answers, cost, err, c.want)
			}
			var want map[string]any
			if err := json.Unmarshal([]byte(c.asked), &want); err != nil {
				t.Fatal(err)
			}
			for key, value := range want {
				if !reflect.DeepEqual(body[key], value) {
					t.Errorf("asked %s: %v, want %v", key, body[key], value)
				}
			}
			for _, key := range c.absentAsked {
				if _, there := body[key]; there {
					t.Errorf("asked %s: %v", key, body[key])
				}
			}
			if request.URL.Path != c.path {
				t.Errorf("asked at %s, want %s", request.URL.Path, c.path)
			}
		})
	}
}

// An answer that is wrong leaves the others of its call as they are; a call without any
// answer is garbled.
func TestWrongAnswers(t *testing.T) {
	const right = `{"text":"x","finish_reason":"stop","token_ids":[7],"logprobs":{"token_logprobs":[-1]}}`
	for _, wrong := range []string{
		`{"finish_reason":"stop","token_ids":[7],"logprobs":{"token_logprobs":[-1]}}`,
		`{"text":"x","token_ids":[7],"logprobs":{"token_logprobs":[-1]}}`,
		`{"text":"x","finish_reason":"abort","token_ids":[7],"logprobs":{"token_logprobs":[-1]}}`,
		`{"text":"x","finish_reason":"stop","token_ids":[7,8],"logprobs":{"token_logprobs":[-1]}}`,
		`{"text":"x","finish_reason":"stop","token_ids":[7],"logprobs":{"token_logprobs":[null]}}`,
		`{"text":"x","finish_reason":"stop","token_ids":[7],"logprobs":{"token_logprobs":[0.7]}}`,
	} {
		s, _, _ := spoken(t, VLLM, `{"choices":[`+wrong+`,`+right+`]}`)
		answers, _, err := s.Sample(context.Background(), drawn)
		if err != nil || len(answers) != 2 || answers[0].Wrong == "" || answers[1].Wrong != "" {
			t.Errorf("%s: %+v, %v", wrong, answers, err)
		}
	}
	for api, replies := range map[API][]string{
		VLLM:   {"", "{}", `{"choices":[]}`, `{"choices":[{"token_ids":[1e12]}]}`, "<html>", `{"choices":[` + right},
		SGLang: {"", "[]", `[{"text":5}]`, "[[]]"},
	} {
		for _, reply := range replies {
			s, _, _ := spoken(t, api, reply)
			var failure *CallError
			if answers, _, err := s.Sample(context.Background(), drawn); !errors.As(err, &failure) || failure.Fault != Garbled {
				t.Errorf("%s %q: %+v, %v", api, reply, answers, err)
			}
		}
	}
	s, _, _ := spoken(t, SGLang, `{"text":"x","meta_info":{"finish_reason":{"type":"stop"},"output_token_logprobs":[[-0.5]]}}`)
	if answers, _, err := s.Sample(context.Background(), drawn); err != nil || answers[0].Wrong == "" {
		t.Errorf("%+v, %v", answers, err)
	}
}

func TestRulesThatAnAPIHasNot(t *testing.T) {
	rule := sampling.Rule{Temperature: 1, TopK: 5}
	if err := NewServer("http://x/v1", "m").Check(rule); err == nil || !strings.Contains(err.Error(), "top-k 5") {
		t.Error(err)
	}
	s := NewServer("http://x/v1", "m")
	s.API = VLLM
	if err := s.Check(rule); err != nil {
		t.Error(err)
	}
}

func TestLoad(t *testing.T) {
	for _, c := range []struct {
		api   API
		asked []string
		model string
	}{
		{VLLM, []string{`/collective_rpc {"kwargs":{"weights_path":"/w"},"method":"reload_weights"}`, "/reset_prefix_cache null"}, "m"},
		{SGLang, []string{`/update_weights_from_disk {"model_path":"/w"}`}, "m"},
		{Transformers, []string{"/reset null"}, "/w"},
	} {
		var asked []string
		s, _ := stub(t, func(_ int64, w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			asked = append(asked, r.URL.Path+" "+string(body))
			io.WriteString(w, `{"success":true}`)
		})
		s.API = c.api
		if err := s.Load(context.Background(), "/w"); err != nil || !reflect.DeepEqual(asked, c.asked) || s.Model != c.model {
			t.Errorf("%s: %q, model %s, %v", c.api, asked, s.Model, err)
		}
	}
	s, _, _ := spoken(t, SGLang, `{"success":false,"message":"other shapes"}`)
	if err := s.Load(context.Background(), "/w"); err == nil || !strings.Contains(err.Error(), "other shapes") {
		t.Error(err)
	}
	s.API = OpenAI
	if err := s.Load(context.Background(), "/w"); err == nil || !strings.Contains(err.Error(), "no call that loads weights") {
		t.Error(err)
	}
}

// A cache that cannot be written costs a call, not a run.
func TestCacheThatCannotBeWritten(t *testing.T) {
	s, _ := stub(t, func(_ int64, w http.ResponseWriter, _ *http.Request) { io.WriteString(w, answering("hi")) })
	s.Cache = t.TempDir() + "/file"
	os.WriteFile(s.Cache, nil, 0o666)
	if answers, _, err := s.Ask(context.Background(), hello); err != nil || answers[0] != "hi" {
		t.Errorf("%v, %v", answers, err)
	}
}
