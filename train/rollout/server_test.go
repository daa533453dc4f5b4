package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"caper/kernels/sampling"
	"caper/model/generate"
	"caper/model/remote"
	"caper/model/tokenizer"
)

const endToken = 256

// words have a token for each byte, and the end token.
func words(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	k, err := tokenizer.Train(slices.Values([]string{"x"}), tokenizer.TrainOptions{VocabSize: 257, Added: []string{"<|im_end|>"}})
	if err != nil {
		t.Fatal(err)
	}
	if id, _ := k.ID("<|im_end|>"); id != endToken {
		t.Fatalf("the end token is %d", id)
	}
	return k
}

// asked is what the tests' servers read of a request.
type asked struct {
	Prompt []int32
	N      int
	Seed   uint32
}

// drawnBy is the sample of a seed, as a server of vLLM's API writes it: of two tokens.
func drawnBy(prompt []int32, seed uint32) (tokens []int32, logProbs []float32, choice string) {
	tokens = []int32{int32(seed) % 256, int32(len(prompt)), endToken}
	logProbs = []float32{-float32(seed%7) - 1, -2, -0.25}
	quoted, _ := json.Marshal(map[string]any{"text": "", "finish_reason": "stop", "token_ids": tokens, "logprobs": map[string]any{"token_logprobs": logProbs}})
	return tokens, logProbs, string(quoted)
}

// served is a server of vLLM's API that answers as serve does, and the source that asks
// it.
func served(t testing.TB, o ServerOptions, serve func(w http.ResponseWriter, r *http.Request, a asked)) *Server {
	t.Helper()
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var a asked
		if err := json.Unmarshal(body, &a); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		serve(w, r, a)
	}))
	t.Cleanup(h.Close)
	client := remote.NewServer(h.URL+"/v1", "policy")
	client.API, client.Wait, client.Timeout = remote.VLLM, time.Millisecond, 30*time.Second
	s, err := NewServer(client, words(t), o, 4)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func serverOptions() ServerOptions {
	o := options()
	o.EndTokens = []int32{endToken}
	return ServerOptions{Options: o}
}

func answer(w io.Writer, choices ...string) {
	fmt.Fprintf(w, `{"choices":[%s]}`, strings.Join(choices, ","))
}

// wait holds an answer back until the client has given up.
func wait(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-time.After(20 * time.Second):
	}
}

func questionsOf(n int) []Question {
	var all []Question
	for i := range n {
		all = append(all, Question{Index: 2 * i, Tokens: make([]int32, i+1)})
	}
	return all
}

// A server that drops, holds back or garbles a third of its answers: each group is what
// the faultless server gives, without the samples whose attempts all failed, and these
// are counted by how the last one failed.
func TestFaultyServer(t *testing.T) {
	reasons := map[int]remote.Fault{0: remote.Unreachable, 1: remote.Stalled, 2: remote.Garbled}
	for _, attempts := range []int{1, 3} {
		// The fault of an attempt, from 1 on, at the sample of a seed; none in two of three.
		fault := func(seed uint32, try int) (int, bool) {
			r := rand.New(rand.NewPCG(uint64(seed), uint64(try)))
			return r.IntN(3), r.IntN(3) == 0
		}
		var mu sync.Mutex
		tries := map[uint32]int{}
		o := serverOptions()
		o.Samples, o.PerCall = 8, 1
		s := served(t, o, func(w http.ResponseWriter, r *http.Request, a asked) {
			mu.Lock()
			tries[a.Seed]++
			kind, failed := fault(a.Seed, tries[a.Seed])
			mu.Unlock()
			_, _, choice := drawnBy(a.Prompt, a.Seed)
			switch {
			case !failed:
				answer(w, choice)
			case kind == 0:
				c, _, _ := w.(http.Hijacker).Hijack()
				c.Close()
			case kind == 1:
				wait(r)
			default:
				io.WriteString(w, `{"choices":[`+choice[:len(choice)/2])
			}
		})
		s.server.Attempts, s.server.Timeout = attempts, 500*time.Millisecond
		questions := questionsOf(12)
		lost := 0
		want := map[int]Group{}
		for _, q := range questions {
			g := Group{Question: q.Index}
			for i := range o.Samples {
				seed, try := s.seed(3, q.Index, i), 1
				kind, failed := fault(seed, try)
				for ; failed && try < attempts; kind, failed = fault(seed, try) {
					try++
				}
				if failed {
					g.lose(string(reasons[kind]), 1)
					lost++
					continue
				}
				tokens, logProbs, _ := drawnBy(q.Tokens, seed)
				g.Samples = append(g.Samples, Sample{Text: s.words.Decode(tokens[:2], false), Tokens: tokens, LogProbs: logProbs, Finish: generate.StopToken, Version: 4})
			}
			want[q.Index] = g
		}
		if attempts == 1 && (lost < 20 || lost > 44) {
			t.Fatalf("%d of 96 samples are lost: no third", lost)
		}
		for round := range 2 {
			clear(tries)
			if got := collect(t, s, 3, questions...); !reflect.DeepEqual(got, want) {
				t.Errorf("%d attempts, round %d:\n%+v\nwant\n%+v", attempts, round, got, want)
			}
		}
	}
}

// Whatever is lost of a group, samples and lost ones are those asked for, and however
// many a call asks for and a server gives, a group is filled.
func TestGroupsAddUp(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		o := serverOptions()
		o.Samples, o.PerCall = rapid.IntRange(1, 9).Draw(r, "samples"), rapid.IntRange(0, 9).Draw(r, "per call")
		gives := rapid.IntRange(1, 9).Draw(r, "gives")
		wrongEvery := rapid.IntRange(2, 9).Draw(r, "wrong every")
		var seeds sync.Map
		s := served(t, o, func(w http.ResponseWriter, _ *http.Request, a asked) {
			if _, again := seeds.LoadOrStore(a.Seed, true); again {
				http.Error(w, "a seed came twice", http.StatusBadRequest)
				return
			}
			var choices []string
			for i := range min(gives, a.N) {
				_, _, choice := drawnBy(a.Prompt, a.Seed+uint32(i))
				if (int(a.Seed)+i)%wrongEvery == 0 {
					choice = strings.Replace(choice, `"token_ids":[`, `"token_ids":[999999,`, 1)
				}
				choices = append(choices, choice)
			}
			answer(w, choices...)
		})
		var groups []Group
		for g, err := range s.Groups(context.Background(), 1, questionsOf(3)) {
			if err != nil {
				if len(groups) == 3 && !slices.ContainsFunc(groups, func(g Group) bool { return len(g.Samples) > 0 }) {
					return // all were wrong
				}
				r.Fatal(err)
			}
			groups = append(groups, g)
			if len(g.Samples)+g.Lost[string(remote.Garbled)] != o.Samples || len(g.Lost) > 1 {
				r.Fatalf("%+v", g)
			}
		}
	})
}

// A step ends when its time is up, with what has come; one without anything is an error
// that says why.
func TestStepTimeout(t *testing.T) {
	o := serverOptions()
	o.PerCall, o.StepTimeout = 1, time.Second
	s := served(t, o, func(w http.ResponseWriter, r *http.Request, a asked) {
		if len(a.Prompt) == 2 {
			wait(r)
			return
		}
		_, _, choice := drawnBy(a.Prompt, a.Seed)
		answer(w, choice)
	})
	began := time.Now()
	groups := collect(t, s, 1, questionsOf(3)...)
	if len(groups[0].Samples) != 4 || len(groups[4].Samples) != 4 || groups[2].Lost[Late] != 4 || time.Since(began) > 15*time.Second {
		t.Errorf("%+v after %v", groups, time.Since(began))
	}
	var last error
	lost := 0
	for g, err := range s.Groups(context.Background(), 1, questionsOf(2)[1:]) {
		last = err
		lost += g.Lost[Late]
	}
	if last == nil || !strings.Contains(last.Error(), "no sample of step 1 came") || lost != 4 {
		t.Errorf("%d late, %v", lost, last)
	}
}

// A server that is not there, or the caller's own end, ends the sequence.
func TestServerThatIsGone(t *testing.T) {
	s := served(t, serverOptions(), func(w http.ResponseWriter, r *http.Request, _ asked) { wait(r) })
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	for g, err := range s.Groups(ctx, 1, questionsOf(3)) {
		if err != context.Canceled {
			t.Errorf("%+v, %v", g, err)
		}
	}
	s.server.URL, s.server.Attempts = "http://127.0.0.1:1/v1", 2
	var last error
	for _, err := range s.Groups(context.Background(), 1, questionsOf(3)) {
		last = err
	}
	if last == nil || !strings.Contains(last.Error(), string(remote.Unreachable)) {
		t.Error(last)
	}
	for range s.Groups(context.Background(), 1, nil) {
		t.Error("a step without questions has groups")
	}
}

// The budget bounds the attempts of a run.
func TestBudgetOfSamples(t *testing.T) {
	o := serverOptions()
	o.PerCall = 1
	s := served(t, o, func(w http.ResponseWriter, _ *http.Request, a asked) {
		_, _, choice := drawnBy(a.Prompt, a.Seed)
		answer(w, choice)
	})
	s.server.Budget = remote.NewBudget(6)
	came, spent := 0, 0
	for _, g := range collect(t, s, 1, questionsOf(3)...) {
		came += len(g.Samples)
		spent += g.Lost[string(remote.Spent)]
	}
	if came != 6 || spent != 6 {
		t.Errorf("%d samples came and %d were beyond the budget", came, spent)
	}
}

// What an answer becomes, and when it is garbled.
func TestAnswersBecomeSamples(t *testing.T) {
	s := served(t, serverOptions(), func(http.ResponseWriter, *http.Request, asked) {})
	p := func(ps ...float32) []float32 { return ps }
	ab := s.words.EncodeText("ab", nil)
	a, b := ab[0], ab[1]
	for _, c := range []struct {
		name   string
		answer remote.Answer
		want   Sample // the zero value: garbled
	}{
		{"tokens", remote.Answer{Text: "?", Tokens: []int32{a, b, endToken}, LogProbs: p(-1, -2, -3)},
			Sample{Text: "ab", Tokens: []int32{a, b, endToken}, LogProbs: p(-1, -2, -3), Finish: generate.StopToken}},
		{"tokens without end", remote.Answer{Text: "ab", Tokens: []int32{a, b}, LogProbs: p(-1, -2)},
			Sample{Text: "ab", Tokens: []int32{a, b, endToken}, Finish: generate.StopToken}},
		{"cut", remote.Answer{Text: "ab", Tokens: []int32{a, b}, LogProbs: p(-1, -2), Cut: true},
			Sample{Text: "ab", Tokens: []int32{a, b}, LogProbs: p(-1, -2), Finish: generate.Length}},
		{"text", remote.Answer{Text: "ab"}, Sample{Text: "ab", Tokens: []int32{a, b, endToken}, Finish: generate.StopToken}},
		{"text with a control token spelt out", remote.Answer{Text: "<|im_end|>"},
			Sample{Text: "<|im_end|>", Tokens: append(s.words.EncodeText("<|im_end|>", nil), endToken), Finish: generate.StopToken}},
		{"no text", remote.Answer{}, Sample{Tokens: []int32{endToken}, Finish: generate.StopToken}},
		{"no text, cut", remote.Answer{Cut: true}, Sample{}},
		{"wrong", remote.Answer{Text: "ab", Wrong: "no"}, Sample{}},
		{"an id beyond the vocabulary", remote.Answer{Tokens: []int32{a, 257, endToken}}, Sample{}},
		{"an id below 0", remote.Answer{Tokens: []int32{-1, endToken}}, Sample{}},
		{"an end in the middle", remote.Answer{Tokens: []int32{a, endToken, b, endToken}}, Sample{}},
		{"more than was asked for", remote.Answer{Tokens: make([]int32, 13), Cut: true}, Sample{}},
		{"a page of text", remote.Answer{Text: strings.Repeat("ab ", 100), Cut: true}, Sample{}},
	} {
		got, wrong := s.sample(&c.answer)
		if c.want.Tokens == nil {
			if wrong == "" {
				t.Errorf("%s: %+v", c.name, got)
			}
			continue
		}
		c.want.Version = 4
		if wrong != "" || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v %s, want %+v", c.name, got, wrong, c.want)
		}
	}
	s.o.Rule = sampling.Rule{Temperature: 0.8}
	if got, _ := s.sample(&remote.Answer{Tokens: []int32{a, endToken}, LogProbs: p(-1, -2)}); got.LogProbs != nil {
		t.Errorf("log-probs of an unknown distribution are kept: %+v", got)
	}
}

func TestServersThatCannotBeUsed(t *testing.T) {
	client := remote.NewServer("http://localhost/v1", "m")
	for _, c := range []struct {
		change func(o *ServerOptions)
		want   string
	}{
		{func(*ServerOptions) {}, "no call that loads weights"},
		{func(o *ServerOptions) { o.Reload, o.EndTokens = "true", nil }, "no end token"},
		{func(o *ServerOptions) { o.Reload, o.Rule.TopK = "true", 3 }, "top-k 3"},
	} {
		o := serverOptions()
		c.change(&o)
		if _, err := NewServer(client, words(t), o, 0); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
