package decoder

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"caper/engine"
	"caper/model/safetensors"
)

// Parameter is a weight of a model: an engine matrix, and what a checkpoint says
// about it.
type Parameter struct {
	*engine.Param
	Shape []int // as stored in a checkpoint: [out, in], [size] or [channels, 1, width]
	// Float32 marks the weights that official checkpoints keep in F32 when all
	// others are BF16.
	Float32 bool
}

// Decays reports whether weight decay applies: to matrices (embedding and head
// included), not to norms, gates and convolutions.
func (p *Parameter) Decays() bool { return len(p.Shape) == 2 }

// Init draws one element of a fresh parameter.
type Init func(r *rand.Rand) float64

// Normal is the distribution N(0, deviation).
func Normal(deviation float64) Init {
	return func(r *rand.Rand) float64 { return deviation * r.NormFloat64() }
}

// Constant gives the same value everywhere.
func Constant(value float64) Init {
	return func(*rand.Rand) float64 { return value }
}

// Parameters makes the parameters of a model in the order in which the model asks
// for them, and fills them: with random numbers (Random) or from a checkpoint (Read).
// Like a bufio.Writer it keeps the first error, for Finish to return.
type Parameters struct {
	All []*Parameter
	// Linears are those of All that are linear maps inside the layers.
	Linears []*Linear

	dev    engine.Device
	frozen bool
	fill   func(name string, shape []int, init Init) (*engine.Param, error)
	err    error
	source *source // nil for Random
}

// Random fills parameters by their Init. The numbers depend on seed and on the
// parameter's name alone.
func Random(dev engine.Device, seed uint64) *Parameters {
	p := &Parameters{dev: dev}
	p.fill = func(name string, shape []int, init Init) (*engine.Param, error) {
		param := p.allocate(name, shape)
		r := engine.Random(seed, "init "+name, 0, 0)
		for i := range param.Rows {
			for j := range param.Cols {
				param.Set(i, j, init(r))
			}
		}
		return param, nil
	}
	return p
}

// Read fills parameters from a checkpoint. Frozen parameters have no gradient.
func Read(dev engine.Device, folder *safetensors.Folder, frozen bool) (*Parameters, error) {
	src, err := newSource(folder)
	if err != nil {
		return nil, err
	}
	p := &Parameters{dev: dev, frozen: frozen, source: src}
	p.fill = func(name string, shape []int, _ Init) (*engine.Param, error) {
		tensor, err := src.take(name, shape)
		if err != nil {
			return nil, err
		}
		param := p.allocate(name, shape) // only now: the file confirms the size
		return param, load(param, tensor)
	}
	return p, nil
}

// Add makes the parameter called name. In the engine a vector is a matrix of one row
// and a convolution [channels, 1, width] one of channels rows.
func (p *Parameters) Add(name string, init Init, shape ...int) *Parameter {
	param := &engine.Param{Name: name, Tensor: &engine.Tensor{}}
	if p.err == nil {
		filled, err := p.fill(name, shape, init)
		if err == nil {
			param = filled
		}
		p.err = err
	}
	added := &Parameter{Param: param, Shape: shape}
	p.All = append(p.All, added)
	return added
}

// AddLinear makes the weight of a linear map.
func (p *Parameters) AddLinear(name string, init Init, out, in int) *Linear {
	l := &Linear{Parameter: p.Add(name, init, out, in)}
	p.Linears = append(p.Linears, l)
	return l
}

// Finish returns the first error. For a checkpoint it also refuses tensors that the
// model did not ask for: a model that has them computes something else.
func (p *Parameters) Finish() error {
	if p.err != nil || p.source == nil {
		return p.err
	}
	return p.source.checkUnused()
}

func (p *Parameters) allocate(name string, shape []int) *engine.Param {
	rows, cols := 1, shape[len(shape)-1]
	if len(shape) > 1 {
		rows = shape[0]
	}
	if p.frozen {
		return engine.NewFrozen(p.dev, name, rows, cols)
	}
	return engine.NewParam(p.dev, name, rows, cols)
}

func load(param *engine.Param, tensor safetensors.Tensor) error {
	var err error
	if param.F32 != nil {
		err = tensor.Float32s(param.F32)
	} else {
		err = tensor.Float64s(param.F64)
	}
	if err != nil {
		return err
	}
	for i := range param.Rows {
		for j := range param.Cols {
			if x := param.At(i, j); math.IsNaN(x) || math.IsInf(x, 0) {
				return fmt.Errorf("%s: tensor %q: element [%d,%d] is %g: the checkpoint is damaged", tensor.File, tensor.Name, i, j, x)
			}
		}
	}
	return nil
}

// source finds the tensors of a checkpoint whatever prefix its writer used.
type source struct {
	folder *safetensors.Folder
	stored map[string]string // bare name to name in the files
	used   map[string]bool   // by bare name
}

func newSource(folder *safetensors.Folder) (*source, error) {
	s := &source{folder: folder, stored: map[string]string{}, used: map[string]bool{}}
	for _, name := range folder.Names() {
		bare := bareName(name)
		if other, twice := s.stored[bare]; twice {
			return nil, fmt.Errorf("tensors %q and %q are the same parameter", other, name)
		}
		s.stored[bare] = name
	}
	return s, nil
}

// bareName strips the prefixes under which a text model is saved. Some writers drop
// "language_model", some repeat it (transformers #45216, #45256).
func bareName(name string) string {
	for {
		short := strings.TrimPrefix(strings.TrimPrefix(name, "model."), "language_model.")
		if short == name {
			return name
		}
		name = short
	}
}

func (s *source) take(name string, shape []int) (safetensors.Tensor, error) {
	bare := bareName(name)
	stored, ok := s.stored[bare]
	if !ok {
		return safetensors.Tensor{}, fmt.Errorf("the checkpoint has no tensor %q of shape %v", name, shape)
	}
	s.used[bare] = true
	tensor, err := s.folder.Tensor(stored)
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
	for _, name := range s.folder.Names() {
		bare := bareName(name)
		if s.used[bare] || bare == "lm_head.weight" || strings.HasPrefix(bare, "visual.") ||
			strings.HasPrefix(bare, "mtp.") || strings.HasSuffix(bare, "rotary_emb.inv_freq") {
			continue
		}
		tensor, err := s.folder.Tensor(name)
		if err != nil {
			return err
		}
		return fmt.Errorf("%s: tensor %q of shape %v is no part of the model that config.json describes", tensor.File, name, tensor.Shape)
	}
	return nil
}
