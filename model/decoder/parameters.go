package decoder

import (
	"math/rand/v2"
	"strings"

	"caper/engine"
	"caper/model/safetensors"
)

// Parameter is a weight of a model: an engine matrix, and what a checkpoint says
// about it.
type Parameter struct {
	*engine.Param
	Shape []int // as stored in a checkpoint: [out, in], [size] or [channels, 1, width]
	Init  Init  // draws the elements of a fresh one
	// Float32 marks the weights that official checkpoints keep in F32 when all
	// others are BF16.
	Float32 bool
	// FileType is the element type in the checkpoint that the weight was read from, and
	// its zero value for a new weight.
	FileType safetensors.DType
	// Located is where Locate found the weight in a checkpoint.
	Located *safetensors.Tensor
}

// KeepsFloat32 reports whether official checkpoints keep the weight of this name in F32
// when all others are BF16: those by which a delta net's state decays and is scaled.
func KeepsFloat32(name string) bool {
	return strings.HasSuffix(name, ".linear_attn.A_log") || strings.HasSuffix(name, ".linear_attn.norm.weight")
}

// DType returns the type in which p is written to a checkpoint of the given type, for
// whose zero value the weight keeps its own: F32 where it has none. Weights marked
// Float32 stay in it, unless they were read in less.
func (p *Parameter) DType(of safetensors.DType) safetensors.DType {
	var none safetensors.DType
	short := p.FileType == safetensors.BF16 || p.FileType == safetensors.F16
	switch {
	case of == none && short:
		return p.FileType
	case of == none, p.Float32 && !short:
		return safetensors.F32
	}
	return of
}

// Entry returns p as it is written to a checkpoint of the given type.
func (p *Parameter) Entry(of safetensors.DType) safetensors.Entry {
	e := safetensors.Entry{Name: p.Name, DType: p.DType(of), Shape: p.Shape, F32: p.F32, F64: p.F64, Tensor: p.Located}
	if p.Address() != 0 {
		e.Fill = func(dst []float32, from int) error { p.ReadRange(dst, from); return nil }
	}
	return e
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
	fill   func(p *Parameter, name string, init Init) error
	err    error
	source *source // nil for Random
}

// Random fills parameters by their Init. The numbers depend on seed and on the
// parameter's name alone.
func Random(dev engine.Device, seed uint64) *Parameters {
	p := &Parameters{dev: dev}
	p.fill = func(param *Parameter, name string, init Init) error {
		param.Param = p.allocate(name, param.Shape)
		if !param.Stored() {
			return nil
		}
		r := engine.Random(seed, "init "+name, 0, 0)
		param.Fill(func(int, int) float64 { return init(r) })
		return nil
	}
	return p
}

// Read fills parameters from a checkpoint. Frozen parameters have no gradient.
func Read(dev engine.Device, from safetensors.Tensors, frozen bool) (*Parameters, error) {
	src, err := newSource(from)
	if err != nil {
		return nil, err
	}
	p := &Parameters{dev: dev, frozen: frozen, source: src}
	p.fill = func(param *Parameter, name string, _ Init) error {
		tensor, err := src.take(name, param.Shape)
		if err != nil {
			return err
		}
		param.Param = p.allocate(name, param.Shape) // only now: the file confirms the size
		param.FileType = tensor.DType
		switch {
		case param.F32 != nil:
			return safetensors.Weights(tensor, param.F32)
		case param.F64 != nil:
			return safetensors.Weights(tensor, param.F64)
		}
		return upload(param.Param, tensor)
	}
	return p, nil
}

// upload copies a tensor to a GPU, some rows at a time.
func upload(p *engine.Param, tensor safetensors.Tensor) error {
	const block = 1 << 22
	rows := min(p.Rows, max(1, block/p.Cols))
	values := make([]float32, rows*p.Cols)
	for first := 0; first < p.Rows; first += rows {
		part := values[:min(rows, p.Rows-first)*p.Cols]
		if err := tensor.Range(part, first*p.Cols); err != nil {
			return err
		}
		p.WriteRows(part, first)
	}
	return nil
}

// OnShapes makes parameters on a device of shapes, which has no elements to fill.
// Frozen parameters have no gradient.
func OnShapes(dev engine.Device, frozen bool) *Parameters {
	p := &Parameters{dev: dev, frozen: frozen}
	p.fill = func(param *Parameter, name string, _ Init) error {
		param.Param = p.allocate(name, param.Shape)
		return nil
	}
	return p
}

// Describe makes parameters that have a name and a shape, but no elements.
func Describe() *Parameters {
	return &Parameters{fill: func(*Parameter, string, Init) error { return nil }}
}

// Locate finds the parameters of a checkpoint without reading their elements.
func Locate(from safetensors.Tensors) (*Parameters, error) {
	src, err := newSource(from)
	if err != nil {
		return nil, err
	}
	p := &Parameters{source: src}
	p.fill = func(param *Parameter, name string, _ Init) error {
		tensor, err := src.take(name, param.Shape)
		param.Located, param.FileType = &tensor, tensor.DType
		return err
	}
	return p, nil
}

// Skip lets a checkpoint hold a parameter that is taken from elsewhere.
func (p *Parameters) Skip(name string) {
	if p.source != nil {
		p.source.used[BareName(name)] = true
	}
}

// Add makes the parameter called name. In the engine a vector is a matrix of one row
// and a convolution [channels, 1, width] one of channels rows.
func (p *Parameters) Add(name string, init Init, shape ...int) *Parameter {
	added := &Parameter{Param: &engine.Param{Name: name, Tensor: &engine.Tensor{}}, Shape: shape, Init: init, Float32: KeepsFloat32(name)}
	if p.err == nil {
		p.err = p.fill(added, name, init)
	}
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
	rows, cols := rows(shape), shape[len(shape)-1]
	switch steers := steersState(name); {
	case p.frozen && steers:
		return engine.NewFrozenFloat32(p.dev, name, rows, cols)
	case p.frozen:
		return engine.NewFrozen(p.dev, name, rows, cols)
	case steers:
		return engine.NewFloat32Param(p.dev, name, rows, cols)
	}
	return engine.NewParam(p.dev, name, rows, cols)
}

// steersState reports whether a weight decides how a delta net's state decays, step by step
// over a whole sequence: that is float32 on every device.
func steersState(name string) bool {
	return strings.HasSuffix(name, ".A_log") || strings.HasSuffix(name, ".dt_bias")
}

func rows(shape []int) int {
	if len(shape) == 1 {
		return 1
	}
	return shape[0]
}
