package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"caper/engine"
	"caper/kernels/sampling"
	"caper/model/generate"
	"caper/model/remote"
	"caper/model/tokenizer"
)

// ServerOptions are how a model server is asked for answers.
type ServerOptions struct {
	Options
	// PerCall is how many answers one call asks for; 0: all of a group. A server that
	// gives fewer is asked again.
	PerCall int
	// StepTimeout is the wall time of all answers of a step, and of handing weights
	// over; 0: half an hour. What has not come then is late.
	StepTimeout time.Duration
	// Folder is where weights are written, each step's in a folder of its own, which the
	// server must see under the same path. Only the newest is kept.
	Folder string
	// Reload makes the server load weights, in place of its API's own call: an address,
	// which is told {"model_path": FOLDER}, or a command of the shell, which finds FOLDER
	// in CAPER_POLICY and may start the server anew.
	Reload string
}

// Late is the reason of samples that a step did not wait for; the others are the
// remote.Fault of their call.
const Late = "late"

// Server samples from a model server. Until the first Update it answers with whatever
// weights the server was started with.
type Server struct {
	o       ServerOptions
	server  *remote.Server
	words   *tokenizer.Tokenizer
	version int
}

var _ Source = (*Server)(nil)

// NewServer returns a source of samples by s, whose weights are taken for those of step
// version. words is the policy's tokenizer, the same as the server's.
func NewServer(s *remote.Server, words *tokenizer.Tokenizer, o ServerOptions, version int) (*Server, error) {
	if err := s.Check(o.Rule); err != nil {
		return nil, err
	}
	if len(o.EndTokens) == 0 {
		return nil, errors.New("no end token: no answer would end")
	}
	if o.Reload == "" && (s.API == remote.OpenAI || s.API == "") {
		return nil, fmt.Errorf("a server of OpenAI's API alone has no call that loads weights: name an API of %v, or a command or address that reloads it", remote.APIs[1:])
	}
	folder, err := filepath.Abs(o.Folder)
	if err != nil {
		return nil, err
	}
	o.Folder, o.StepTimeout = folder, cmp.Or(o.StepTimeout, 30*time.Minute)
	return &Server{o: o, server: s, words: words, version: version}, nil
}

// call asks for samples of one question, or is what came of it.
type call struct {
	place    int // of the question in its step
	first, n int // samples
	Group
	err error // the last one
}

// Groups implements Source. A sample that is lost, late or garbled is missing in its own
// group alone; a step without any sample is an error.
func (s *Server) Groups(ctx context.Context, step int, questions []Question) iter.Seq2[Group, error] {
	return func(yield func(Group, error) bool) {
		within, cancel := context.WithTimeout(ctx, s.o.StepTimeout)
		calls := s.calls(len(questions))
		work, done := make(chan call, len(calls)), make(chan call, len(calls)) // nobody ever waits to put one in
		for _, c := range calls {
			work <- c
		}
		close(work)
		var workers sync.WaitGroup
		for range min(s.server.Concurrency(), len(calls)) {
			workers.Go(func() {
				for c := range work {
					s.ask(within, step, &questions[c.place], &c)
					done <- c
				}
			})
		}
		defer workers.Wait()
		defer cancel()

		came, failure := 0, error(nil)
		parts := make([][]call, len(questions))
		for range calls {
			c := <-done
			if ctx.Err() != nil {
				yield(Group{}, ctx.Err())
				return
			}
			failure = cmp.Or(failure, c.err)
			if parts[c.place] = append(parts[c.place], c); len(parts[c.place]) < len(calls)/len(questions) {
				continue
			}
			g := join(questions[c.place].Index, parts[c.place])
			came += len(g.Samples)
			if !yield(g, nil) {
				return
			}
		}
		if came == 0 && len(calls) > 0 {
			yield(Group{}, fmt.Errorf("no sample of step %d came: %w", step, failure))
		}
	}
}

// calls are those of a step: of the first question first, so that its group is complete
// early.
func (s *Server) calls(questions int) []call {
	most := cmp.Or(s.o.PerCall, s.o.Samples)
	var calls []call
	for place := range questions {
		for first := 0; first < s.o.Samples; first += most {
			calls = append(calls, call{place: place, first: first, n: min(most, s.o.Samples-first)})
		}
	}
	return calls
}

// join makes a group of all calls of its question, whatever order they were answered in.
func join(question int, parts []call) Group {
	slices.SortFunc(parts, func(a, b call) int { return a.first - b.first })
	g := Group{Question: question}
	for _, p := range parts {
		g.Samples = append(g.Samples, p.Samples...)
		for reason, n := range p.Lost {
			g.lose(reason, n)
		}
	}
	return g
}

// ask calls the server until it has given, or failed to give, all samples of c.
func (s *Server) ask(ctx context.Context, step int, q *Question, c *call) {
	for asked := 0; asked < c.n; {
		answers, _, err := s.server.Sample(ctx, remote.Draw{
			Prompt: q.Prompt, Tokens: q.Tokens, N: c.n - asked, MaxTokens: s.o.MaxTokens, Rule: s.o.Rule, EndTokens: s.o.EndTokens,
			Seed: s.seed(step, q.Index, c.first+asked),
		})
		if err != nil {
			reason := Late
			if failure := new(remote.CallError); errors.As(err, &failure) {
				reason = string(failure.Fault)
			}
			c.lose(reason, c.n-asked)
			c.err = err
			return
		}
		asked += len(answers)
		for i := range answers {
			if x, wrong := s.sample(&answers[i]); wrong == "" {
				c.Samples = append(c.Samples, x)
			} else {
				c.lose(string(remote.Garbled), 1)
				c.err = errors.New("model server: a sample with " + wrong)
			}
		}
	}
}

// seed keys the random numbers of a call by the first of its samples.
func (s *Server) seed(step, question, sample int) uint32 {
	return engine.Random(s.o.Seed, "rollout", uint64(step)<<32|uint64(uint32(question)), uint64(sample)).Uint32() >> 1
}

// sample takes an answer for a sample of the policy, or says what is wrong with it.
func (s *Server) sample(a *remote.Answer) (x Sample, wrong string) {
	if a.Wrong != "" {
		return x, a.Wrong
	}
	x = Sample{Text: a.Text, Tokens: a.Tokens, LogProbs: a.LogProbs, Finish: generate.StopToken, Version: s.version}
	if a.Cut {
		x.Finish = generate.Length
	}
	longest := s.o.MaxTokens
	if x.Tokens == nil {
		x.Tokens = s.words.EncodeText(x.Text, nil)
		longest *= 2 // a text may have shorter tokenizations than that which was drawn, hardly longer ones
	}
	ended := len(x.Tokens) > 0 && slices.Contains(s.o.EndTokens, x.Tokens[len(x.Tokens)-1])
	if !a.Cut && !ended { // servers that keep the end token to themselves
		x.Tokens, x.LogProbs = append(x.Tokens, s.o.EndTokens[0]), nil
		ended = true
	}
	body := x.Tokens
	if ended {
		body = body[:len(body)-1]
	}
	outside := func(id int32) bool { return id < 0 || int(id) >= s.words.Size() || slices.Contains(s.o.EndTokens, id) }
	switch {
	case len(x.Tokens) == 0 || len(x.Tokens) > longest:
		return x, fmt.Sprintf("%d tokens", len(x.Tokens))
	case slices.ContainsFunc(body, outside):
		return x, "tokens that are none of the policy's, or go on behind the end"
	}
	if a.Tokens != nil {
		x.Text = s.words.Decode(body, false)
	}
	if !plain(s.o.Rule) {
		x.LogProbs = nil
	}
	return x, ""
}

// plain says that tokens are drawn from the model's own distribution. Only then do
// servers agree on what a log-prob is: with temperature or filters some give the model's,
// and some that of the distribution drawn from.
func plain(r sampling.Rule) bool {
	return r.Temperature == 1 && r.TopK == 0 && (r.TopP == 0 || r.TopP == 1) && r.MinP == 0
}

func isAddress(reload string) bool {
	return strings.HasPrefix(reload, "http://") || strings.HasPrefix(reload, "https://")
}
