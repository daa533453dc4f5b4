package model

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"caper/engine"
	"caper/model/decoder"
	"caper/model/lora"
	"caper/model/safetensors"
)

// AddAdapter puts a fresh low-rank adapter on the linear maps that c's targets name. To
// train it and the score head alone, load the model Frozen. dir is where the model lies.
func (m *Model) AddAdapter(c lora.Config, dir string, seed uint64) error {
	if m.Adapter != nil {
		return errors.New("the model has an adapter already: merge it first with caper export")
	}
	base, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	c.Base, c.TaskType = base, "CAUSAL_LM"
	if m.Score != nil {
		c.TaskType = "SEQ_CLS"
		m.thawScore()
	}
	m.Adapter, err = lora.New(c, m.linears, m.dev, seed)
	return err
}

// thawScore gives a score head that was loaded frozen a gradient.
func (m *Model) thawScore() {
	last := m.parameters[len(m.parameters)-1]
	if last.Grad != nil {
		return
	}
	thawed := engine.NewParam(m.dev, last.Name, last.Rows, last.Cols)
	copy(thawed.F64, last.F64)
	if thawed.F64 == nil {
		values := make([]float32, last.Rows*last.Cols)
		last.Read(values)
		thawed.Write(values)
	}
	m.parameters = slices.Clone(m.parameters)
	m.parameters[len(m.parameters)-1] = &decoder.Parameter{Param: thawed, Shape: last.Shape, FileType: last.FileType}
	m.Score = thawed
}

// loadAdapted reads an adapter's folder and the base model that it names.
func loadAdapted(dir string, dev engine.Device, frozen bool) (*Model, error) {
	a, err := openAdapted(dir)
	if err != nil {
		return nil, err
	}
	defer a.close()
	base, err := decoder.Read(dev, a.base, true)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.file.Config.Base, err)
	}
	own, err := decoder.Read(dev, a.file, frozen)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	m, err := a.build(dev, base, own)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return m, m.loadTokenizer(dir, a.file.Config.Base)
}

// adapted is an adapter and its base model, both open.
type adapted struct {
	config Config
	file   *lora.File
	base   *safetensors.Folder
}

func openAdapted(dir string) (*adapted, error) {
	file, err := lora.Open(dir)
	if err != nil {
		return nil, err
	}
	a := &adapted{file: file}
	if a.config, err = adaptedConfig(dir, file); err == nil {
		a.base, err = safetensors.OpenFolder(file.Config.Base)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return a, nil
}

func (a *adapted) close() {
	a.file.Close()
	a.base.Close()
}

// adaptedConfig reads the config.json beside the adapter, which ours have, or else the
// base model's, with a score head where the adapter has one.
func adaptedConfig(dir string, file *lora.File) (Config, error) {
	if _, err := os.Stat(filepath.Join(dir, ConfigName)); err == nil {
		return ReadConfig(dir)
	}
	if lora.IsFolder(file.Config.Base) {
		return Config{}, fmt.Errorf("%s: %s: an adapter on an adapter: not supported; merge the first with caper export", dir, file.Config.Base)
	}
	c, err := ReadConfig(file.Config.Base)
	if errors.Is(err, fs.ErrNotExist) {
		return c, fmt.Errorf("%s: base_model_name_or_path: %w", filepath.Join(dir, lora.ConfigName), err)
	}
	c.Reward = c.Reward || file.HasScore()
	return c, err
}

// build makes the base model's parameters in base, and the adapter's own in own.
func (a *adapted) build(dev engine.Device, base, own *decoder.Parameters) (*Model, error) {
	score := base
	if a.file.HasScore() {
		score = own
		base.Skip("score.weight")
	}
	m := build(a.config, dev, base, score)
	if err := base.Finish(); err != nil {
		return nil, err
	}
	var err error
	if m.Adapter, err = a.file.Attach(m.linears, own); err != nil {
		return nil, err
	}
	return m, own.Finish()
}

// saveAdapter writes the adapter's files and, where the adapter trained it, the head.
func (m *Model) saveAdapter(dir string) error {
	var saved []*decoder.Parameter
	if m.Score != nil {
		saved = append(saved, m.parameters[len(m.parameters)-1])
	}
	return m.Adapter.Save(dir, saved...)
}
