package train

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"

	"caper/engine"
	"caper/kernels/adamw"
	"caper/model"
	"caper/model/safetensors"
)

// load continues from a checkpoint: weights, optimiser moments, position.
func (r *prm) load(dir string, s state) error {
	var err error
	if r.model, err = model.Load(dir, r.device); err != nil {
		return err
	}
	r.moments = adamw.NewState(r.model.Trainable(), r.model.Decays())
	file, err := safetensors.Open(filepath.Join(dir, optimizerFile))
	if err != nil {
		return err
	}
	defer file.Close()
	for i, p := range r.model.Trainable() {
		for _, m := range r.momentsOf(i, p) {
			t, err := file.Tensor(m.prefix + p.Name)
			values := make([]float32, m.tensor.Rows*m.tensor.Cols)
			switch {
			case err != nil && m.prefix == masterPrefix:
				p.Read(values) // a run on the processor wrote the file: the weights are that themselves
			case err != nil:
				return err
			default:
				if err := t.Float32s(values); err != nil {
					return fmt.Errorf("%s: %s%s: %w", dir, m.prefix, p.Name, err)
				}
			}
			m.tensor.Write(values)
		}
	}
	r.state = s
	r.moments.Step = s.Step - s.Skipped
	return nil
}

// moment is a tensor of a parameter's in AdamW's file, under the name it has there: one of
// the two running means, or the weight in float32 where the model computes with less.
type moment struct {
	prefix string
	tensor *engine.Tensor
}

const masterPrefix = "master."

// momentsOf returns those of trained parameter i, which is p: the master weight goes to the
// parameter itself on a device that computes with float32.
func (r *prm) momentsOf(i int, p *engine.Param) []moment {
	master := r.moments.Master[i]
	if master == nil {
		master = p.Tensor
	}
	return []moment{{"m.", r.moments.M[i]}, {"v.", r.moments.V[i]}, {masterPrefix, master}}
}

// checkpoint saves all that a resumed run needs.
func (r *prm) checkpoint() error {
	write := func(dir string) error {
		if err := r.model.Save(dir); err != nil {
			return err
		}
		var entries []safetensors.Entry
		for i, p := range r.model.Trainable() {
			for _, m := range r.momentsOf(i, p) {
				if m.tensor == p.Tensor {
					continue // the model's file has it
				}
				entries = append(entries, safetensors.Entry{
					Name: m.prefix + p.Name, DType: safetensors.F32, Shape: []int{p.Rows, p.Cols},
					Fill: func(dst []float32, from int) error { m.tensor.ReadRange(dst, from); return nil },
				})
			}
		}
		return safetensors.Write(filepath.Join(dir, optimizerFile), entries, nil)
	}
	return writeCheckpoint(r.config.Train.Out, r.state, r.config.Train.KeepCheckpoints, write)
}

// export puts the current weights where the run's result lies.
func (r *prm) export() error {
	if err := replaceFolder(r.modelDir(), r.model.Save); err != nil {
		return fmt.Errorf("%s: %w", r.modelDir(), err)
	}
	return nil
}

// skip counts a step whose loss or gradient was not finite. Nothing was updated;
// the inputs are kept for whoever looks for the reason, and too many in a row end
// the run.
func (r *prm) skip(batch []*question) error {
	r.state.Skipped++
	r.state.BadRun++
	path := filepath.Join(r.config.Train.Out, fmt.Sprintf("bad-step-%d.json", r.state.Step))
	type dumped struct {
		Database string    `json:"db_id"`
		Prompt   string    `json:"prompt"`
		Chosen   []string  `json:"chosen"`
		Rejected []string  `json:"rejected"`
		Margins  []float64 `json:"margins"`
	}
	var all []dumped
	for _, q := range batch {
		d := dumped{Database: q.db, Prompt: r.model.Tokenizer.Decode(q.prompt, false)}
		for _, p := range q.pairs {
			d.Chosen = append(d.Chosen, r.model.Tokenizer.Decode(p.chosen, false))
			d.Rejected = append(d.Rejected, r.model.Tokenizer.Decode(p.rejected, false))
			d.Margins = append(d.Margins, p.margin)
		}
		all = append(all, d)
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // SQL and tokens are full of < and >
	e.SetIndent("", " ")
	if err := e.Encode(all); err != nil {
		return err
	}
	if err := replaceFile(path, text.Bytes()); err != nil {
		return err
	}
	r.options.Log.Warn("loss or gradient is not finite: step skipped", "step", r.state.Step, "inputs", path)
	if r.state.BadRun >= r.config.Train.MaxBadSteps {
		return fmt.Errorf("%d steps in a row without a finite loss or gradient (inputs of the last one: %s): lower train.lr and start again with another train.out", r.state.BadRun, path)
	}
	return nil
}
