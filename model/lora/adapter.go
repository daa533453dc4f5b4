package lora

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"caper/engine"
	"caper/model/decoder"
	"caper/model/safetensors"
)

// Adapter is an adapter on the linear maps of one model.
type Adapter struct {
	Config Config
	// Parameters are all of A and B, in the order of the layers.
	Parameters []*decoder.Parameter

	modules []string // of all linear maps of the model
	targets []*decoder.Linear
	low     []*decoder.LowRank // of each target
	kept    []kept             // while the adapter is merged
}

// New puts a fresh adapter on the linear maps that c's targets name. As in PEFT, A is
// uniform with the variance 1/(3 in), and B zero: the model computes what it did.
func New(c Config, linears []*decoder.Linear, dev engine.Device, seed uint64) (*Adapter, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	targets, err := c.choose(linears)
	if err != nil {
		return nil, err
	}
	p := decoder.Random(dev, seed)
	a := attach(c, linears, targets, p)
	return a, p.Finish()
}

// attach makes the matrices of the targets in p.
func attach(c Config, linears, targets []*decoder.Linear, p *decoder.Parameters) *Adapter {
	a := &Adapter{Config: c, targets: targets}
	for _, l := range linears {
		a.modules = append(a.modules, l.Module())
	}
	for _, l := range targets {
		out, in := l.Shape[0], l.Shape[1]
		low := &decoder.LowRank{
			A:     p.Add(l.Module()+".lora_A.weight", uniform(in), c.Rank, in),
			B:     p.Add(l.Module()+".lora_B.weight", decoder.Constant(0), out, c.Rank),
			Scale: c.Scale(),
		}
		l.Adapter = low
		a.low = append(a.low, low)
		a.Parameters = append(a.Parameters, low.A, low.B)
	}
	return a
}

// Without runs f while the model computes what it does without the adapter, which must not
// be merged. Nothing else may use the model meanwhile.
func (a *Adapter) Without(f func()) {
	for _, l := range a.targets {
		l.Adapter = nil
	}
	defer func() {
		for i, l := range a.targets {
			l.Adapter = a.low[i]
		}
	}()
	f()
}

// Targets names the linear maps that the adapter is on, as Config.Targets does.
func (a *Adapter) Targets() []string {
	var targets []string
	for _, l := range a.targets {
		targets = append(targets, regexp.QuoteMeta(l.Module()))
	}
	return targets
}

// uniform is Kaiming's distribution with a = sqrt(5), as torch draws the weights of
// linear maps: uniform within 1/sqrt(in).
func uniform(in int) decoder.Init {
	limit := 1 / math.Sqrt(float64(in))
	return func(r *rand.Rand) float64 { return limit * (2*r.Float64() - 1) }
}

// File is an adapter's folder that is being read.
type File struct {
	Config Config
	*safetensors.File
	path string
}

// Open opens an adapter's folder. Base is made a path that can be opened from here.
func Open(dir string) (*File, error) {
	c, err := ReadConfig(dir)
	if err != nil {
		return nil, err
	}
	isFolder := func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.IsDir()
	}
	if beside := filepath.Join(dir, c.Base); !filepath.IsAbs(c.Base) && isFolder(beside) {
		c.Base = beside
	}
	if !isFolder(c.Base) {
		return nil, fmt.Errorf("%s: base_model_name_or_path: no folder %q: put there where the base model lies", filepath.Join(dir, ConfigName), c.Base)
	}
	path := filepath.Join(dir, WeightsName)
	weights, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	return &File{Config: c, File: weights, path: path}, nil
}

// HasScore reports whether the adapter holds a reward model's head.
func (f *File) HasScore() bool {
	return slices.ContainsFunc(f.Names(), func(name string) bool { return decoder.BareName(name) == Score+".weight" })
}

// Attach puts the adapter on the linear maps for which the file has matrices, made in
// p, which reads the file.
func (f *File) Attach(linears []*decoder.Linear, p *decoder.Parameters) (*Adapter, error) {
	has := map[string]bool{}
	for _, name := range f.Names() {
		has[decoder.BareName(name)] = true
	}
	targets := slices.DeleteFunc(slices.Clone(linears), func(l *decoder.Linear) bool {
		module := decoder.BareName(l.Module())
		return !has[module+".lora_A.weight"] && !has[module+".lora_B.weight"]
	})
	if len(targets) == 0 {
		return nil, fmt.Errorf("%s: no matrices for any linear map of the model in %s", f.path, f.Config.Base)
	}
	return attach(f.Config, linears, targets, p), nil
}

// Save writes the adapter's two files to dir, with saved, the parameters that it holds
// whole.
func (a *Adapter) Save(dir string, saved ...*decoder.Parameter) error {
	var entries []safetensors.Entry
	for _, p := range slices.Concat(a.Parameters, saved) {
		e := p.Entry(safetensors.F32)
		e.Name = "base_model.model." + e.Name
		entries = append(entries, e)
	}
	if err := safetensors.Write(filepath.Join(dir, WeightsName), entries, map[string]string{"format": "pt"}); err != nil {
		return err
	}
	var targets []string
	for _, l := range a.targets {
		targets = append(targets, l.Module())
	}
	c := a.Config
	c.Saved = nil
	for _, p := range saved {
		c.Saved = append(c.Saved, strings.TrimSuffix(p.Name, ".weight"))
	}
	o, err := c.object(a.modules, targets)
	if err != nil {
		return fmt.Errorf("%s: %w", ConfigName, err)
	}
	text, err := o.Text()
	if err != nil {
		return fmt.Errorf("%s: %w", ConfigName, err)
	}
	return safetensors.WriteText(filepath.Join(dir, ConfigName), text)
}
