package model

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"caper/engine"
	"caper/model/decoder"
	"caper/model/lora"
	"caper/model/safetensors"
)

// Export writes the text model in dir to out in Hugging Face layout: with an adapter
// merged into its base model, and without the vision tower and the next-token block of
// official checkpoints. No model is held in memory: each tensor goes from file to file.
// out is a folder of the caller's, in place of whose weights the model is put.
func Export(dir, out string, f Format) error {
	m, deltas, done, err := locate(dir)
	if err != nil {
		return err
	}
	defer done()
	var entries []safetensors.Entry
	for _, p := range m.parameters {
		e := p.Entry(f.DType)
		if d := deltas[p.Name]; d != nil {
			from := *p.Located
			e.Tensor = nil
			e.Fill = func(dst []float32, first int) error {
				err := from.Range(dst, first)
				d.Add(dst, first)
				return err
			}
		}
		entries = append(entries, e)
	}
	if err := f.write(out, entries); err != nil {
		return err
	}
	if m.Tokenizer != nil {
		if err := m.saveTokenizer(out); err != nil {
			return err
		}
	}
	return m.Config.Save(out, m.parameters[0].DType(f.DType))
}

// CountParameters returns the number of weights of the text model in dir, an adapter's own
// apart, without loading them.
func CountParameters(dir string) (int, error) {
	m, _, done, err := locate(dir)
	if err != nil {
		return 0, err
	}
	defer done()
	n := 0
	for _, p := range m.parameters {
		elements := 1
		for _, size := range p.Shape {
			elements *= size
		}
		n += elements
	}
	return n, nil
}

// locate finds the weights of the model in dir, and what an adapter adds to them. They
// can be read until done is called.
func locate(dir string) (m *Model, deltas map[string]*lora.Delta, done func(), err error) {
	if lora.IsFolder(dir) {
		return locateAdapted(dir)
	}
	config, err := ReadConfig(dir)
	if err != nil {
		return nil, nil, nil, err
	}
	folder, err := safetensors.OpenFolder(dir)
	if err != nil {
		return nil, nil, nil, err
	}
	p, err := decoder.Locate(folder)
	if err == nil {
		m = build(config, engine.Reference(), p, p)
		err = p.Finish()
	}
	if err != nil {
		folder.Close()
		return nil, nil, nil, fmt.Errorf("%s: %w", dir, err)
	}
	return m, nil, func() { folder.Close() }, m.loadTokenizer(dir)
}

func locateAdapted(dir string) (m *Model, deltas map[string]*lora.Delta, done func(), err error) {
	a, err := openAdapted(dir)
	if err != nil {
		return nil, nil, nil, err
	}
	base, err := decoder.Locate(a.base)
	if err == nil {
		var own *decoder.Parameters // small: in memory, and in float64
		if own, err = decoder.Read(engine.Reference(), a.file, true); err == nil {
			m, err = a.build(engine.Reference(), base, own)
		}
	}
	if err != nil {
		a.close()
		return nil, nil, nil, fmt.Errorf("%s: %w", dir, err)
	}
	return m, m.Adapter.Deltas(), a.close, m.loadTokenizer(dir, a.file.Config.Base)
}

// Convert writes all weights in dir to out, in another format: names, shapes and what
// is no text model stay as they are, and so do the other files of the folder. Each tensor
// goes from file to file.
func Convert(dir, out string, f Format) error {
	if lora.IsFolder(dir) {
		return fmt.Errorf("%s: an adapter: merge it with caper export, which converts as well", dir)
	}
	folder, err := safetensors.OpenFolder(dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	var entries []safetensors.Entry
	for _, name := range folder.Names() {
		t, err := folder.Tensor(name)
		if err != nil {
			return err
		}
		p := decoder.Parameter{Float32: decoder.KeepsFloat32(name), FileType: t.DType}
		dtype := t.DType
		if t.IsFloat() && f.DType != 0 {
			dtype = p.DType(f.DType)
		}
		entries = append(entries, safetensors.Entry{Name: name, DType: dtype, Shape: t.Shape, Tensor: &t})
	}
	if err := copyTexts(dir, out); err != nil {
		return err
	}
	if err := f.write(out, entries); err != nil {
		return err
	}
	return convertConfig(dir, out, f.DType)
}

// convertConfig copies config.json, with the weights' new type.
func convertConfig(dir, out string, dtype safetensors.DType) error {
	config, err := decoder.ReadObject(filepath.Join(dir, ConfigName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // weights alone
	}
	if err != nil {
		return err
	}
	if name, ok := dtypeNames[dtype]; ok {
		if err := setDType(config, name); err != nil {
			return err
		}
	}
	return writeJSON(filepath.Join(out, ConfigName), config)
}

// setDType changes the key dtype, and its older name, at both levels of a config.json.
func setDType(o decoder.Object, name string) error {
	for _, key := range []string{"dtype", "torch_dtype"} {
		if o.Has(key) {
			if err := o.Set(key, name); err != nil {
				return err
			}
		}
	}
	var text decoder.Object
	if err := o.Decode("text_config", &text); err != nil || text == nil {
		return err
	}
	if err := setDType(text, name); err != nil {
		return err
	}
	return o.Set("text_config", text)
}

// copyTexts copies the files beside the weights: tokenizer, chat template, licence.
func copyTexts(dir, out string) error {
	found, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range found {
		name := f.Name()
		if f.IsDir() || filepath.Ext(name) == ".safetensors" || name == safetensors.IndexName || name == ConfigName {
			continue
		}
		text, err := safetensors.ReadText(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if err := safetensors.WriteText(filepath.Join(out, name), text); err != nil {
			return err
		}
	}
	return nil
}
