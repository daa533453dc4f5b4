package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"

	"caper/engine"
	"caper/model"
	"caper/model/safetensors"
)

// load continues from a checkpoint: weights, optimiser moments, position.
func (r *Run) load(dir string) error {
	var err error
	if r.Model, err = model.Load(dir, r.Device); err != nil {
		return err
	}
	r.Moments = r.newMoments()
	file, err := safetensors.Open(filepath.Join(dir, optimizerFile))
	if err != nil {
		return err
	}
	defer file.Close()
	for i, p := range r.Model.Trainable() {
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
	s := r.holder.state()
	r.Moments.Step = s.Step - s.Skipped
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
func (r *Run) momentsOf(i int, p *engine.Param) []moment {
	master := r.Moments.Master[i]
	if master == nil {
		master = p.Tensor
	}
	return []moment{{"m.", r.Moments.M[i]}, {"v.", r.Moments.V[i]}, {masterPrefix, master}}
}

// Checkpoint saves all that a resumed run needs.
func (r *Run) Checkpoint() error {
	write := func(dir string) error {
		if err := r.Model.Save(dir); err != nil {
			return err
		}
		var entries []safetensors.Entry
		for i, p := range r.Model.Trainable() {
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
	return writeCheckpoint(r.sections.Train.Out, r.holder, r.sections.Train.KeepCheckpoints, write)
}

// Export puts the current weights where the run's result lies.
func (r *Run) Export() error {
	if err := replaceFolder(r.ModelDir(), r.Model.Save); err != nil {
		return fmt.Errorf("%s: %w", r.ModelDir(), err)
	}
	return nil
}

// Skip ends a step whose loss or gradient was not finite. Nothing is updated; the inputs are
// kept for whoever looks for the reason, and too many such steps in a row end the run.
func (r *Run) Skip(inputs any) error {
	c, s := r.sections.Train, r.holder.state()
	s.Step++
	s.Skipped++
	s.BadRun++
	path := filepath.Join(c.Out, fmt.Sprintf("bad-step-%d.json", s.Step))
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // SQL and tokens are full of < and >
	e.SetIndent("", " ")
	if err := e.Encode(inputs); err != nil {
		return err
	}
	if err := replaceFile(path, text.Bytes()); err != nil {
		return err
	}
	r.Log.Warn("loss or gradient is not finite: step skipped", "step", s.Step, "inputs", path)
	if s.BadRun >= c.MaxBadSteps {
		return fmt.Errorf("%d steps in a row without a finite loss or gradient (inputs of the last one: %s): lower train.lr and start again with another train.out", s.BadRun, path)
	}
	return nil
}
