package prm

import (
	"context"
	"os"
	"testing"

	"caper/train/run"
	"caper/train/run/runtest"
)

func TestMain(m *testing.M) {
	os.Exit(runtest.Main(m, func(config string, o run.Options) error {
		c, err := LoadConfig(config, nil)
		if err == nil {
			_, err = Train(context.Background(), c, o)
		}
		return err
	}))
}

// Killed ten times at moments drawn at random, every other time while it writes
// a checkpoint or exports a model, and resumed each time, a run ends with the same
// bytes in the same files as one that was left alone.
func TestKilledAndResumed(t *testing.T) {
	c := smallConfig(t, "train.epochs=16", "train.validate_every=2", "train.checkpoint_every=2")
	runtest.KilledAndResumed(t, 10, func(out string) string {
		c.Train.Out = out
		path := out + ".toml"
		if err := os.WriteFile(path, []byte(c.Text()), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}, volatile)
}
