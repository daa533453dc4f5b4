package run

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Each epoch takes every item once, in steps that reach the batch; and passes that go on
// from any position take what was left.
func TestPassesTakeEverythingOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(1, 4), 1, 9).Draw(t, "sizes")
		batch := rapid.IntRange(1, 8).Draw(t, "batch")
		var at Position
		p := NewPasses(&at, 5, sizes, batch)
		const epochs = 3
		steps := p.Steps(epochs)
		seen := make([]int, len(sizes))
		for i := range steps {
			var copied Position
			again := slices.Clone(p.From(&copied).Take())
			epoch := at.Epoch
			taken := p.Take()
			if !slices.Equal(taken, again) || copied != at {
				t.Fatalf("step %d: %v, gone on from there %v", i, taken, again)
			}
			n := 0
			for _, item := range taken {
				n += sizes[item]
				if seen[item]++; seen[item] != epoch+1 {
					t.Fatalf("step %d of epoch %d: item %d for the %d. time", i, epoch, item, seen[item])
				}
			}
			if n < batch && at.Epoch == epoch {
				t.Fatalf("step %d: %d of %d", i, n, batch)
			}
		}
		if at.Epoch != epochs || at.Next != 0 || p.Done() != epochs {
			t.Fatalf("after %d steps at %+v", steps, at)
		}
	})
}
