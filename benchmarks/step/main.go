// Command step times whole training steps - forward, backward, AdamW - of a small
// hybrid model here and in PyTorch with transformers, in turn, on the same weights and
// tokens:
//
//	lm      4 sequences of 512 tokens, next-token loss
//	pairs   4 preference pairs of 24 tokens a side on one prompt of 400: here one packed tree
//	        of 592 tokens, there 8 whole sequences
//	share   the same, and 8 samples of 64 tokens on a prompt of 1,024: here with and without
//	        sharing the prompt
//
// lm and pairs run in float32 against PyTorch eager and compiled, and in bf16 against
// PyTorch's autocast. Machines change their speed from minute to minute, so the sides
// alternate and ratios are of steps next to each other: their median over the rounds
// stands in the last column. Losses are printed because equal ones show that both sides
// do the same.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"caper/engine"
	"caper/model"
	"caper/model/qwen35"
)

func main() {
	var o options
	flag.StringVar(&o.out, "out", "out/step", "folder for the models")
	flag.StringVar(&o.python, "python", ".venv/bin/python", "Python with torch and transformers; empty: only this side")
	flag.IntVar(&o.threads, "threads", runtime.NumCPU(), "threads of both sides")
	flag.IntVar(&o.rounds, "rounds", 5, "timed rounds, after one to warm up")
	tasks := flag.String("tasks", "lm,pairs,share", "what to time")
	flag.BoolVar(&o.compile, "compile", true, "PyTorch compiled, too")
	flag.Parse()
	if err := run(o, strings.Split(*tasks, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "step:", err)
		os.Exit(1)
	}
}

type options struct {
	out, python     string
	threads, rounds int
	compile         bool
}

// precisions are those in which a task runs here, with PyTorch's modes to compare.
func (o options) precisions() []precision {
	float32s := precision{"fp32", engine.CPU(o.threads), []string{"eager"}}
	if o.compile {
		float32s.modes = append(float32s.modes, "compile")
	}
	return []precision{float32s, {"bf16", engine.CPU(o.threads, engine.WithPrecision(engine.BFloat16)), []string{"bf16"}}}
}

type precision struct {
	name   string
	device engine.Device
	modes  []string
}

// shape is the model: Qwen3.5 with three gated delta nets and one full attention, 4.7
// million weights, about 30 MFLOP a token.
func shape() qwen35.Config {
	c := qwen35.Defaults()
	c.VocabSize, c.HiddenSize, c.IntermediateSize, c.Layers = 4096, 256, 768, 4
	c.Heads, c.KVHeads, c.HeadDim = 4, 2, 64
	c.KeyHeads, c.ValueHeads, c.KeyDim, c.ValueDim = 4, 4, 64, 64
	c.LayerTypes = qwen35.LayerTypes(c.Layers, 4)
	c.Tied = true
	return c
}

func run(o options, tasks []string) error {
	folder := filepath.Join(o.out, "model")
	if err := writeModels(folder); err != nil {
		return err
	}
	var other *peer
	if o.python != "" {
		var err error
		if other, err = startPeer(o.python, folder, o.threads); err != nil {
			return err
		}
		defer other.stop()
	}
	for _, task := range tasks {
		var err error
		switch task {
		case "lm":
			err = languageModel(o, folder, other)
		case "pairs":
			err = pairs(o, folder, other)
		case "share":
			err = sharing(o, folder)
		default:
			err = fmt.Errorf("task %q: want lm, pairs or share", task)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", task, err)
		}
	}
	return nil
}

// writeModels writes the language model, and beside it the reward model that the
// pairs train.
func writeModels(folder string) error {
	for _, reward := range []bool{false, true} {
		m, err := model.New(model.Config{Text: shape(), Reward: reward}, engine.CPU(0), 1)
		if err != nil {
			return err
		}
		dir := folder
		if reward {
			dir += "-reward"
		}
		if err := m.Save(dir); err != nil {
			return err
		}
	}
	return nil
}

// side is one way to run a task's step.
type side struct {
	name string
	step func() (seconds, loss float64, err error)
	unit float64 // tokens, or pairs, a step
}

func ours(name string, t *trainer, unit float64) side {
	return side{name, func() (float64, float64, error) {
		s, l := t.timed()
		return s, l, nil
	}, unit}
}

func theirs(p *peer, task string, modes []string, sequences [][]int32, unit float64) []side {
	var sides []side
	for _, mode := range modes {
		if p == nil {
			break
		}
		sides = append(sides, side{"PyTorch " + mode, func() (float64, float64, error) { return p.step(task, mode, sequences) }, unit})
	}
	return sides
}

func languageModel(o options, folder string, other *peer) error {
	var sequences [][]int32
	for i := range 4 {
		sequences = append(sequences, shared{1, 0, 512}.sequences(shape().VocabSize, uint64(i))...)
	}
	for _, p := range o.precisions() {
		m, err := model.Load(folder, p.device)
		if err != nil {
			return err
		}
		t := newTrainer(m, sequences, false)
		t.predict(sequences, 1)
		fmt.Printf("lm, %s: 4 sequences of 512 tokens\n", p.name)
		sides := append([]side{ours(p.device.Name(), t, 4*512)}, theirs(other, "lm", p.modes, sequences, 4*512)...)
		if err := compare(o, "tokens", sides); err != nil {
			return err
		}
	}
	return nil
}

func pairs(o options, folder string, other *peer) error {
	sequences := shared{8, 400, 24}.sequences(shape().VocabSize, 1)
	for _, p := range o.precisions() {
		m, err := model.Load(folder+"-reward", p.device)
		if err != nil {
			return err
		}
		t := newTrainer(m, sequences, true)
		t.prefer(sequences)
		fmt.Printf("pairs, %s: 4 pairs of 24 tokens a side on a prompt of 400\n", p.name)
		sides := append([]side{ours(p.device.Name(), t, 4)}, theirs(other, "pairs", p.modes, sequences, 4)...)
		if err := compare(o, "pairs", sides); err != nil {
			return err
		}
	}
	return nil
}

// sharing times each batch as a tree and as separate sequences, in turn.
func sharing(o options, folder string) error {
	device := engine.CPU(o.threads)
	for _, c := range []struct {
		name  string
		batch shared
		model string
		setup func(*trainer, [][]int32)
	}{
		{"12 tuples' sides", shared{12, 400, 24}, folder + "-reward", (*trainer).prefer},
		{"8 samples, loss on the samples", shared{8, 1024, 64}, folder, func(t *trainer, s [][]int32) { t.predict(s, 1024) }},
		{"8 samples, loss on all tokens", shared{8, 1024, 64}, folder, func(t *trainer, s [][]int32) { t.predict(s, 1) }},
	} {
		separate, tree := c.batch.tokens()
		fmt.Printf("share: %s: %d tokens as %d, ratio %.2f\n", c.name, separate, tree, float64(separate)/float64(tree))
		sequences := c.batch.sequences(shape().VocabSize, 1)
		var sides []side
		for _, share := range []bool{true, false} {
			m, err := model.Load(c.model, device)
			if err != nil {
				return err
			}
			t := newTrainer(m, sequences, share)
			c.setup(t, sequences)
			sides = append(sides, ours(map[bool]string{true: "one tree", false: "separate"}[share], t, float64(separate)))
		}
		if err := compare(o, "tokens", sides); err != nil {
			return err
		}
	}
	return nil
}

// compare runs the sides in turn, and prints for each its median rate and how many
// times as long as the first one's its steps took.
func compare(o options, unit string, sides []side) error {
	seconds := make([][]float64, len(sides))
	ratios := make([][]float64, len(sides))
	losses := make([]float64, len(sides))
	failed := make([]error, len(sides))
	for round := range o.rounds + 1 {
		for i, s := range sides {
			if failed[i] != nil {
				continue
			}
			took, loss, err := s.step()
			if err != nil {
				if i == 0 {
					return err
				}
				failed[i] = err
				continue
			}
			if losses[i] = loss; round == 0 {
				continue
			}
			seconds[i] = append(seconds[i], took)
			ratios[i] = append(ratios[i], took/seconds[0][round-1])
		}
	}
	for i, s := range sides {
		if failed[i] != nil {
			fmt.Printf("  %-16s %v\n", s.name, failed[i])
			continue
		}
		fmt.Printf("  %-16s %10.1f %s/s  %8.4f s  loss %.5f  %6.2f times ours\n",
			s.name, s.unit/median(seconds[i]), unit, median(seconds[i]), losses[i], median(ratios[i]))
	}
	return nil
}

func median(x []float64) float64 {
	sorted := slices.Sorted(slices.Values(x))
	return sorted[len(sorted)/2]
}
