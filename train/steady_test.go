package train

import (
	"os"
	"runtime"
	"testing"

	"pgregory.net/rapid"
)

// A step, from taking its questions to its line in metrics.jsonl, allocates nothing in
// Go, and 1000 of them start no goroutine and no thread.
func TestStepsNeedNothingNew(t *testing.T) {
	r := opened(t, smallConfig(t, "train.threads=2", "train.batch_pairs=2", "train.micro_batch_tokens=100", "model.hidden_size=8", "model.intermediate_size=8",
		"loss.contrast=1", "loss.divergence=0.5", "loss.language_model=0.3"))
	step := func() {
		m, err := r.step(r.take())
		if err == nil {
			err = r.metrics.write(m)
		}
		if err != nil || m.Skipped {
			t.Fatalf("metrics %+v, error %v", m, err)
		}
	}
	for range r.total {
		step()
	}
	threads, goroutines := countThreads(t), runtime.NumGoroutine()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range 1000 {
		step()
	}
	runtime.ReadMemStats(&after)
	// The runtime itself may allocate now and then, never once a step.
	if n := after.Mallocs - before.Mallocs; n > 20 {
		t.Errorf("1000 steps allocated %d times", n)
	}
	// The runtime may start a thread of its own while another is in C.
	if n := countThreads(t); n > threads+2 {
		t.Errorf("%d threads became %d", threads, n)
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines became %d", goroutines, n)
	}
}

func countThreads(t *testing.T) int {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Skip("no /proc/self/task to count threads in")
	}
	return len(tasks)
}

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
