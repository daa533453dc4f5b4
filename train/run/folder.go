package run

import (
	"fmt"
	"path/filepath"

	"caper/train/settings"
)

// ConfigName is the file in a run folder that holds its resolved configuration.
const ConfigName = "config.toml"

// checkFolder refuses to mix two runs in one folder.
func (c Sections) checkFolder(resume bool, from string, saved *State) error {
	if from == "" {
		return nil
	}
	if !resume {
		return c.mistake("train.out", "a run is there already, at step %d: add --resume to go on, or choose another folder", saved.Step)
	}
	key, err := settings.Difference(c.Whole, c.Defaults, saved.Config, Immaterial...)
	if err != nil {
		return fmt.Errorf("%s: configuration of the run there: %w", filepath.Join(from, stateFile), err)
	}
	if key != "" {
		return c.mistake(key, "the run in %s has another value: resume it with --config %s, or choose another train.out",
			c.Train.Out, filepath.Join(c.Train.Out, ConfigName))
	}
	return nil
}

// Immaterial are the keys that change no result: they may differ between the parts of a
// run.
var Immaterial = []string{
	"train.out", "train.threads", "train.checkpoint_every", "train.keep_checkpoints", "train.memory_gb", "train.checkpointing",
}

// identity is the configuration without the values that change no result.
func (c Sections) identity() string { return settings.TextWithout(c.Whole, Immaterial...) }

func (c Sections) text() string { return settings.Text(c.Whole) }
