// Command generate times generation here and with transformers' generate, in turn, on
// the same weights and prompts:
//
//	prompts  32 sequences of their own prompts of 64 tokens
//	group    32 samples of one prompt of 1,024 tokens, as rollouts of a policy are:
//	         transformers computes the prompt 32 times
//
// Each continues by 128 tokens. A run with one new token tells how long the prompts
// take; "decode" is what the other tokens take. Greedy tokens of both sides must be
// the same. Machines change their speed from minute to minute, so the sides alternate
// and ratios are of runs next to each other: their median stands in the last column.
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	"caper/engine"
	"caper/kernels/sampling"
	"caper/model"
	"caper/model/generate"
	"caper/model/qwen35"
)

const samples, newTokens = 32, 128

func main() {
	out := flag.String("out", "out/generate", "folder for the model")
	python := flag.String("python", ".venv/bin/python", "Python with torch and transformers; empty: only this side")
	threads := flag.Int("threads", runtime.NumCPU(), "threads of both sides")
	rounds := flag.Int("rounds", 5, "timed rounds, after one to warm up")
	flag.Parse()
	if err := run(*out, *python, *threads, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// shape is the model of benchmarks/step.
func shape() qwen35.Config {
	c := qwen35.Defaults()
	c.VocabSize, c.HiddenSize, c.IntermediateSize, c.Layers = 8192, 256, 768, 4
	c.Heads, c.KVHeads, c.HeadDim = 4, 2, 64
	c.KeyHeads, c.ValueHeads, c.KeyDim, c.ValueDim = 4, 4, 64, 64
	c.LayerTypes = qwen35.LayerTypes(c.Layers, 4)
	c.Tied, c.InitRange = true, 0.05 // logits far enough apart for greedy tokens to agree
	return c
}

// side continues prompts by so many tokens. samples is how many of each prompt.
type side func(prompts [][]int32, samples, tokens int, greedy bool) (seconds float64, continuations [][]int32, err error)

func run(out, python string, threads, rounds int) error {
	m, err := model.New(model.Config{Text: shape()}, engine.CPU(threads), 1)
	if err != nil {
		return err
	}
	folder := filepath.Join(out, "model")
	if err := m.Save(folder); err != nil {
		return err
	}
	sides := []side{ours(m)}
	if python != "" {
		theirs, stop, err := peer(python, folder, threads)
		if err != nil {
			return err
		}
		defer stop()
		sides = append(sides, theirs)
	}
	fmt.Printf("%d samples, %d new tokens, %d threads, %s: tokens/s\n", samples, newTokens, threads, m.Device().Name())
	fmt.Printf("%-10s%-10s%14s%14s%10s\n", "", "", "caper", "transformers", "ratio")
	for _, task := range []struct {
		name    string
		prompts [][]int32
	}{{"prompts", prompts(samples, 64)}, {"group", prompts(1, 1024)}} {
		if err := compare(task.name, task.prompts, sides, rounds); err != nil {
			return err
		}
	}
	return nil
}

func prompts(n, length int) [][]int32 {
	r := engine.Random(1, "prompts", uint64(n), uint64(length))
	all := make([][]int32, n)
	for i := range all {
		for range length {
			all[i] = append(all[i], r.Int32N(8192))
		}
	}
	return all
}

// compare times one task on all sides.
func compare(name string, prompts [][]int32, sides []side, rounds int) error {
	each := samples / len(prompts)
	var greedy [][]int32
	for i, s := range sides { // warms up, too
		_, tokens, err := s(prompts, each, newTokens, true)
		if err != nil {
			return err
		}
		if i > 0 {
			fmt.Printf("%-10s%s\n", name, agreement(greedy, tokens))
		}
		greedy = tokens
	}
	times := map[string][][]float64{} // by what is timed: by round, by side
	for range rounds {
		var whole, decode []float64
		for _, s := range sides {
			first, _, err := s(prompts, each, 1, false)
			if err != nil {
				return err
			}
			all, _, err := s(prompts, each, newTokens, false)
			if err != nil {
				return err
			}
			whole, decode = append(whole, all), append(decode, all-first)
		}
		times["whole"], times["decode"] = append(times["whole"], whole), append(times["decode"], decode)
	}
	for _, what := range []string{"whole", "decode"} {
		tokens := map[string]float64{"whole": samples * newTokens, "decode": samples * (newTokens - 1)}[what]
		fmt.Printf("%-10s%-10s", name, what)
		for i := range sides {
			fmt.Printf("%14.0f", tokens/median(times[what], func(r []float64) float64 { return r[i] }))
		}
		if len(sides) > 1 {
			fmt.Printf("%10.2f", median(times[what], func(r []float64) float64 { return r[1] / r[0] }))
		}
		fmt.Println()
	}
	return nil
}

// agreement says how far two sides' greedy tokens are the same: where two logits are
// as good as equal, rounding decides.
func agreement(a, b [][]int32) string {
	same := 0
	for i := range a {
		if slices.Equal(a[i], b[i]) {
			same++
		}
	}
	return fmt.Sprintf("greedy continuations that are the same: %d of %d", same, len(a))
}

func median(rounds [][]float64, of func([]float64) float64) float64 {
	sorted := slices.SortedFunc(func(yield func(float64) bool) {
		for _, r := range rounds {
			if !yield(of(r)) {
				return
			}
		}
	}, cmp.Compare)
	return sorted[len(sorted)/2]
}

func ours(m *model.Model) side {
	g, err := generate.New(m, generate.Options{})
	return func(prompts [][]int32, n, tokens int, greedy bool) (float64, [][]int32, error) {
		if err != nil {
			return 0, nil, err
		}
		var requests []generate.Request
		for i, p := range prompts {
			r := generate.Request{Prompt: p, Samples: n, MaxTokens: tokens, Stream: uint64(i)}
			if !greedy {
				r.Rule = sampling.Rule{Temperature: 1}
			}
			requests = append(requests, r)
		}
		started := time.Now()
		results, err := g.Generate(context.Background(), requests)
		seconds := time.Since(started).Seconds()
		var all [][]int32
		for _, r := range results {
			for _, s := range r.Samples {
				all = append(all, s.Tokens)
			}
		}
		return seconds, all, err
	}
}

// peer starts peer.py.
func peer(python, folder string, threads int) (s side, stop func() error, err error) {
	process := exec.Command(python, "benchmarks/generate/peer.py", folder, strconv.Itoa(threads))
	process.Stderr = os.Stderr
	in, err := process.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := process.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := process.Start(); err != nil {
		return nil, nil, fmt.Errorf("%w: name the Python of benchmarks/peers/requirements.txt with -python", err)
	}
	to, from := json.NewEncoder(in), bufio.NewReader(out)
	stop = func() error { return errors.Join(in.Close(), process.Wait()) }
	return func(prompts [][]int32, n, tokens int, greedy bool) (float64, [][]int32, error) {
		var all [][]int32
		for _, p := range prompts {
			for range n {
				all = append(all, p)
			}
		}
		if err := to.Encode(map[string]any{"prompts": all, "new": tokens, "greedy": greedy}); err != nil {
			return 0, nil, err
		}
		line, err := from.ReadBytes('\n')
		if err != nil {
			return 0, nil, fmt.Errorf("peer.py ended: %w", err)
		}
		var answer struct {
			Seconds float64
			Tokens  [][]int32
		}
		err = json.Unmarshal(line, &answer)
		return answer.Seconds, answer.Tokens, err
	}, stop, nil
}
