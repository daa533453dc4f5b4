package model

import (
	"fmt"

	"caper/engine"
	"caper/model/decoder"
)

// OnShapes returns a model on a device of shapes (engine.Shapes), however large: its
// steps compute nothing, and an observer of the device hears what they would launch.
// The weights of a frozen one get no gradient, as when an adapter is trained.
func OnShapes(c Config, dev engine.Device, frozen bool) (*Model, error) {
	if err := c.Text.Validate(); err != nil {
		return nil, fmt.Errorf("model configuration: %w", err)
	}
	p := decoder.OnShapes(dev, frozen)
	m := build(c, dev, p, p)
	return m, p.Finish()
}

// CopyTo returns a model without adapter on another device, with m's weights, tokenizer and
// heads.
func (m *Model) CopyTo(dev engine.Device) (*Model, error) {
	twin, err := m.OnShapes(dev)
	if err != nil {
		return nil, err
	}
	for i, p := range twin.parameters {
		from := m.parameters[i]
		p.FileType = from.FileType
		values := make([]float32, from.Rows*from.Cols)
		from.Read(values)
		p.Write(values)
	}
	twin.Tokenizer, twin.texts = m.Tokenizer, m.texts
	return twin, engine.Wait(dev)
}

// OnShapes returns a model like m on a device of shapes: with the same weights frozen,
// adapter and head. Its steps take on the tape what those of m do.
func (m *Model) OnShapes(dev engine.Device) (*Model, error) {
	twin, err := OnShapes(m.Config, dev, m.Embedding.Grad == nil)
	if err != nil {
		return nil, err
	}
	twin.setLabels(m.labels)
	if m.Adapter != nil {
		c := m.Adapter.Config
		c.Targets = m.Adapter.Targets()
		err = twin.AddAdapter(c, c.Base, 0)
	}
	return twin, err
}
