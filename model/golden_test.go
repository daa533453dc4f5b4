package model

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"caper/engine"
	"caper/model/safetensors"
)

// tolerance says how far a device may be from the reference numbers, which come from
// Hugging Face's implementation (the folder golden that README.md names).
type tolerance struct {
	logits, logProb, score, loss float64 // absolute
	gradient                     float64 // L2 of the difference over L2, per tensor
	gateGradient                 float64 // the same for A_log and dt_bias: few elements, sums that cancel
}

// goldenDevices: float32 errors of a second correct program are 4 to 10 times smaller
// than the README's suggestions, used here. In float64 the references are exact to
// 1e-13, but gradients are stored rounded to float32.
var goldenDevices = []struct {
	name      string
	device    engine.Device
	tolerance tolerance
}{
	{"cpu", engine.CPU(2), tolerance{logits: 1e-4, logProb: 5e-5, score: 5e-5, loss: 5e-5, gradient: 1e-4, gateGradient: 3e-4}},
	{"reference", engine.Reference(), tolerance{logits: 1e-11, logProb: 1e-11, score: 1e-11, loss: 1e-11, gradient: 2e-7, gateGradient: 2e-7}},
}

// goldenFolder returns the folder of reference data, which is not in the repository.
func goldenFolder(t *testing.T) string {
	t.Helper()
	root, err := os.Getwd()
	for err == nil {
		if _, e := os.Stat(filepath.Join(root, "go.mod")); e == nil {
			break
		}
		root = filepath.Dir(root)
	}
	dir := filepath.Join(root, "..", "shared", "data", "golden")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no reference data at %s", dir)
	}
	return dir
}

// golden reads the tensors of one golden.safetensors.
type golden struct {
	t    *testing.T
	file *safetensors.File
}

func openGolden(t *testing.T, dir string) golden {
	t.Helper()
	file, err := safetensors.Open(filepath.Join(dir, "golden.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return golden{t, file}
}

func (g golden) has(name string) bool { return slices.Contains(g.file.Names(), name) }

func (g golden) floats(name string) []float64 {
	g.t.Helper()
	tensor, err := g.file.Tensor(name)
	if err != nil {
		g.t.Fatal(err)
	}
	values := make([]float64, tensor.Len())
	if err := tensor.Float64s(values); err != nil {
		g.t.Fatal(err)
	}
	return values
}

func (g golden) ints(name string) []int32 {
	g.t.Helper()
	tensor, err := g.file.Tensor(name)
	if err != nil {
		g.t.Fatal(err)
	}
	wide := make([]int64, tensor.Len())
	if err := tensor.Int64s(wide); err != nil {
		g.t.Fatal(err)
	}
	values := make([]int32, len(wide))
	for i, v := range wide {
		values[i] = int32(v)
	}
	return values
}

// best returns name's float64 version on the reference device where there is one, or
// nil when the device cannot be judged by what is stored.
func (g golden) best(dev engine.Device, name, name64 string) []float64 {
	if dev.Name() != "reference" {
		if g.has(name) {
			return g.floats(name)
		}
		return nil
	}
	if g.has(name64) {
		return g.floats(name64)
	}
	return nil
}

// worst keeps the largest error of each kind, to be logged at the end of a test.
type worst map[string]float64

func (w worst) check(t *testing.T, kind, what string, got, limit float64) {
	t.Helper()
	w[kind] = max(w[kind], got)
	if !(got <= limit) {
		t.Errorf("%s %s: error %.2g, allowed %.2g", kind, what, got, limit)
	}
}

func (w worst) log(t *testing.T) {
	for kind, e := range w {
		t.Logf("worst %s error %.2g", kind, e)
	}
}

func maxAbs(got, want []float64) float64 {
	if len(got) != len(want) {
		return math.Inf(1)
	}
	e := 0.0
	for i := range got {
		d := math.Abs(got[i] - want[i])
		if math.IsNaN(d) {
			return d
		}
		e = max(e, d)
	}
	return e
}

func relativeL2(got, want []float64) float64 {
	if len(got) != len(want) {
		return math.Inf(1)
	}
	difference, norm := 0.0, 0.0
	for i := range got {
		difference += (got[i] - want[i]) * (got[i] - want[i])
		norm += want[i] * want[i]
	}
	if norm == 0 {
		return math.Sqrt(difference)
	}
	return math.Sqrt(difference / norm)
}

// elements returns rows of x, all when rows is nil.
func elements(x *engine.Tensor, rows []int32) []float64 {
	if rows == nil {
		for i := range x.Rows {
			rows = append(rows, int32(i))
		}
	}
	var values []float64
	for _, r := range rows {
		for j := range x.Cols {
			values = append(values, x.At(int(r), j))
		}
	}
	return values
}

// checkGradients compares the gradient of every parameter with grad.NAME.
func checkGradients(t *testing.T, w worst, m *Model, g golden, tol tolerance, what string) {
	t.Helper()
	for _, p := range m.Params() {
		limit := tol.gradient
		if strings.HasSuffix(p.Name, "A_log") || strings.HasSuffix(p.Name, "dt_bias") {
			limit = tol.gateGradient
		}
		w.check(t, "gradient", what+" "+p.Name, relativeL2(elements(p.Grad, nil), g.floats("grad."+p.Name)), limit)
	}
}

func zeroGrads(m *Model) {
	for _, p := range m.Params() {
		p.ZeroGrad()
	}
}
