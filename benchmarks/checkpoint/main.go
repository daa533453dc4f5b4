// Command checkpoint measures what loading and saving a real size costs.
//
//	go run ./benchmarks/checkpoint make DIR    a random Qwen3.5-0.8B of BF16, 1.5 GB, in DIR/made
//	go run ./benchmarks/checkpoint check DIR   load it, compute 512 tokens, save it to DIR/saved, load that, compare
//
// check prints the time of each step and the largest memory that the process ever had,
// as a share of the file, and fails where anything differs or that share is mostMemory or
// more. A process of its own, since that memory counts from its start.
package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"caper/engine"
	"caper/kernels/logprob"
	"caper/model"
	"caper/model/decoder"
	"caper/model/qwen35"
	"caper/model/safetensors"
)

func main() {
	commands := map[string]func(dir string) error{"make": makeCheckpoint, "check": check}
	if len(os.Args) != 3 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: checkpoint make|check DIR")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "checkpoint:", err)
		os.Exit(1)
	}
}

// mostMemory is the bound on the largest memory, in sizes of the file: loading and saving
// must not need the weights twice beyond what the model and the mapped file hold.
const mostMemory = 2.2

// config is the text model of Qwen3.5-0.8B.
func config() model.Config {
	c := qwen35.Defaults()
	c.VocabSize, c.HiddenSize, c.IntermediateSize, c.Layers, c.Tied = 248320, 1024, 3584, 24, true
	c.LayerTypes = qwen35.LayerTypes(24, 4)
	c.Heads, c.KVHeads, c.ValueHeads = 8, 2, 16
	return model.Config{Text: c}
}

// makeCheckpoint draws each weight while it is written.
func makeCheckpoint(dir string) error {
	out := filepath.Join(dir, "made")
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	c := config()
	var entries []safetensors.Entry
	for _, p := range c.Weights() {
		e := p.Entry(safetensors.BF16)
		r := engine.Random(1, p.Name, 0, 0)
		e.Fill = func(dst []float32, _ int) error { draw(dst, p, r); return nil }
		entries = append(entries, e)
	}
	if err := safetensors.WriteFolder(out, entries, map[string]string{"format": "pt"}, 0); err != nil {
		return err
	}
	return c.Save(out, safetensors.BF16)
}

func draw(dst []float32, p *decoder.Parameter, r *rand.Rand) {
	for i := range dst {
		dst[i] = float32(p.Init(r))
	}
}

// check runs a checkpoint once through everything.
func check(dir string) error {
	made, saved := filepath.Join(dir, "made"), filepath.Join(dir, "saved")
	info, err := os.Stat(filepath.Join(made, safetensors.SingleName))
	if err != nil {
		return err
	}
	before, err := pass(made, saved)
	if err != nil {
		return err
	}
	after, err := pass(saved, "")
	if err != nil {
		return err
	}
	if !slices.Equal(before, after) {
		return errors.New("the saved model computes something else")
	}
	if err := timed("compare files", func() error { return compare(made, saved) }); err != nil {
		return err
	}
	peak, err := peakMemory()
	if err != nil {
		return err
	}
	fmt.Printf("file %d bytes, largest memory %d bytes: %.3f times the file\n", info.Size(), peak, float64(peak)/float64(info.Size()))
	if float64(peak) >= mostMemory*float64(info.Size()) {
		return fmt.Errorf("largest memory %d bytes: want less than %g times the file's %d", peak, mostMemory, info.Size())
	}
	return nil
}

// pass loads a model, computes log-probs of 512 tokens, and saves the model in the types
// of its file unless out is "".
func pass(dir, out string) (logProbs []float64, err error) {
	var m *model.Model
	if err = timed("load", func() error { m, err = model.Load(dir, engine.CPU(0), model.Frozen); return err }); err != nil {
		return nil, err
	}
	_ = timed("forward", func() error { logProbs = forward(m); return nil })
	if out != "" {
		err = timed("save", func() error { return m.SaveAs(out, model.Format{}) })
	}
	m = nil
	runtime.GC()
	debug.FreeOSMemory()
	return logProbs, err
}

// forward returns the log-probs of 511 tokens of a sequence of 512.
func forward(m *model.Model) []float64 {
	r := rand.New(rand.NewPCG(2, 2))
	tokens, rows := make([]int32, 512), make([]int32, 511)
	for i := range tokens {
		tokens[i] = r.Int32N(248077)
	}
	for i := range rows {
		rows[i] = int32(i)
	}
	tape := engine.NewTape(m.Device())
	tape.Inference = true
	var tree engine.Tree
	tree.AddSegment(-1, tokens)
	x := logprob.Forward(tape, m.Backbone.Hidden(tape, &tree), m.Head.Tensor, rows, tokens[1:])
	values := make([]float64, x.Rows)
	for i := range values {
		values[i] = x.At(i, 0)
	}
	return values
}

func compare(a, b string) error {
	first, err := safetensors.OpenFolder(a)
	if err != nil {
		return err
	}
	defer first.Close()
	second, err := safetensors.OpenFolder(b)
	if err != nil {
		return err
	}
	defer second.Close()
	all, err := safetensors.Compare(context.Background(), first, second, nil)
	for _, d := range all {
		if d.Reason != "" {
			return fmt.Errorf("%s: %s", d.Name, d)
		}
	}
	return err
}

func timed(what string, f func() error) error {
	started := time.Now()
	err := f()
	peak, _ := peakMemory()
	fmt.Printf("%-14s %6.2f s, largest memory so far %d MB\n", what, time.Since(started).Seconds(), peak/1e6)
	return err
}

// peakMemory is the largest resident memory that the process ever had, in bytes.
func peakMemory() (int, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	var kilobytes int
	_, err = fmt.Sscanf(rest, "%d kB", &kilobytes)
	return kilobytes << 10, err
}
