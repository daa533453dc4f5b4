// Command serve checks a model server against the sampler here, on the same weights and
// prompts: greedy answers must be the same texts, and answers drawn at temperature 2 must
// be as probable as those drawn here. A server that filters tokens unasked, as one with
// its own defaults does, draws answers that are more probable.
//
//	go run ./benchmarks/serve -server http://localhost:8000/v1 -api transformers -policy DIR -bench DIR
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"caper/data"
	"caper/engine"
	"caper/kernels/sampling"
	"caper/model"
	"caper/model/generate"
	"caper/model/remote"
	"caper/train/rollout"
)

func main() {
	var c check
	flag.StringVar(&c.url, "server", "http://localhost:8000/v1", "root of the server's API")
	flag.StringVar(&c.api, "api", "transformers", "what it speaks: transformers, vllm or sglang")
	flag.StringVar(&c.policy, "policy", "", "model folder, which is also the model's name there")
	flag.StringVar(&c.bench, "bench", "", "benchmark folder")
	flag.StringVar(&c.split, "split", "train", "whose questions are asked")
	flag.IntVar(&c.questions, "questions", 8, "how many of them")
	flag.IntVar(&c.samples, "samples", 16, "answers to each")
	flag.IntVar(&c.tokens, "tokens", 64, "of an answer, at most")
	flag.Parse()
	if err := c.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

// spread is a temperature at which unlikely tokens are drawn, so that a filter shows.
const spread = 2

type check struct {
	url, api, policy, bench, split string
	questions, samples, tokens     int

	model  *model.Model
	end    int32
	asked  []rollout.Question
	prober *model.LogProber
}

func (c *check) run(ctx context.Context) (err error) {
	if c.model, err = model.Load(c.policy, engine.CPU(0), model.Frozen); err != nil {
		return err
	}
	var known bool
	if c.end, known = c.model.Tokenizer.ID(c.model.Config.EndToken); !known {
		return fmt.Errorf("%s names no end token", c.policy)
	}
	if c.prober, err = model.NewLogProber(c.model, 1024); err != nil {
		return err
	}
	if err := c.read(); err != nil {
		return err
	}
	greedy, err := c.both(ctx, sampling.Rule{}, 1)
	if err != nil {
		return err
	}
	same, all := 0, 0
	for q, theirs := range greedy[1] {
		if len(theirs.Samples) == 0 {
			return fmt.Errorf("question %d: no greedy answer: %v", q, theirs.Lost)
		}
		all++
		if theirs.Samples[0].Text == greedy[0][q].Samples[0].Text {
			same++
		}
	}
	fmt.Printf("greedy answers that are the same: %d of %d\n", same, all)
	drawn, err := c.both(ctx, sampling.Rule{Temperature: spread}, c.samples)
	if err != nil {
		return err
	}
	ours, theirs := c.measure(drawn[0]), c.measure(drawn[1])
	z := (theirs.mean - ours.mean) / math.Hypot(ours.err, theirs.err)
	fmt.Printf("log-prob of an answer: drawn here %.3f +- %.3f (%d answers), there %.3f +- %.3f (%d), z = %.2f\n",
		ours.mean, ours.err, ours.n, theirs.mean, theirs.err, theirs.n, z)
	if same < all || math.Abs(z) > 4 {
		return errors.New("the server draws from another distribution")
	}
	return nil
}

// read reads the questions' prompts.
func (c *check) read() error {
	bench, err := data.OpenBenchmark(c.bench, "auto")
	if err != nil {
		return err
	}
	defer bench.Close()
	questions, err := bench.Questions(c.split)
	if err != nil {
		return err
	}
	for i, q := range questions[:min(len(questions), c.questions)] {
		prompt, err := bench.Prompt(q)
		if err != nil {
			return err
		}
		c.asked = append(c.asked, rollout.Question{Index: i, Prompt: prompt, Tokens: c.model.Tokenizer.EncodeText(prompt, nil)})
	}
	return nil
}

// both draws here and there.
func (c *check) both(ctx context.Context, rule sampling.Rule, samples int) (groups [2]map[int]rollout.Group, err error) {
	o := rollout.Options{Samples: samples, MaxTokens: c.tokens, Rule: rule, EndTokens: []int32{c.end}, Seed: 1, Memory: generate.Options{}}
	here, err := rollout.NewNative(c.model, o, 0)
	if err != nil {
		return groups, err
	}
	client := remote.NewServer(c.url, c.policy)
	client.API = remote.API(c.api)
	there, err := rollout.NewServer(client, c.model.Tokenizer, rollout.ServerOptions{Options: o}, 0)
	if err != nil {
		return groups, err
	}
	for i, source := range []rollout.Source{here, there} {
		groups[i] = map[int]rollout.Group{}
		began, tokens := time.Now(), 0
		for g, err := range source.Groups(ctx, 0, c.asked) {
			if err != nil {
				return groups, err
			}
			groups[i][g.Question] = g
			for _, s := range g.Samples {
				tokens += len(s.Tokens)
			}
			for reason, n := range g.Lost {
				fmt.Printf("question %d: %d answers lost: %s\n", g.Question, n, reason)
			}
		}
		fmt.Printf("%-5s temperature %g: %d questions, %d answers each, %.0f tokens/s\n", [2]string{"here", "there"}[i], rule.Temperature, len(groups[i]), samples,
			float64(tokens)/time.Since(began).Seconds())
	}
	return groups, nil
}

// average is a mean with its standard error.
type average struct {
	mean, err float64
	n         int
}

// measure is the log-prob of answers under the model here. They are taken as the texts
// that a server gives, without special tokens and with broken characters replaced.
func (c *check) measure(groups map[int]rollout.Group) average {
	var sum, squares float64
	var a average
	for q, g := range groups {
		prompt := c.asked[q].Tokens
		for _, s := range g.Samples {
			total := 0.0
			tokens := c.model.Tokenizer.EncodeText(c.model.Tokenizer.Decode(s.Tokens, true), slices.Clone(prompt))
			if s.Finish == generate.StopToken {
				tokens = append(tokens, c.end)
			}
			for _, p := range c.prober.LogProbs([][]int32{tokens})[0][len(prompt)-1:] {
				total += p
			}
			sum, squares, a.n = sum+total, squares+total*total, a.n+1
		}
	}
	n := float64(cmp.Or(a.n, 1))
	a.mean = sum / n
	a.err = math.Sqrt(max(squares/n-a.mean*a.mean, 0) / n)
	return a
}
