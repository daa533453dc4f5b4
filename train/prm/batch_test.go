package prm

import (
	"testing"

	"pgregory.net/rapid"
)

// Every token of a question's correct queries is predicted once, whatever they share.
func TestPredictionsAreCountedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tokens := rapid.SliceOfN(rapid.Int32Range(0, 1), 1, 6)
		q := question{prompt: rapid.SliceOfN(rapid.Int32Range(0, 1), 0, 3).Draw(t, "prompt"), correct: tokens.Draw(t, "correct")}
		for _, chosen := range rapid.SliceOfN(tokens, 1, 5).Draw(t, "chosen") {
			q.pairs = append(q.pairs, pair{chosen: chosen, rejected: []int32{2}})
		}
		q.assignPredictions()
		want := map[string]bool{}
		for _, c := range append([][]int32{q.correct}, chosenOf(q)...) {
			s := append(append([]int32{}, q.prompt...), c...)
			for p := 2; p <= len(s); p++ {
				want[text(s[:p])] = true
			}
		}
		got := map[string]bool{}
		var b batch
		for b.lay([]*question{&q}, 8); b.pack(Loss{LanguageModel: 1}); {
			for i, row := range b.next {
				var prefix []int32
				for _, r := range b.packer.Tree.Path(nil, row) {
					prefix = append(prefix, b.packer.Tree.Tokens[r])
				}
				edge := text(append(prefix, b.targets[i]))
				if got[edge] || !want[edge] || b.shares[i] != 1/float64(len(want)) {
					t.Fatalf("prediction %v twice, or of no correct query, or with share %g of %d", edge, b.shares[i], len(want))
				}
				got[edge] = true
			}
		}
		if len(got) != len(want) || q.predictions != len(want) {
			t.Fatalf("%d predictions, %d announced, want %d", len(got), q.predictions, len(want))
		}
	})
}

func chosenOf(q question) (all [][]int32) {
	for _, p := range q.pairs {
		all = append(all, p.chosen)
	}
	return all
}

func text(tokens []int32) string {
	var s []byte
	for _, id := range tokens {
		s = append(s, byte('a'+id))
	}
	return string(s)
}
