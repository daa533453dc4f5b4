// Command peers exports models and what caper computes with them, for check_export.py
// to repeat with Python's safetensors, transformers and tokenizers.
//
//	go run ./benchmarks/peers OUT          small random models of each kind, and adapters of them
//	go run ./benchmarks/peers OUT FOLDER   the model in FOLDER
//
// Each model lands in a folder under OUT, with the numbers in peers.json.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"caper/engine"
	"caper/kernels/linear"
	"caper/model"
	"caper/model/lora"
	"caper/model/qwen3"
	"caper/model/qwen35"
	"caper/model/tokenizer"
)

func main() {
	if len(os.Args) < 2 || len(os.Args) > 3 {
		fmt.Fprintln(os.Stderr, "usage: peers OUT [FOLDER]")
		os.Exit(2)
	}
	if err := export(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func export(out string, folders []string) error {
	device := engine.CPU(0)
	for _, folder := range folders {
		m, err := model.Load(folder, device, model.Frozen)
		if err != nil {
			return err
		}
		return write(filepath.Join(out, filepath.Base(folder)), m)
	}
	for name, config := range configs() {
		m, err := model.New(config, device, 1)
		if err != nil {
			return err
		}
		k, err := tokenizer.Train(slices.Values(texts), tokenizer.TrainOptions{VocabSize: 320, Added: []string{config.ClauseToken, config.EndToken}})
		if err != nil {
			return err
		}
		if err := m.SetTokenizer(k); err != nil {
			return err
		}
		tame(m)
		folder := filepath.Join(out, name)
		if err := write(folder, m); err != nil {
			return err
		}
		if m, err = adapt(folder, device); err != nil {
			return err
		}
		if err := write(folder+"-adapter", m); err != nil {
			return err
		}
	}
	return nil
}

// adapt loads the model in a folder and puts an adapter on it that matters.
func adapt(folder string, device engine.Device) (*model.Model, error) {
	m, err := model.Load(folder, device, model.Frozen)
	if err != nil {
		return nil, err
	}
	c := lora.Config{Rank: 4, Alpha: 8, Targets: []string{"q_proj", "in_proj_qkv|k_proj", "mlp[.].*"}}
	if err := m.AddAdapter(c, folder, 1); err != nil {
		return nil, err
	}
	for _, p := range m.Adapter.Parameters {
		r := engine.Random(2, p.Name, 0, 0)
		for i := range p.Rows {
			for j := range p.Cols {
				p.Set(i, j, 0.1*r.NormFloat64())
			}
		}
	}
	return m, nil
}

// tame turns the queries of random delta nets towards their keys. Where the two are
// at right angles the delta rule gives almost nothing, the norm behind it magnifies
// rounding a thousandfold, and no two programs agree.
func tame(m *model.Model) {
	for _, p := range m.Params() {
		if strings.HasSuffix(p.Name, "in_proj_qkv.weight") || strings.HasSuffix(p.Name, "conv1d.weight") {
			keys := p.Rows / 4 // in configs: a quarter q, a quarter k, half v
			for i := range keys {
				for j := range p.Cols {
					p.Set(i, j, p.At(i, j)/4+p.At(keys+i, j))
				}
			}
		}
	}
}

// configs returns one small model of each family and kind.
func configs() map[string]model.Config {
	delta := qwen35.Defaults()
	delta.VocabSize, delta.HiddenSize, delta.IntermediateSize, delta.Layers, delta.Tied = 320, 64, 96, 8, true
	delta.LayerTypes = qwen35.LayerTypes(8, 4)
	delta.Heads, delta.KVHeads, delta.HeadDim = 4, 2, 32
	delta.KeyHeads, delta.ValueHeads, delta.KeyDim, delta.ValueDim = 2, 4, 16, 16
	dense := qwen3.Defaults()
	dense.VocabSize, dense.HiddenSize, dense.IntermediateSize, dense.Layers = 320, 64, 96, 4
	dense.LayerTypes = qwen3.LayerTypes(4)
	dense.Heads, dense.KVHeads, dense.HeadDim = 4, 2, 32
	// Larger than usual, so that logits are not all close to zero.
	delta.InitRange, dense.InitRange = 0.1, 0.1
	c := model.Config{ClauseToken: "<|clause|>", EndToken: "<|im_end|>"}
	result := map[string]model.Config{}
	for _, reward := range []bool{false, true} {
		kind := map[bool]string{false: "causal", true: "reward"}[reward]
		c.Reward = reward
		c.Text = delta
		result["qwen35-"+kind] = c
		c.Text = dense
		result["qwen3-"+kind] = c
	}
	return result
}

var texts = []string{
	"SELECT name, count(*) FROM singer JOIN concert ON singer.id = concert.singer_id GROUP BY name ORDER BY 2 DESC LIMIT 3",
	"Which singers older than 20 gave a concert in Zürich?<|clause|>",
	"WITH x AS (SELECT 1) SELECT 'it''s 2024-05-01' FROM x WHERE a <> 1.5e3<|im_end|>",
	"naïve 日本語\n\n  tabs\tand   spaces ",
}

// results is the content of peers.json. Values holds a row per token: its logits, or
// its score alone.
type results struct {
	Texts     []text     `json:"texts"`
	Sequences []sequence `json:"sequences"`
}

type text struct {
	Text string  `json:"text"`
	IDs  []int32 `json:"ids"`
}

// Rounding is how far Values are from those of caper's float64 specification: what
// float32 costs in this model.
type sequence struct {
	IDs      []int32     `json:"ids"`
	Values   [][]float64 `json:"values"`
	Rounding float64     `json:"rounding"`
}

// write saves m with the results for texts and for their ids in a row.
func write(dir string, m *model.Model) error {
	if err := m.Save(dir); err != nil {
		return err
	}
	exact, err := model.Load(dir, engine.Reference(), model.Frozen)
	if err != nil {
		return err
	}
	if m.Tokenizer == nil {
		return fmt.Errorf("%s: no tokenizer.json", dir)
	}
	var r results
	var all []int32
	for _, s := range texts {
		ids := m.Tokenizer.Encode(s, nil)
		all = append(all, ids...)
		r.Texts = append(r.Texts, text{s, ids})
		r.Sequences = append(r.Sequences, compare(m, exact, ids))
	}
	r.Sequences = append(r.Sequences, compare(m, exact, all))
	content, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "peers.json"), content, 0o644)
}

func compare(m, exact *model.Model, ids []int32) sequence {
	s := sequence{IDs: ids, Values: compute(m, ids)}
	for i, row := range compute(exact, ids) {
		for j, x := range row {
			s.Rounding = max(s.Rounding, math.Abs(x-s.Values[i][j]))
		}
	}
	return s
}

// compute returns the logits, or the score, at each token.
func compute(m *model.Model, ids []int32) [][]float64 {
	tape := engine.NewTape(m.Device())
	tape.Inference = true
	var tree engine.Tree
	tree.AddSegment(-1, ids)
	head := m.Head
	if m.Score != nil {
		head = m.Score
	}
	x := linear.Forward(tape, m.Backbone.Hidden(tape, &tree), head.Tensor)
	rows := make([][]float64, x.Rows)
	for i := range rows {
		rows[i] = make([]float64, x.Cols)
		for j := range rows[i] {
			rows[i][j] = x.At(i, j)
		}
	}
	return rows
}
