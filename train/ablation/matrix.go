// Package ablation measures what each part of the method is worth: it trains every
// variant of a matrix with every seed, tests all of them on the same items, and
// compares each with the first variant seed by seed. Reward models are tested by the
// faults that they find (prm.go), policies by the questions that they answer (grpo.go).
//
// A variant and a seed make a cell. What is done is kept, so that a study that was
// stopped goes on where it was, and one with more variants or seeds does only those.
package ablation

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"caper/annotate"
	"caper/configs"
)

// Kind says what a study trains.
type Kind string

const (
	RewardModels Kind = "prm"
	Policies     Kind = "grpo"
)

// Matrix is a study: variants of one training, and the seeds to run each with. It is
// a TOML file.
type Matrix struct {
	// Kind is RewardModels where the file gives none.
	Kind Kind `toml:"kind"`
	// Config is the training configuration that all variants start from: a file
	// beside the matrix, or one of the binary's own (prm-tiny.toml).
	Config string `toml:"config"`
	// Overrides are section.key=value words for all variants.
	Overrides []string `toml:"overrides"`
	Seeds     []uint64 `toml:"seeds"`
	// Splits are those whose questions policies are measured by: Questions of each, evenly
	// spread over the file (0: all), with the greedy answer and the vote of Samples
	// answers (0: 8).
	Splits    []string `toml:"splits"`
	Questions int      `toml:"questions"`
	Samples   int      `toml:"samples"`
	// Variants are compared with the first, and with the one that is not trained.
	Variants []Variant `toml:"variants"`

	file string // that it was read from
}

// Variant is one way to annotate and train.
type Variant struct {
	Name string `toml:"name"`
	Note string `toml:"note"` // what sets it apart, for readers of the table
	// Annotate sets options of the annotation, Train section.key=value words of the
	// training.
	Annotate Annotation `toml:"annotate"`
	Train    []string   `toml:"train"`
	// Untrained is the policy that the others start from, as it is.
	Untrained bool `toml:"untrained"`
}

// Annotation are the options of annotate.Options that a variant may set; those not
// given keep their default.
type Annotation struct {
	Granularity     *annotate.Granularity `toml:"granularity"`
	Injection       *bool                 `toml:"injection"`
	Counterfactual  *bool                 `toml:"counterfactual"`
	Propagation     *bool                 `toml:"propagation"`
	DependencyEdges *bool                 `toml:"dependency_edges"`
	Inject          *int                  `toml:"inject"`
	Alpha           *float64              `toml:"alpha"`
	Sigma           *float64              `toml:"sigma"`
}

// options returns the annotation's options.
func (a Annotation) options() annotate.Options {
	o := annotate.DefaultOptions()
	set(&o.Granularity, a.Granularity)
	set(&o.Injection, a.Injection)
	set(&o.Counterfactual, a.Counterfactual)
	set(&o.Propagation, a.Propagation)
	set(&o.DependencyEdges, a.DependencyEdges)
	set(&o.Inject, a.Inject)
	set(&o.Alpha, a.Alpha)
	set(&o.Sigma, a.Sigma)
	return o
}

func set[T any](to, value *T) {
	if value != nil {
		*to = *value
	}
}

// LoadMatrix reads a matrix: a file, or the name of one that the binary holds
// (configs/ablations, without .toml).
func LoadMatrix(name string) (Matrix, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(name, "/.") {
		if text, err = configs.Files.ReadFile(path.Join("ablations", name+".toml")); err != nil {
			return Matrix{}, fmt.Errorf("matrix %s: neither a file nor one of %s", name, strings.Join(presets(), ", "))
		}
	}
	if err != nil {
		return Matrix{}, fmt.Errorf("matrix: %w", err)
	}
	return parseMatrix(text, name)
}

// presets lists the matrices that the binary holds.
func presets() []string {
	entries, err := configs.Files.ReadDir("ablations")
	if err != nil {
		panic(err) // embedded
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".toml"))
	}
	return names
}

func parseMatrix(text []byte, name string) (Matrix, error) {
	m := Matrix{file: name}
	d := toml.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(&m)
	var strict *toml.StrictMissingError
	if errors.As(err, &strict) {
		row, _ := strict.Errors[0].Position()
		return m, fmt.Errorf("%s:%d: unknown key %q", name, row, strings.Join(strict.Errors[0].Key(), "."))
	}
	var bad *toml.DecodeError
	if errors.As(err, &bad) {
		row, _ := bad.Position()
		return m, fmt.Errorf("%s:%d: %s", name, row, strings.TrimPrefix(bad.Error(), "toml: "))
	}
	if err != nil {
		return m, fmt.Errorf("%s: %w", name, err)
	}
	if err := m.check(); err != nil {
		return m, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

func (m *Matrix) check() error {
	if len(m.Seeds) == 0 {
		m.Seeds = []uint64{1}
	}
	if m.Kind == "" {
		m.Kind = RewardModels
	}
	if err := m.checkKind(); err != nil {
		return err
	}
	if m.Config == "" {
		return errors.New("config: name the training configuration that all variants start from")
	}
	if len(m.Variants) < 2 {
		return errors.New("variants: at least two are needed, the first of which the others are compared with")
	}
	folders := map[string]string{}
	for i, v := range m.Variants {
		if v.Name == "" {
			return fmt.Errorf("variants: number %d has no name", i+1)
		}
		if other, taken := folders[v.folder()]; taken {
			return fmt.Errorf("variants: %q and %q would share the folder %s: rename one", other, v.Name, v.folder())
		}
		folders[v.folder()] = v.Name
	}
	for i, seed := range m.Seeds {
		if slices.Contains(m.Seeds[:i], seed) {
			return fmt.Errorf("seeds: %d is there twice", seed)
		}
	}
	return nil
}

// checkKind finds keys that only the other kind knows.
func (m *Matrix) checkKind() error {
	untrained := 0
	for _, v := range m.Variants {
		if v.Untrained {
			untrained++
		}
		if v.Annotate != (Annotation{}) && m.Kind == Policies {
			return fmt.Errorf("variants: %q: annotate is of kind = %q: policies are trained on questions", v.Name, RewardModels)
		}
	}
	switch m.Kind {
	case RewardModels:
		if len(m.Splits) > 0 || m.Samples != 0 || m.Questions != 0 || untrained > 0 {
			return fmt.Errorf("splits, questions, samples and untrained are of kind = %q", Policies)
		}
	case Policies:
		if len(m.Splits) == 0 {
			return errors.New("splits: name those whose questions the policies are measured by")
		}
		if m.Samples < 0 || m.Questions < 0 {
			return errors.New("samples and questions must be 0 or more")
		}
		if m.Samples == 0 {
			m.Samples = 8
		}
		if untrained > 1 {
			return errors.New("variants: there is one policy to start from, and more than one is untrained")
		}
	default:
		return fmt.Errorf("kind: want %q or %q", RewardModels, Policies)
	}
	return nil
}

// start is the index of the variant that is not trained, -1 without one.
func (m Matrix) start() int {
	return slices.IndexFunc(m.Variants, func(v Variant) bool { return v.Untrained })
}

// folder names a variant's folder: letters, digits and dashes of its name.
func (v Variant) folder() string {
	dashed := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, v.Name)
	return strings.Trim(dashed, "-.")
}

// configText reads the configuration that all variants start from.
func (m Matrix) configText() (text []byte, name string, err error) {
	beside := filepath.Join(filepath.Dir(m.file), m.Config)
	if text, err = os.ReadFile(beside); err == nil {
		return text, beside, nil
	}
	if text, err := configs.Files.ReadFile(m.Config); err == nil {
		return text, "configs/" + m.Config, nil
	}
	return nil, "", fmt.Errorf("%s: config: %w", m.file, err)
}
