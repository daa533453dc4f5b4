package run

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"caper/data"
)

// State is what every run needs, beside weights and optimiser moments, to go on as if it
// had never stopped. A trainer embeds it in a struct with what its own steps need; random
// numbers are keyed by position, so there is no generator to save.
type State struct {
	Step int `json:"step"` // optimiser steps done
	// Best is the best validation so far, at BestStep, -1 before the first; Worse counts
	// the validations since.
	Best     float64 `json:"best"`
	BestStep int     `json:"best_step"`
	Worse    int     `json:"worse"`
	// Skipped counts non-finite steps, BadRun those in a row.
	Skipped int `json:"skipped"`
	BadRun  int `json:"bad_run"`
	// Stopped says why no more steps are taken; empty while they are.
	Stopped string `json:"stopped,omitempty"`
	// Config is the resolved configuration; a resumed run must have the same.
	Config string `json:"config"`
}

// Holder is a pointer to a struct that embeds State.
type Holder interface{ state() *State }

func (s *State) state() *State { return s }

const (
	checkpointFolder = "checkpoints"
	stateFile        = "trainer.json"
	optimizerFile    = "optimizer.safetensors"
)

// writeCheckpoint writes checkpoints/step-N: everything goes to a temporary
// folder (each weight file read back by its writer), which only then gets its
// name. Older checkpoints past keep are removed after that. A step has one state,
// so a checkpoint that is there already is left as it is.
func writeCheckpoint(out string, s Holder, keep int, write func(dir string) error) error {
	root := filepath.Join(out, checkpointFolder)
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	name := filepath.Join(root, fmt.Sprintf("step-%d", s.state().Step))
	if _, err := os.Stat(name); err == nil {
		return nil
	}
	err := replaceFolder(name, func(dir string) error {
		if err := write(dir); err != nil {
			return err
		}
		text, err := data.Marshal(s)
		if err != nil {
			return err
		}
		return replaceFile(filepath.Join(dir, stateFile), append(text, '\n'))
	})
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w", name, err)
	}
	steps, err := checkpointSteps(out)
	if err != nil {
		return err
	}
	for len(steps) > keep {
		if err := removeFolder(filepath.Join(root, fmt.Sprintf("step-%d", steps[0]))); err != nil {
			return err
		}
		steps = steps[1:]
	}
	return nil
}

// checkpointSteps lists the complete checkpoints of a run, oldest first.
func checkpointSteps(out string) ([]int, error) {
	entries, err := os.ReadDir(filepath.Join(out, checkpointFolder))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var steps []int
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), "step-")
		if step, err := strconv.Atoi(number); ok && err == nil {
			steps = append(steps, step)
		}
	}
	slices.Sort(steps)
	return steps, nil
}

// lastCheckpoint reads the state of the newest checkpoint into s and returns its folder, or
// "" when the run has none.
func lastCheckpoint(out string, s Holder) (string, error) {
	steps, err := checkpointSteps(out)
	if err != nil || len(steps) == 0 {
		return "", err
	}
	dir := filepath.Join(out, checkpointFolder, fmt.Sprintf("step-%d", steps[len(steps)-1]))
	path := filepath.Join(dir, stateFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal(text, s); err != nil {
		return "", fmt.Errorf("%s: %w; remove its folder to go on from an older checkpoint", path, data.PlainJSONError(err))
	}
	return dir, nil
}
