// Package toy makes what tests of policy runs start from: a benchmark of three questions to
// each of two databases, a policy that has half learned to answer them, and a reward model
// of random scores.
package toy

import (
	stdsql "database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	_ "github.com/mattn/go-sqlite3" // makes the databases

	"caper/data"
	"caper/engine"
	"caper/kernels/adamw"
	"caper/kernels/gradnorm"
	"caper/kernels/logprob"
	"caper/model"
	"caper/model/qwen35"
	"caper/model/tokenizer"
)

// World names the folders.
type World struct{ Bench, Policy, PRM string }

// Make makes them below dir.
func Make(dir string) (World, error) {
	w := World{filepath.Join(dir, "bench"), filepath.Join(dir, "policy"), filepath.Join(dir, "prm")}
	if err := writeBench(w.Bench); err != nil {
		return w, err
	}
	return w, writeModels(w)
}

func writeBench(dir string) error {
	type question struct {
		DB       string `json:"db_id"`
		Question string `json:"question"`
		Query    string `json:"query"`
	}
	var questions []question
	for _, d := range []struct{ id, table, name, number string }{{"zoo", "animal", "species", "weight"}, {"port", "ship", "flag", "size"}} {
		folder := filepath.Join(dir, "database", d.id)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		db, err := stdsql.Open("sqlite3", filepath.Join(folder, d.id+".sqlite"))
		if err != nil {
			return err
		}
		_, err = db.Exec(fmt.Sprintf("CREATE TABLE %s(%s TEXT, %s INT); INSERT INTO %s VALUES ('a', 1), ('b', 2), ('c', 3)", d.table, d.name, d.number, d.table))
		if err != nil {
			return err
		}
		db.Close()
		questions = append(questions,
			question{d.id, "all " + d.name, fmt.Sprintf("SELECT %s FROM %s", d.name, d.table)},
			question{d.id, "largest " + d.number, fmt.Sprintf("SELECT max(%s) FROM %s", d.number, d.table)},
			question{d.id, d.name + " above 1", fmt.Sprintf("SELECT %s FROM %s WHERE %s > 1", d.name, d.table, d.number)})
	}
	text, err := json.Marshal(questions)
	if err != nil {
		return err
	}
	for _, name := range []string{"train_spider.json", "dev.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "tables.json"), []byte("[]"), 0o644)
}

// writeModels trains a policy on gold for a few steps, and makes a reward model of random
// scores.
func writeModels(w World) error {
	bench, err := data.OpenBenchmark(w.Bench, "spider")
	if err != nil {
		return err
	}
	defer bench.Close()
	questions, err := bench.Questions("train")
	if err != nil {
		return err
	}
	var texts []string
	for _, q := range questions {
		prompt, err := bench.Prompt(q)
		if err != nil {
			return err
		}
		texts = append(texts, prompt, q.Gold)
	}
	words, err := tokenizer.Train(slices.Values(texts), tokenizer.TrainOptions{VocabSize: 340, Added: []string{"<|im_end|>", "<|clause|>"}})
	if err != nil {
		return err
	}
	shape := qwen35.Defaults()
	shape.VocabSize, shape.HiddenSize, shape.IntermediateSize, shape.Layers = 340, 32, 64, 2
	shape.Heads, shape.KVHeads, shape.HeadDim = 2, 1, 16
	shape.KeyHeads, shape.ValueHeads, shape.KeyDim, shape.ValueDim = 2, 2, 16, 16
	shape.InitRange, shape.Tied = 0.1, true
	shape.LayerTypes = qwen35.LayerTypes(2, 2)
	config := model.Config{Text: shape, ClauseToken: "<|clause|>", EndToken: "<|im_end|>"}
	m, err := model.New(config, engine.CPU(2), 3)
	if err != nil {
		return err
	}
	if err := m.SetTokenizer(words); err != nil {
		return err
	}
	end, _ := words.ID("<|im_end|>")
	var sequences [][]int32
	var prompts []int
	for i := 0; i < len(texts); i += 2 {
		prompt := words.EncodeText(texts[i], nil)
		prompts = append(prompts, len(prompt))
		sequences = append(sequences, append(words.EncodeText(texts[i+1], prompt), end))
	}
	imitate(m, sequences, prompts, 35)
	if err := m.Save(w.Policy); err != nil {
		return err
	}
	config.Reward = true
	prm, err := model.New(config, engine.CPU(2), 4)
	if err != nil {
		return err
	}
	if err := prm.SetTokenizer(words); err != nil {
		return err
	}
	return prm.Save(w.PRM)
}

// imitate takes steps on the likelihood of what follows the prompts.
func imitate(m *model.Model, sequences [][]int32, prompts []int, steps int) {
	params := m.Trainable()
	moments, tape := adamw.NewState(params, m.Decays()), engine.NewTape(m.Device())
	var tree engine.Tree
	for range steps {
		tape.Reset()
		tree.Reset()
		var rows, targets []int32
		for i, path := range tree.Pack(sequences) {
			for p := prompts[i] - 1; p+1 < len(path); p++ {
				rows, targets = append(rows, path[p]), append(targets, sequences[i][p+1])
			}
		}
		for _, p := range params {
			p.ZeroGrad()
		}
		y := logprob.Forward(tape, m.Backbone.Hidden(tape, &tree), m.Head.Tensor, rows, targets)
		for r := range y.Rows {
			tape.Seed(y, r, -1/float64(y.Rows))
		}
		tape.Backward()
		norm := gradnorm.Norm(m.Device(), params)
		adamw.Step(m.Device(), params, moments, adamw.Options{LR: 5e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}, min(1, 1/norm))
	}
}
