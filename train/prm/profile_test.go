package prm

import (
	"caper/train/run"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// A profiled run leaves a trace with a row for each operator, sums, and profiles of Go;
// and trains the same bits as one that is not.
func TestProfile(t *testing.T) {
	c := smallConfig(t, "train.max_steps=2")
	trained(t, c, run.Options{})
	measured := c
	measured.Train.Out = filepath.Join(t.TempDir(), "measured")
	dir := filepath.Join(t.TempDir(), "profile")
	trained(t, measured, run.Options{Profile: dir})
	sameRun(t, measured.Train.Out, c.Train.Out)
	for _, name := range []string{"cpu.pprof", "memory.pprof"} {
		if fileText(t, dir, name) == "" {
			t.Errorf("%s is empty", name)
		}
	}
	var trace struct {
		TraceEvents []struct{ Ph, Name string }
	}
	if err := json.Unmarshal([]byte(fileText(t, dir, "trace.json")), &trace); err != nil {
		t.Fatal(err)
	}
	table := fileText(t, dir, "operators.txt")
	for _, operator := range []string{"linear forward", "linear backward", "attention backward", "deltarule forward", "marginloss backward", "adamw update", "gradnorm update"} {
		found := false
		for _, e := range trace.TraceEvents {
			found = found || e.Ph == "X" && e.Name == operator
		}
		name, phase, _ := strings.Cut(operator, " ")
		inTable := false
		for line := range strings.Lines(table) {
			f := strings.Fields(line)
			inTable = inTable || len(f) > 1 && f[0] == name && f[1] == phase
		}
		if !found || !inTable {
			t.Errorf("%s: in the trace %v, in the table %v", operator, found, inTable)
		}
	}
}
