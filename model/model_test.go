package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"caper/engine"
	"caper/model/decoder"
	"caper/model/qwen3"
	"caper/model/qwen35"
	"caper/model/safetensors"
)

// small returns a model configuration of either family with every kind of layer.
func small(family string) Config {
	if family == "qwen3" {
		c := qwen3.Defaults()
		c.VocabSize, c.HiddenSize, c.IntermediateSize, c.Layers = 40, 24, 20, 2
		c.LayerTypes = qwen3.LayerTypes(2)
		c.Heads, c.KVHeads, c.HeadDim = 4, 2, 8
		return Config{Text: c}
	}
	c := qwen35.Defaults()
	c.VocabSize, c.HiddenSize, c.IntermediateSize, c.Layers, c.Tied = 40, 24, 20, 3, true
	c.LayerTypes = qwen35.LayerTypes(3, 2)
	c.Heads, c.KVHeads, c.HeadDim = 4, 2, 16
	c.KeyHeads, c.ValueHeads, c.KeyDim, c.ValueDim = 2, 4, 8, 8
	c.InitRange = 0.2 // so that every part of the small model matters
	return Config{Text: c}
}

var families = []string{"qwen35", "qwen3"}

func newModel(t *testing.T, c Config, dev engine.Device) *Model {
	t.Helper()
	m, err := New(c, dev, 1)
	if err != nil {
		t.Fatal(err)
	}
	// Norms and gates start at constants, which would hide a mix-up between them.
	for _, p := range m.Params() {
		if p.Rows == 1 {
			r := engine.Random(2, p.Name, 0, 0)
			for j := range p.Cols {
				p.Set(0, j, float64(float32(p.At(0, j)+0.3*r.NormFloat64())))
			}
		}
	}
	return m
}

// branches returns random sequences that share beginnings: branches of length 1,
// of lengths around a chunk, and one sequence that is the beginning of another.
func branches(seed uint64, vocab int) [][]int32 {
	rng := rand.New(rand.NewPCG(seed, 0))
	tokens := func(n int) []int32 {
		s := make([]int32, n)
		for i := range s {
			s[i] = rng.Int32N(int32(vocab))
		}
		return s
	}
	prompt := tokens(63)
	var sequences [][]int32
	for _, n := range []int{1, 1, 2, 64, 65} {
		sequences = append(sequences, slices.Concat(prompt, tokens(n)))
	}
	deep := slices.Concat(sequences[3], tokens(1))
	return append(sequences, slices.Concat(deep, tokens(1)), slices.Concat(deep, tokens(3)), deep, tokens(7))
}

// evaluate returns the log-probs of all sequences and the gradients of a weighted sum.
func evaluate(m *Model, sequences [][]int32, add func(*engine.Tree, [][]int32) [][]int32) (values []float64, gradients [][]float64) {
	zeroGrads(m)
	tape := engine.NewTape(m.Device())
	tape.Poison = true
	var tree engine.Tree
	rows := add(&tree, sequences)
	x := logProbs(tape, m, m.Backbone.Hidden(tape, &tree), sequences, rows, 1)
	for r := range x.Rows {
		tape.Seed(x, r, math.Sin(float64(r)))
	}
	tape.Backward()
	for _, p := range m.Params() {
		gradients = append(gradients, elements(p.Grad, nil))
	}
	return elements(x, nil), gradients
}

// Sharing prefixes changes neither results nor gradients.
func TestTreeEqualsSequences(t *testing.T) {
	for _, family := range families {
		for _, d := range []struct {
			device           engine.Device
			values, gradient float64
		}{
			{engine.Reference(), 1e-12, 1e-10},
			{engine.CPU(2), 2e-5, 1e-4}, // float32 sums in another order
		} {
			t.Run(family+"/"+d.device.Name(), func(t *testing.T) {
				m := newModel(t, small(family), d.device)
				sequences := branches(1, 40)
				separate, want := evaluate(m, sequences, forest)
				shared, got := evaluate(m, sequences, (*engine.Tree).Pack)
				if e := maxAbs(shared, separate); !(e <= d.values) {
					t.Errorf("log-probs differ by %.2g", e)
				}
				for i, p := range m.Params() {
					if e := relativeL2(got[i], want[i]); !(e <= d.gradient) {
						t.Errorf("gradient of %s differs by %.2g", p.Name, e)
					}
				}
			})
		}
	}
}

// The whole model's gradient against central differences of its specification.
func TestFiniteDifferences(t *testing.T) {
	for _, family := range families {
		for _, reward := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/reward=%t", family, reward), func(t *testing.T) {
				m := newModel(t, small(family), engine.Reference())
				loss := causalLoss
				if reward {
					m.ToReward(3)
					loss = rewardLoss
				}
				zeroGrads(m)
				loss(m, true)
				rng := rand.New(rand.NewPCG(5, 5))
				for _, p := range m.Params() {
					for range 2 {
						i, j := rng.IntN(p.Rows), rng.IntN(p.Cols)
						x := p.At(i, j)
						at := func(step float64) float64 {
							p.Set(i, j, x+step)
							defer p.Set(i, j, x)
							return loss(m, false)
						}
						// Fourth order: the norms bend too sharply for the plain quotient.
						const h = 1e-4
						got, want := p.Grad.At(i, j), (8*(at(h)-at(-h))-(at(2*h)-at(-2*h)))/(12*h)
						if math.Abs(got-want) > 1e-7*(1+math.Abs(want)) {
							t.Errorf("%s[%d,%d]: gradient %.9g, difference quotient %.9g", p.Name, i, j, got, want)
						}
					}
				}
			})
		}
	}
}

var differenceSequences = [][]int32{{1, 2, 3, 4, 5, 6, 7}, {1, 2, 3, 9, 9}, {1, 2, 3, 4, 8}, {11, 12}}

func causalLoss(m *Model, backward bool) float64 {
	tape := engine.NewTape(m.Device())
	var tree engine.Tree
	rows := tree.Pack(differenceSequences)
	x := logProbs(tape, m, m.Backbone.Hidden(tape, &tree), differenceSequences, rows, 1)
	return weightedSum(tape, x, backward)
}

func rewardLoss(m *Model, backward bool) float64 {
	tape := engine.NewTape(m.Device())
	var tree engine.Tree
	var last []int32
	for _, rows := range tree.Pack(differenceSequences) {
		last = append(last, rows[len(rows)-1])
	}
	return weightedSum(tape, m.Scores(tape, &tree, last), backward)
}

func weightedSum(tape *engine.Tape, x *engine.Tensor, backward bool) float64 {
	sum := 0.0
	for r := range x.Rows {
		w := math.Sin(float64(r + 1))
		sum += w * x.At(r, 0)
		if backward {
			tape.Seed(x, r, w)
		}
	}
	if backward {
		tape.Backward()
	}
	return sum
}

// The number of threads changes no bit.
func TestThreadsDoNotMatter(t *testing.T) {
	for _, family := range families {
		sequences := branches(2, 40)
		var values [2][]float64
		var gradients [2][][]float64
		for i := range 2 {
			m := newModel(t, small(family), engine.CPU(i+1))
			values[i], gradients[i] = evaluate(m, sequences, (*engine.Tree).Pack)
		}
		if !slices.Equal(values[0], values[1]) {
			t.Errorf("%s: log-probs differ", family)
		}
		if !slices.EqualFunc(gradients[0], gradients[1], slices.Equal[[]float64]) {
			t.Errorf("%s: gradients differ", family)
		}
	}
}

// A step that is no larger than one before it needs no new memory.
func TestTapeDoesNotGrow(t *testing.T) {
	m := newModel(t, small("qwen35"), engine.CPU(1))
	tape := engine.NewTape(m.Device())
	var tree engine.Tree
	step := func() int {
		tape.Reset()
		tree.Reset()
		sequences := branches(2, 40)
		rows := tree.Pack(sequences)
		x := logProbs(tape, m, m.Backbone.Hidden(tape, &tree), sequences, rows, 1)
		weightedSum(tape, x, true)
		return tape.Bytes()
	}
	if first, second := step(), step(); first != second {
		t.Errorf("tape of %d bytes grew to %d", first, second)
	}
}

// Fresh weights depend on seed and name; every element is drawn.
func TestNewIsKeyed(t *testing.T) {
	c := small("qwen35")
	a, _ := New(c, engine.CPU(1), 7)
	b, _ := New(c, engine.Reference(), 7)
	other, _ := New(c, engine.CPU(1), 8)
	same := 0
	for i, p := range a.Params() {
		for j, y := range b.Params()[i].F64 {
			if p.F32[j] != float32(y) {
				t.Fatalf("%s: %g on one device, %g on another", p.Name, p.F32[j], y)
			}
		}
		if slices.Equal(p.F32, other.Params()[i].F32) {
			same++
		}
	}
	// Norms (two per layer, four more in the mixers, one at the end) and dt_bias are constant.
	if same != 2*3+2*2+2+1 {
		t.Errorf("%d parameters do not depend on the seed", same)
	}
}

func TestSaveAndLoad(t *testing.T) {
	for _, family := range families {
		for _, reward := range []bool{false, true} {
			for _, dtype := range []safetensors.DType{safetensors.F32, safetensors.BF16} {
				t.Run(fmt.Sprintf("%s/reward=%t/%s", family, reward, dtype), func(t *testing.T) {
					c := small(family)
					c.ClauseToken, c.EndToken = "<c>", "<e>"
					m := newModel(t, c, engine.CPU(1))
					if reward {
						m.ToReward(1)
					}
					checkSaveAndLoad(t, m, dtype)
				})
			}
		}
	}
}

func checkSaveAndLoad(t *testing.T, m *Model, dtype safetensors.DType) {
	dir := filepath.Join(t.TempDir(), "a", "model")
	if err := m.SaveAs(dir, Format{DType: dtype}); err != nil {
		t.Fatal(err)
	}
	got, err := Load(dir, engine.CPU(1), Frozen)
	if err != nil {
		t.Fatal(err)
	}
	if got.Config.ClauseToken != "<c>" || got.Config.EndToken != "<e>" || got.Config.Reward != m.Config.Reward || (got.Score == nil) == m.Config.Reward {
		t.Errorf("configuration came back as %+v", got.Config)
	}
	if len(got.Params()) != len(m.Params()) || len(got.Trainable()) != 0 {
		t.Fatalf("%d parameters came back of %d", len(got.Params()), len(m.Params()))
	}
	for i, p := range m.Params() {
		q := got.Params()[i]
		if p.Name != q.Name || q.Grad != nil {
			t.Errorf("parameter %s came back as %s, gradient %v", p.Name, q.Name, q.Grad)
		}
		exact := dtype == safetensors.F32 || strings.HasSuffix(p.Name, "A_log") || strings.HasSuffix(p.Name, "linear_attn.norm.weight")
		if exact && !slices.Equal(p.F32, q.F32) {
			t.Errorf("%s changed", p.Name)
		}
		if e := relativeL2(elements(q.Tensor, nil), elements(p.Tensor, nil)); e > 1.0/256 {
			t.Errorf("%s changed by %g", p.Name, e)
		}
	}
	// A second save is byte for byte the first: nothing is lost on the way.
	again := filepath.Join(t.TempDir(), "again")
	if err := got.SaveAs(again, Format{DType: dtype}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{ConfigName, safetensors.SingleName} {
		a, _ := os.ReadFile(filepath.Join(dir, name))
		b, _ := os.ReadFile(filepath.Join(again, name))
		if string(a) != string(b) {
			t.Errorf("%s differs after a second save", name)
		}
	}
}

// A folder that does not fit its configuration is refused by naming what is wrong.
func TestLoadRefuses(t *testing.T) {
	m := newModel(t, small("qwen35"), engine.CPU(1))
	load := func(t *testing.T, spoil func(entries []safetensors.Entry, config decoder.Object) []safetensors.Entry) error {
		dir := t.TempDir()
		if err := m.Save(dir); err != nil {
			t.Fatal(err)
		}
		config, err := decoder.ReadObject(filepath.Join(dir, ConfigName))
		if err != nil {
			t.Fatal(err)
		}
		var entries []safetensors.Entry
		for _, p := range m.parameters {
			entries = append(entries, safetensors.Entry{Name: p.Name, DType: safetensors.F32, Shape: p.Shape, F32: p.F32})
		}
		entries = spoil(entries, config)
		if err := safetensors.Write(filepath.Join(dir, safetensors.SingleName), entries, nil); err != nil {
			t.Fatal(err)
		}
		if err := writeJSON(filepath.Join(dir, ConfigName), config); err != nil {
			t.Fatal(err)
		}
		_, err = Load(dir, engine.CPU(1))
		return err
	}
	type entries = []safetensors.Entry
	extra := safetensors.Entry{Name: "model.layers.0.self_attn.q_proj.bias", DType: safetensors.F32, Shape: []int{1}, F32: []float32{1}}
	for name, c := range map[string]struct {
		spoil func(entries, decoder.Object) entries
		want  []string // empty: accepted
	}{
		"nothing": {func(e entries, _ decoder.Object) entries { return e }, nil},
		"missing": {func(e entries, _ decoder.Object) entries { return e[1:] }, []string{"model.embed_tokens.weight", "[40 24]"}},
		"extra":   {func(e entries, _ decoder.Object) entries { return append(e, extra) }, []string{"q_proj.bias", "no part"}},
		"shape":   {func(e entries, _ decoder.Object) entries { e[0].Shape = []int{24, 40}; return e }, []string{safetensors.SingleName, "embed_tokens", "[24 40]", "[40 24]"}},
		"huge":    {func(e entries, c decoder.Object) entries { c.Set("vocab_size", 1<<20); return e }, []string{"embed_tokens", "[1048576 24]"}},
		"NaN": {func(e entries, _ decoder.Object) entries {
			e[0].F32 = slices.Clone(e[0].F32)
			e[0].F32[25] = float32(math.NaN())
			return e
		}, []string{"embed_tokens", "[1,1]", "NaN"}},
		"conv without its middle axis": {func(e entries, _ decoder.Object) entries {
			for i := range e {
				if strings.HasSuffix(e[i].Name, "conv1d.weight") {
					e[i].Shape = []int{e[i].Shape[0], 4}
				}
			}
			return e
		}, nil},
		"other prefixes, vision tower, next-token block, tied head": {func(e entries, _ decoder.Object) entries {
			for i := range e {
				e[i].Name = []string{"", "model.language_model.", "model.language_model.language_model."}[i%3] + strings.TrimPrefix(e[i].Name, "model.")
			}
			for _, name := range []string{"model.visual.x", "mtp.fc.weight", "lm_head.weight"} {
				e = append(e, safetensors.Entry{Name: name, DType: safetensors.F32, Shape: []int{1}, F32: []float32{1}})
			}
			return e
		}, nil},
		"twice": {func(e entries, _ decoder.Object) entries {
			again := e[0]
			again.Name = "embed_tokens.weight"
			return append(e, again)
		}, []string{"same parameter", "embed_tokens.weight"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := load(t, c.spoil)
			if (err == nil) != (c.want == nil) {
				t.Fatalf("error %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not name %q", err, want)
				}
			}
		})
	}
}
