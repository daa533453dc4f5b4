package prm

import (
	"caper/train/run"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A step whose loss is not finite changes neither weights nor moments, is counted,
// and leaves its inputs for inspection.
func TestNonFiniteStepIsSkipped(t *testing.T) {
	r := opened(t, smallConfig(t))
	if _, err := r.step(r.take()); err != nil {
		t.Fatal(err)
	}
	taken := r.run.Moments.Step
	score := r.run.Model.Score.F32
	good := score[3]
	score[3] = float32(math.NaN())
	before := weightBits(r)
	m, err := r.step(r.take())
	if err != nil || !m.Skipped || m.Loss != nil || m.GradNorm != nil || m.Step != 2 {
		t.Fatalf("metrics %+v, error %v", m, err)
	}
	if !slices.Equal(before, weightBits(r)) || r.run.Moments.Step != taken || r.state.Skipped != 1 || r.state.BadRun != 1 {
		t.Errorf("the skipped step left traces: %+v, %d optimiser steps", r.state, r.run.Moments.Step)
	}
	dump := fileText(t, r.config.Train.Out, "bad-step-2.json")
	if !strings.Contains(dump, "CREATE TABLE") || !strings.Contains(dump, "SELECT") || !strings.Contains(dump, r.config.Model.ClauseToken) {
		t.Errorf("dump: %s", dump)
	}
	// What is saved in between counts the optimiser's steps right.
	if err := r.run.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	score[3] = good
	if m, err := r.step(r.take()); err != nil || m.Skipped || r.state.BadRun != 0 || r.state.Skipped != 1 || r.run.Moments.Step != taken+1 {
		t.Errorf("after it: metrics %+v, error %v, state %+v", m, err, r.state)
	}
}

// weightBits returns weights and moments so that NaNs compare.
func weightBits(r *prm) []uint32 {
	var bits []uint32
	for i, p := range r.run.Model.Trainable() {
		for _, x := range [][]float32{p.F32, r.run.Moments.M[i].F32, r.run.Moments.V[i].F32} {
			for _, v := range x {
				bits = append(bits, math.Float32bits(v))
			}
		}
	}
	return bits
}

// A resumed run corrects the moments by the optimiser's own steps, without the
// skipped ones.
func TestSkippedStepsDoNotCountForTheOptimiser(t *testing.T) {
	c := smallConfig(t)
	r := opened(t, c)
	for range 2 {
		if _, err := r.step(r.take()); err != nil {
			t.Fatal(err)
		}
	}
	r.state.Skipped, r.state.Step = 1, r.state.Step+1
	if err := r.run.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	resumed, err := open(t.Context(), c, run.Options{Resume: true})
	if err != nil {
		t.Fatal(err)
	}
	defer resumed.run.Close()
	if !slices.Equal(weightBits(r), weightBits(resumed)) || resumed.run.Moments.Step != 2 || resumed.state != r.state {
		t.Errorf("%d optimiser steps, state %+v, want 2 and %+v", resumed.run.Moments.Step, resumed.state, r.state)
	}
}

func TestTooManyBadStepsStopTheRun(t *testing.T) {
	c := smallConfig(t, "train.lr=1e30", "train.warmup=0", "train.max_bad_steps=3", "train.epochs=5")
	_, err := Train(t.Context(), c, run.Options{})
	if err == nil || !strings.Contains(err.Error(), "3 steps in a row") || !strings.Contains(err.Error(), "train.lr") {
		t.Fatalf("error %v", err)
	}
	dumps, err := filepath.Glob(filepath.Join(c.Train.Out, "bad-step-*.json"))
	if err != nil || len(dumps) != 3 {
		t.Errorf("dumps %v, error %v", dumps, err)
	}
	if _, err := os.Stat(filepath.Join(c.Train.Out, "model")); !os.IsNotExist(err) {
		t.Error("a broken model was exported")
	}
}
