package train

import (
	"fmt"
	"path/filepath"
	"reflect"
)

// checkFolder refuses to mix two runs in one folder.
func checkFolder(c Config, resume bool, from string, saved state) error {
	if from == "" {
		return nil
	}
	if !resume {
		return c.mistake("train.out", "a run is there already, at step %d: add --resume to go on, or choose another folder", saved.Step)
	}
	key, err := c.difference(saved.Config)
	if err != nil {
		return fmt.Errorf("%s: configuration of the run there: %w", filepath.Join(from, stateFile), err)
	}
	if key != "" {
		return c.mistake(key, "the run in %s has another value: resume it with --config %s, or choose another train.out",
			c.Train.Out, filepath.Join(c.Train.Out, ConfigName))
	}
	return nil
}

// identity is the configuration without the values that change no result: they may
// differ between the parts of a run.
func (c Config) identity() Config {
	c.Train.Out, c.Train.Threads, c.Train.CheckpointEvery, c.Train.KeepCheckpoints, c.Train.MemoryGB = "", 0, 0, 0, 0
	c.Train.Checkpointing = Defaults().Train.Checkpointing
	return c
}

// difference returns the first key whose value decides over the result and is not
// the saved one, "" when there is none. A key that was not there yet counts at its
// default.
func (c Config) difference(saved string) (string, error) {
	before := Defaults()
	if err := decode([]byte(saved), &before, func(line int) string { return fmt.Sprintf("its line %d", line) }); err != nil {
		return "", err
	}
	a, b := c.identity().values(), before.identity().values()
	for _, key := range keys() {
		if !reflect.DeepEqual(a[key], b[key]) {
			return key, nil
		}
	}
	return "", nil
}
