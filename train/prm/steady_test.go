//go:build !race

// The race detector allocates on its own.

package prm

import (
	"os"
	"runtime"
	"testing"
)

// A step, from taking its questions to its line in metrics.jsonl, allocates nothing in
// Go, and 1000 of them start no goroutine and no thread.
func TestStepsNeedNothingNew(t *testing.T) {
	r := opened(t, smallConfig(t, "train.threads=2", "train.batch_pairs=2", "train.micro_batch_tokens=100", "model.hidden_size=8", "model.intermediate_size=8",
		"loss.contrast=1", "loss.divergence=0.5", "loss.language_model=0.3"))
	step := func() {
		m, err := r.step(r.take())
		if err == nil {
			r.line = m
			err = r.run.Write(&r.line)
		}
		if err != nil || m.Skipped {
			t.Fatalf("metrics %+v, error %v", m, err)
		}
	}
	for range r.run.Total {
		step()
	}
	threads, goroutines := countThreads(t), runtime.NumGoroutine()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	epoch := r.state.Epoch
	for range 1000 {
		step()
	}
	runtime.ReadMemStats(&after)
	// Shuffling takes a generator an epoch, and the runtime itself may allocate now and then.
	if n := int(after.Mallocs-before.Mallocs) - 2*(r.state.Epoch-epoch); n > 20 {
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
