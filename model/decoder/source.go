package decoder

import (
	"fmt"
	"slices"
	"strings"

	"caper/model/safetensors"
)

// source finds the tensors of a checkpoint whatever prefix its writer used.
type source struct {
	from   safetensors.Tensors
	stored map[string]string // bare name to name in the files
	used   map[string]bool   // by bare name
}

func newSource(from safetensors.Tensors) (*source, error) {
	s := &source{from: from, stored: map[string]string{}, used: map[string]bool{}}
	for _, name := range from.Names() {
		bare := BareName(name)
		if other, twice := s.stored[bare]; twice {
			return nil, fmt.Errorf("tensors %q and %q are the same parameter", other, name)
		}
		s.stored[bare] = name
	}
	return s, nil
}

// BareName strips the prefixes under which a text model, or an adapter of one, is
// saved. Some writers drop "language_model", some repeat it (transformers #45216,
// #45256).
func BareName(name string) string {
	name = strings.TrimPrefix(name, "base_model.")
	for {
		short := strings.TrimPrefix(strings.TrimPrefix(name, "model."), "language_model.")
		if short == name {
			return name
		}
		name = short
	}
}

func (s *source) take(name string, shape []int) (safetensors.Tensor, error) {
	bare := BareName(name)
	stored, ok := s.stored[bare]
	if !ok {
		return safetensors.Tensor{}, fmt.Errorf("the checkpoint has no tensor %q of shape %v", name, shape)
	}
	s.used[bare] = true
	tensor, err := s.from.Tensor(stored)
	if err != nil {
		return tensor, err
	}
	if !slices.Equal(tensor.Shape, shape) && !(len(shape) == 3 && slices.Equal(tensor.Shape, []int{shape[0], shape[2]})) {
		return tensor, fmt.Errorf("%s: tensor %q has shape %v, config.json wants %v", tensor.File, stored, tensor.Shape, shape)
	}
	return tensor, nil
}

// checkUnused allows what a text model may leave aside: the vision tower, the
// multi-token-prediction block, a head that is tied or replaced, rotary tables.
func (s *source) checkUnused() error {
	for _, name := range s.from.Names() {
		bare := BareName(name)
		if s.used[bare] || bare == "lm_head.weight" || strings.HasPrefix(bare, "visual.") ||
			strings.HasPrefix(bare, "mtp.") || strings.HasSuffix(bare, "rotary_emb.inv_freq") {
			continue
		}
		tensor, err := s.from.Tensor(name)
		if err != nil {
			return err
		}
		return fmt.Errorf("%s: tensor %q of shape %v is no part of the model that config.json describes", tensor.File, name, tensor.Shape)
	}
	return nil
}
