package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"caper/data"
	"caper/engine"
	"caper/model"
	"caper/model/qwen35"
	"caper/model/tokenizer"
)

// languageModel saves a small language model with a tokenizer of single bytes, or a
// reward model made of it.
func languageModel(t *testing.T, reward bool) string {
	t.Helper()
	k, err := tokenizer.Train(slices.Values([]string{"SELECT"}), tokenizer.TrainOptions{VocabSize: 260, Added: []string{"<|im_start|>", "<|im_end|>"}})
	if err != nil {
		t.Fatal(err)
	}
	c := qwen35.Defaults()
	c.VocabSize, c.HiddenSize, c.IntermediateSize, c.Layers, c.Tied = 264, 16, 16, 2, true
	c.LayerTypes = qwen35.LayerTypes(2, 2)
	c.Heads, c.KVHeads, c.HeadDim = 2, 1, 8
	c.KeyHeads, c.ValueHeads, c.KeyDim, c.ValueDim, c.InitRange = 1, 2, 8, 8, 0.5
	m, err := model.New(model.Config{Text: c}, engine.CPU(1), 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.SetTokenizer(k); err != nil {
		t.Fatal(err)
	}
	if reward {
		m.ToReward(1)
	}
	dir := filepath.Join(t.TempDir(), "model")
	if err := m.Save(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// sampled is a line that caper generate writes and caper logprobs adds to.
type sampled struct {
	QuestionID   int       `json:"question_id"`
	Prompt       string    `json:"prompt"`
	SQL          string    `json:"sql"`
	Sample       int       `json:"sample"`
	IDs          []int32   `json:"ids"`
	PromptTokens int       `json:"prompt_tokens"`
	LogProbs     []float64 `json:"logprobs"`
	Drawn        []float64 `json:"drawn_logprobs"`
	Finish       string    `json:"finish"`
}

func readSampled(t *testing.T, path string) []sampled {
	t.Helper()
	var lines []sampled
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var s sampled
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, s)
	}
	return lines
}

// Samples keep their prompt's fields and order, do not depend on how many run at a
// time, and their log-probs are those that caper logprobs gives.
func TestGenerate(t *testing.T) {
	dir, folder := languageModel(t, false), t.TempDir()
	in, out, again, probed := filepath.Join(folder, "in"), filepath.Join(folder, "out"), filepath.Join(folder, "again"), filepath.Join(folder, "probed")
	var text strings.Builder
	for i := range 7 {
		fmt.Fprintf(&text, "{\"prompt\":\"%s<|im_end|>\",\"question_id\":%d}\n", strings.Repeat("x", 1+40*i), i)
	}
	writeFile(t, in, text.String())
	flags := []string{"generate", "--model", dir, "--in", in, "--n", "3", "--max-tokens", "20", "--temperature", "0.9", "--seed", "4", "--field", "sql"}
	must(t, append(flags, "--out", out)...)
	must(t, append(flags, "--out", again, "--batch", "2", "--tokens", "512", "--threads", "3")...)
	if a, b := readFile(t, out), readFile(t, again); a != b {
		t.Error("other samples with another batch")
	}
	must(t, "logprobs", "--model", dir, "--ids", out, "--out", probed)
	lines, want := readSampled(t, out), readSampled(t, probed)
	if len(lines) != 21 {
		t.Fatalf("%d lines", len(lines))
	}
	for i, s := range lines {
		tokens := len(s.IDs) - s.PromptTokens
		// An end token in a prompt is text: ten bytes.
		if s.QuestionID != i/3 || s.Sample != i%3 || s.PromptTokens != len(s.Prompt) || tokens != 20 || len(s.LogProbs) != tokens || len(s.Drawn) != tokens || s.Finish != "length" || s.SQL == "" {
			t.Fatalf("line %d: %+v", i, s)
		}
		if len(want[i].LogProbs) != len(s.IDs)-1 {
			t.Fatalf("line %d: %d log-probs for %d ids", i, len(want[i].LogProbs), len(s.IDs))
		}
		for j, x := range s.LogProbs {
			if d := math.Abs(x - want[i].LogProbs[s.PromptTokens-1+j]); !(d <= 1e-4) {
				t.Errorf("line %d, token %d: log-prob %g, caper logprobs says %g", i, j, x, want[i].LogProbs[s.PromptTokens-1+j])
			}
		}
	}
	r := must(t, "generate", "--model", dir, "--prompt", "x", "--temperature", "0", "--n", "2", "--max-tokens", "5")
	if first, second, _ := strings.Cut(r.stdout, "\n"); first == "" || first+"\n" != second {
		t.Errorf("greedy samples of one prompt differ: %q", r.stdout)
	}
}

// A run that was stopped goes on behind what it had, and ends with the same file.
func TestGenerateResumes(t *testing.T) {
	dir, folder := languageModel(t, false), t.TempDir()
	in, whole, out := filepath.Join(folder, "in"), filepath.Join(folder, "whole"), filepath.Join(folder, "out")
	writeFile(t, in, strings.Repeat("{\"ids\":[1,2,3]}\n", 6))
	flags := []string{"generate", "--model", dir, "--in", in, "--n", "2", "--max-tokens", "8", "--out"}
	must(t, append(flags, whole)...)
	lines := slices.Collect(strings.Lines(readFile(t, whole)))
	if lines[0] == lines[2] {
		t.Error("two lines with one prompt got the same samples")
	}
	// What a run leaves that was stopped after two prompts.
	p, err := data.CreatePartial(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines[:4] {
		if err := p.WriteLine(json.RawMessage(strings.TrimSpace(line))); err != nil {
			t.Fatal(err)
		}
	}
	var c commands
	parser, err := kong.New(&c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(append(flags, out)); err != nil {
		t.Fatal(err)
	}
	state := sampleState{Settings: c.Generate.settings(), Lines: 2, Prompts: followed(followed(0, []int32{1, 2, 3}), []int32{1, 2, 3})}
	if err := p.Checkpoint(state); err != nil {
		t.Fatal(err)
	}
	p.Close()
	if r := caper(t, append(flags, out)...); r.status != exitFailed || !strings.Contains(r.stderr, "--resume") {
		t.Errorf("status %d: %s", r.status, r.stderr)
	}
	if r := caper(t, append(flags, out, "--resume", "--seed", "9")...); r.status != exitFailed || !strings.Contains(r.stderr, "other flags") {
		t.Errorf("status %d: %s", r.status, r.stderr)
	}
	must(t, append(flags, out, "--resume")...)
	if readFile(t, out) != readFile(t, whole) {
		t.Error("another file after resuming")
	}
}

func TestGenerateRefusals(t *testing.T) {
	dir, folder := languageModel(t, false), t.TempDir()
	file := func(text string) string { return writeFile(t, filepath.Join(folder, fmt.Sprint(len(text))), text) }
	out := filepath.Join(folder, "out")
	for _, c := range []struct {
		status int
		want   []string
		flags  []string
	}{
		{exitUsage, []string{"--in", "--prompt"}, nil},
		{exitUsage, []string{"--out"}, []string{"--in", dir}},
		{exitUsage, []string{"--temperature -1"}, []string{"--prompt", "x", "--temperature=-1"}},
		{exitUsage, []string{"--top-p 2"}, []string{"--prompt", "x", "--top-p", "2"}},
		{exitUsage, []string{"--n 0"}, []string{"--prompt", "x", "--n", "0"}},
		{exitFailed, []string{"prompt is empty"}, []string{"--prompt", ""}},
		{exitFailed, []string{"cache of 64 tokens"}, []string{"--prompt", "x", "--tokens", "64"}},
		{exitFailed, []string{":2", "ids", "264"}, []string{"--in", file("{\"ids\":[1]}\n{\"ids\":[264]}\n"), "--out", out}},
		{exitFailed, []string{":1", "prompt"}, []string{"--in", file("{}\n"), "--out", out}},
		{exitFailed, []string{":1", "prompt is empty"}, []string{"--in", file("{\"ids\":[]}\n"), "--out", out}},
		{exitFailed, []string{"chat template"}, []string{"--prompt", "x", "--chat"}},
		{exitFailed, []string{"caper score"}, []string{"--model", languageModel(t, true), "--prompt", "x"}},
	} {
		r := caper(t, append([]string{"generate", "--model", dir}, c.flags...)...)
		for _, want := range c.want {
			if r.status != c.status || !strings.Contains(r.stderr, want) {
				t.Errorf("%v: status %d, %s; want %d, %q", c.flags, r.status, r.stderr, c.status, want)
			}
		}
	}
	if left, _ := filepath.Glob(out + "*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	r := caper(t, "logprobs", "--model", dir, "--ids", file("{\"ids\":[1]}\n{\"ids\":[-1]}\n{}\n"), "--out", out)
	if r.status != exitFailed || !strings.Contains(r.stderr, ":2") {
		t.Errorf("logprobs: %s", r.stderr)
	}
}
