package model

import (
	"math"
	"slices"
	"testing"

	"caper/engine"
)

// What is not kept for the backward pass is made again to the bit: the mode of
// checkpointing changes memory alone. Poison fills the memory of what is made again,
// so a result that nobody made again would be NaN in the gradients.
func TestCheckpointingChangesNoBit(t *testing.T) {
	for _, family := range families {
		m := newModel(t, small(family), engine.CPU(2))
		sequences := branches(3, 40)
		values, gradients, _ := checkpointed(m, sequences, engine.KeepAll)
		for _, c := range []engine.Checkpointing{engine.KeepDear, engine.KeepOutput} {
			v, g, _ := checkpointed(m, sequences, c)
			if !slices.Equal(v, values) {
				t.Errorf("%s, %s: other values", family, c)
			}
			for i, p := range m.Params() {
				if !slices.Equal(g[i], gradients[i]) {
					t.Errorf("%s, %s: another gradient of %s", family, c, p.Name)
				}
			}
		}
	}
}

func TestCheckpointingSavesMemory(t *testing.T) {
	sequences := make([][]int32, 100)
	for i := range sequences {
		sequences[i] = []int32{int32(i % 40), int32(i / 40)}
		sequences[i] = append(sequences[i], make([]int32, 98)...)
	}
	for _, family := range families {
		m := newModel(t, small(family), engine.CPU(2))
		_, _, all := checkpointed(m, sequences, engine.KeepAll)
		_, _, dear := checkpointed(m, sequences, engine.KeepDear)
		_, _, output := checkpointed(m, sequences, engine.KeepOutput)
		if output > dear || dear >= all || output >= all {
			t.Errorf("%s: bytes of a step: none %d, selective %d, full %d", family, all, dear, output)
		}
	}
}

// checkpointed returns log-probs and gradients of the second of two equal steps, which
// reuses the memory of the first, and the bytes that the tape holds.
func checkpointed(m *Model, sequences [][]int32, c engine.Checkpointing) (values []float64, gradients [][]float64, bytes int) {
	tape := engine.NewTape(m.Device())
	tape.Poison, tape.Checkpointing = true, c
	for range 2 {
		zeroGrads(m)
		gradients = gradients[:0]
		tape.Reset()
		var tree engine.Tree
		rows := tree.Pack(sequences)
		x := logProbs(tape, m, m.Backbone.Hidden(tape, &tree), sequences, rows, 1)
		for r := range x.Rows {
			tape.Seed(x, r, math.Sin(float64(r)))
		}
		values = elements(x, nil)
		tape.Backward()
		for _, p := range m.Params() {
			gradients = append(gradients, elements(p.Grad, nil))
		}
	}
	return values, gradients, tape.Bytes()
}
