package grpo

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"caper/train/grpo/toy"
)

// makeWorld makes what the tests start from, once; it is never changed.
var makeWorld = sync.OnceValues(func() (toy.World, error) {
	dir, err := os.MkdirTemp("", "grpo-test-")
	if err != nil {
		return toy.World{}, err
	}
	return toy.Make(dir)
})

func newWorld(t testing.TB) toy.World {
	t.Helper()
	w, err := makeWorld()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// smallConfig is a run whose steps take a fraction of a second.
func smallConfig(t testing.TB, overrides ...string) Config {
	t.Helper()
	w := newWorld(t)
	c, err := LoadConfig("", append([]string{
		"model.path=" + w.Policy, "train.bench=" + w.Bench, "train.out=" + filepath.Join(t.TempDir(), "run"), "train.max_steps=4",
		"train.batch_questions=3", "train.epochs=100", "train.lr=1e-3", "train.threads=1", "train.micro_batch_tokens=512", "rollout.samples=6", "rollout.max_tokens=40",
		"rollout.cache_tokens=8192", "rollout.log_every=1", "reward.kind=sparse", "reward.workers=2",
	}, overrides...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}
