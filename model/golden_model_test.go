package model

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"caper/engine"
	"caper/kernels/adamw"
	"caper/kernels/gradnorm"
	"caper/kernels/linear"
	"caper/kernels/logprob"
	"caper/kernels/marginloss"
	"caper/model/safetensors"
)

// packing adds sequences to a tree and returns the row of each token.
type packing struct {
	name string
	add  func(tree *engine.Tree, sequences [][]int32) [][]int32
}

// forest gives every sequence a root of its own.
func forest(tree *engine.Tree, sequences [][]int32) [][]int32 {
	rows := make([][]int32, len(sequences))
	for i, s := range sequences {
		segment := tree.AddSegment(-1, s)
		for r := range int32(len(s)) {
			rows[i] = append(rows[i], tree.Start[segment]+r)
		}
	}
	return rows
}

// logProbs returns log p of tokens from..end of every sequence, given the rows of its
// tokens: [sum of (length - from), 1].
func logProbs(t *engine.Tape, m *Model, hidden *engine.Tensor, sequences, rows [][]int32, from int) *engine.Tensor {
	var at, targets []int32
	for i, s := range sequences {
		for p := from; p < len(s); p++ {
			at = append(at, rows[i][p-1])
			targets = append(targets, s[p])
		}
	}
	return logprob.Forward(t, hidden, m.Head.Tensor, at, targets)
}

// A checkpoint that is loaded and saved in its own types keeps every tensor.
func TestGoldenSave(t *testing.T) {
	dir := goldenFolder(t)
	for name, dtype := range map[string]safetensors.DType{
		"qwen35-tied": safetensors.F32, "qwen3": safetensors.F32, "reward": safetensors.F32, "qwen35-tied-bf16": safetensors.BF16,
	} {
		m, err := Load(filepath.Join(dir, name), engine.CPU(1), Frozen)
		if err != nil {
			t.Fatal(err)
		}
		saved := t.TempDir()
		if err := m.SaveAs(saved, Format{DType: dtype}); err != nil {
			t.Fatal(err)
		}
		want, got := openWeights(t, filepath.Join(dir, name)), openWeights(t, saved)
		if !slices.Equal(got.Names(), want.Names()) {
			t.Errorf("%s: tensors %v became %v", name, want.Names(), got.Names())
			continue
		}
		for _, tensor := range want.Names() {
			a, _ := want.Tensor(tensor)
			b, _ := got.Tensor(tensor)
			x, y := make([]float64, a.Len()), make([]float64, b.Len())
			if a.Float64s(x) != nil || b.Float64s(y) != nil || a.DType != b.DType || !slices.Equal(a.Shape, b.Shape) || !slices.Equal(x, y) {
				t.Errorf("%s: %s changed", name, tensor)
			}
		}
	}
}

func openWeights(t *testing.T, dir string) *safetensors.Folder {
	t.Helper()
	folder, err := safetensors.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { folder.Close() })
	return folder
}

// Logits and log-probs of single sequences, alone and as a packed forest, and all
// gradients of the longest one's loss, alone and beside the others.
func TestGoldenSequences(t *testing.T) {
	dir := goldenFolder(t)
	for _, c := range []struct{ checkpoint, golden string }{
		{"qwen35-tied", "qwen35-tied"},
		{"qwen35-untied", "qwen35-untied"},
		{"qwen3", "qwen3"},
		{"qwen3-tied", "qwen3-tied"},
		{"qwen3-tied/sharded", "qwen3-tied"},
		{"qwen35-tied-bf16", "qwen35-tied-bf16"},
		{"qwen35-tied-official", "qwen35-tied-bf16"},
	} {
		for _, d := range goldenDevices {
			t.Run(c.checkpoint+"/"+d.name, func(t *testing.T) {
				m, err := Load(filepath.Join(dir, c.checkpoint), d.device)
				if err != nil {
					t.Fatal(err)
				}
				g := openGolden(t, filepath.Join(dir, c.golden))
				w := worst{}
				defer w.log(t)
				var names []string
				var sequences [][]int32
				for _, name := range []string{"s1", "s7", "s150", "p5", "p64", "p131"} {
					if g.has("ids." + name) {
						names = append(names, name)
						sequences = append(sequences, g.ints("ids."+name))
					}
				}
				if d.name == "cpu" { // the reference device is slow, and runs them all below
					for i := range names {
						checkSequences(t, w, m, g, d.tolerance, names[i:i+1], sequences[i:i+1])
					}
				}
				checkSequences(t, w, m, g, d.tolerance, names, sequences)
			})
		}
	}
}

// checkSequences runs the sequences as one forest.
func checkSequences(t *testing.T, w worst, m *Model, g golden, tol tolerance, names []string, sequences [][]int32) {
	t.Helper()
	tape := engine.NewTape(m.Device())
	tape.Poison = true
	var tree engine.Tree
	rows := forest(&tree, sequences)
	hidden := m.Backbone.Hidden(tape, &tree)
	logits := linear.Forward(tape, hidden, m.Head.Tensor)
	var logProb *engine.Tensor
	if len(names) > 1 || len(sequences[0]) > 1 {
		logProb = logProbs(tape, m, hidden, sequences, rows, 1)
	}
	first := int32(0) // of the sequence's rows in logProb
	for i, name := range names {
		what := fmt.Sprintf("%s in a forest of %d", name, len(names))
		if want := g.best(m.Device(), "logits."+name, "logits64."+name); want != nil {
			w.check(t, "logits", what, maxAbs(elements(logits, rows[i]), want), tol.logits)
		}
		predictions := int32(len(sequences[i]) - 1)
		if predictions == 0 {
			continue
		}
		if want := g.best(m.Device(), "logprob."+name, "logprob64."+name); want != nil {
			got := elements(logProb, nil)[first : first+predictions]
			w.check(t, "log-prob", what, maxAbs(got, want), tol.logProb)
		}
		if g.has("loss64." + name) {
			loss := 0.0
			for r := first; r < first+predictions; r++ {
				loss -= logProb.At(int(r), 0) / float64(predictions)
				tape.Seed(logProb, int(r), -1/float64(predictions))
			}
			w.check(t, "loss", what, math.Abs(loss-g.floats("loss64." + name)[0]), tol.loss)
			zeroGrads(m)
			tape.Backward()
			checkGradients(t, w, m, g, tol, what)
		}
		first += predictions
	}
}

// A prompt shared by branches: the same numbers and gradients whether the paths are
// separate sequences or share their rows.
func TestGoldenTree(t *testing.T) {
	dir := goldenFolder(t)
	for _, c := range []struct{ golden, checkpoint string }{{"tree", "qwen35-tied"}, {"tree-qwen3", "qwen3"}} {
		for _, d := range goldenDevices {
			for _, packing := range []packing{{"forest", forest}, {"tree", (*engine.Tree).Pack}} {
				t.Run(c.golden+"/"+d.name+"/"+packing.name, func(t *testing.T) {
					m, err := Load(filepath.Join(dir, c.checkpoint), d.device)
					if err != nil {
						t.Fatal(err)
					}
					checkTree(t, m, openGolden(t, filepath.Join(dir, c.golden)), d.tolerance, packing)
				})
			}
		}
	}
}

func checkTree(t *testing.T, m *Model, g golden, tol tolerance, packing packing) {
	w := worst{}
	defer w.log(t)
	leaves := []string{"c1", "c2", "c3a", "c3b"}
	prompt := len(g.ints("ids.prompt"))
	var sequences [][]int32
	for _, leaf := range leaves {
		sequences = append(sequences, g.ints("path."+leaf))
	}
	tape := engine.NewTape(m.Device())
	tape.Poison = true
	var tree engine.Tree
	rows := packing.add(&tree, sequences)
	hidden := m.Backbone.Hidden(tape, &tree)
	logits := linear.Forward(tape, hidden, m.Head.Tensor)
	nll := logProbs(tape, m, hidden, sequences, rows, prompt)
	weights := g.floats("weights")
	row, loss := 0, 0.0
	for i, leaf := range leaves {
		if m.Device().Name() != "reference" { // logits are stored in float32 alone
			w.check(t, "logits", "prompt", maxAbs(elements(logits, rows[i][:prompt]), g.floats("logits.prompt")), tol.logits)
			w.check(t, "logits", leaf, maxAbs(elements(logits, rows[i][prompt-1:]), g.floats("logits."+leaf)), tol.logits)
		}
		for _, want := range g.floats("nll64." + leaf) {
			w.check(t, "log-prob", leaf, math.Abs(-nll.At(row, 0)-want), tol.logProb)
			loss -= weights[i] * nll.At(row, 0)
			tape.Seed(nll, row, -weights[i])
			row++
		}
	}
	// The loss is a weighted sum of up to 191 terms: its error may be that of as many.
	w.check(t, "loss", "sum", math.Abs(loss-g.floats("loss64")[0]), float64(row)*tol.loss)
	tape.Backward()
	checkGradients(t, w, m, g, tol, packing.name)
}

// Scores of a sequence-classification checkpoint, the margin-weighted pair loss on
// them, and all its gradients.
func TestGoldenReward(t *testing.T) {
	dir := filepath.Join(goldenFolder(t), "reward")
	for _, d := range goldenDevices {
		for _, packing := range []packing{{"forest", forest}, {"tree", (*engine.Tree).Pack}} {
			t.Run(d.name+"/"+packing.name, func(t *testing.T) {
				m, err := Load(dir, d.device)
				if err != nil {
					t.Fatal(err)
				}
				g := openGolden(t, dir)
				w := worst{}
				defer w.log(t)
				var sequences [][]int32
				for i := range 4 {
					sequences = append(sequences, g.ints(fmt.Sprintf("ids.%d", i)))
				}
				tape := engine.NewTape(d.device)
				tape.Poison = true
				var tree engine.Tree
				var last []int32
				for _, rows := range packing.add(&tree, sequences) {
					last = append(last, rows[len(rows)-1])
				}
				scores := m.Scores(tape, &tree, last)
				w.check(t, "score", "all", maxAbs(elements(scores, nil), g.floats("scores64")), d.tolerance.score)

				var pairs []marginloss.Pair
				ids, weights := g.ints("pairs"), g.floats("weights")
				for k, weight := range weights {
					pairs = append(pairs, marginloss.Pair{Chosen: ids[2*k], Rejected: ids[2*k+1], Weight: float32(weight)})
				}
				loss := marginloss.Forward(tape, scores, pairs, marginloss.Options{Center: 0.01})
				// Pair.Weight is float32, so 0.3 and 0.7 are not the reference's.
				w.check(t, "loss", "pairs", math.Abs(loss.At(0, 0)-g.floats("loss64")[0]), max(d.tolerance.loss, 1e-7))
				tape.Seed(loss, 0, 1)
				tape.Backward()
				checkGradients(t, w, m, g, d.tolerance, packing.name)
			})
		}
	}
}

// Five AdamW steps with clipping: losses, gradient norms and the final weights.
func TestGoldenAdamW(t *testing.T) {
	dir := goldenFolder(t)
	for _, name := range []string{"qwen35-tied", "qwen35-untied", "qwen3", "qwen3-tied"} {
		for _, d := range goldenDevices {
			if name == "qwen35-untied" && d.name == "reference" {
				continue // too slow for what it adds
			}
			t.Run(name+"/"+d.name, func(t *testing.T) {
				m, err := Load(filepath.Join(dir, name), d.device)
				if err != nil {
					t.Fatal(err)
				}
				g := openGolden(t, filepath.Join(dir, name))
				w := worst{}
				defer w.log(t)
				losses, norms := g.floats("adam.losses64"), g.floats("adam.grad_norms64")
				state := adamw.NewState(m.Params(), m.Decays())
				for i := range 5 {
					loss, norm := adamStep(m, g, state, i)
					w.check(t, "loss", fmt.Sprintf("step %d", i), math.Abs(loss-losses[i]), d.tolerance.loss)
					w.check(t, "gradient norm", fmt.Sprintf("step %d", i), math.Abs(norm/norms[i]-1), d.tolerance.logits)
				}
				checkWeights(t, w, m, g)
			})
		}
	}
}

// adamStep is step i of the reference's training run: two sequences, 105 predictions.
func adamStep(m *Model, g golden, state *adamw.State, i int) (loss, norm float64) {
	sequences := [][]int32{g.ints(fmt.Sprintf("adam.ids.%d.0", i)), g.ints(fmt.Sprintf("adam.ids.%d.1", i))}
	zeroGrads(m)
	tape := engine.NewTape(m.Device())
	var tree engine.Tree
	rows := forest(&tree, sequences)
	x := logProbs(tape, m, m.Backbone.Hidden(tape, &tree), sequences, rows, 1)
	for r := range x.Rows {
		loss -= x.At(r, 0) / 105
		tape.Seed(x, r, -1.0/105)
	}
	tape.Backward()
	norm = gradnorm.Norm(m.Device(), m.Params())
	o := adamw.Options{LR: 1e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1}
	adamw.Step(m.Device(), m.Params(), state, o, min(1, 1/(norm+1e-6)))
	return loss, norm
}

// checkWeights compares the weights with adam.param.NAME. Where a gradient is near
// zero its sign is noise in float32, and Adam then steps by the learning rate one way
// or the other: outliers are counted. In float64 all agree, up to the rounding of the
// stored weights.
func checkWeights(t *testing.T, w worst, m *Model, g golden) {
	near, limit := 1e-5, 2e-3
	if m.Device().Name() == "reference" {
		near, limit = 2e-7, 2e-7
	}
	outliers, count := 0, 0
	for _, p := range m.Params() {
		if !g.has("adam.param." + p.Name) {
			continue // some layers are not stored
		}
		got, want := elements(p.Tensor, nil), g.floats("adam.param."+p.Name)
		w.check(t, "weight", p.Name, maxAbs(got, want), limit)
		for i := range got {
			count++
			if math.Abs(got[i]-want[i]) > near {
				outliers++
			}
		}
	}
	t.Logf("%d of %d weights differ by more than %g", outliers, count, near)
	if count == 0 || float64(outliers) > 0.001*float64(count) {
		t.Errorf("%d of %d weights differ by more than %g", outliers, count, near)
	}
}
