package engine

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// A profile of launches with known times shows them: a row an operator, rates from
// operations and bytes, and what no operator took.
func TestProfile(t *testing.T) {
	p := NewProfile()
	x, w, y := &Tensor{Rows: 10, Cols: 20, width: 4}, &Tensor{Rows: 30, Cols: 20, width: 4}, &Tensor{Rows: 10, Cols: 30, width: 4}
	first := time.Now()
	at := func(ms int) time.Time { return first.Add(time.Duration(ms) * time.Millisecond) }
	p.Observe(&Launch{Operator: "linear", Phase: Forward, Reads: Tensors{x, w}, Writes: Tensors{y}, FLOPs: 4e6, Start: at(0), Duration: 2 * time.Millisecond})
	p.Observe(&Launch{Operator: "residual", Phase: Forward, Reads: Tensors{y}, Writes: Tensors{y}, Start: at(2), Duration: time.Millisecond})
	p.Observe(&Launch{Operator: "linear", Phase: Backward, Reads: Tensors{x}, Writes: Tensors{w}, FLOPs: 8e6, Start: at(6), Duration: 4 * time.Millisecond})

	var text strings.Builder
	if err := p.WriteTrace(&text); err != nil {
		t.Fatal(err)
	}
	var trace struct {
		TraceEvents []struct {
			Ph, Name string
			Tid      int
			Ts, Dur  float64
			Args     map[string]any
		}
	}
	if err := json.Unmarshal([]byte(text.String()), &trace); err != nil {
		t.Fatalf("%v in %s", err, text.String())
	}
	rows := map[int]string{}
	var found int
	for _, e := range trace.TraceEvents {
		switch e.Ph {
		case "M":
			rows[e.Tid], _ = e.Args["name"].(string)
		case "X":
			found++
			if operator, _, _ := strings.Cut(e.Name, " "); rows[e.Tid] != operator {
				t.Errorf("%s lies in the row of %s", e.Name, rows[e.Tid])
			}
		}
		if e.Name == "linear forward" && (e.Ts != 0 || e.Dur != 2000 || e.Args["GFLOP/s"] != 2.0 || e.Args["shapes"] != "[10 x 20] [30 x 20] -> [10 x 30]") {
			t.Errorf("linear forward is %+v", e)
		}
	}
	if found != 3 {
		t.Errorf("%d launches, want 3", found)
	}

	text.Reset()
	if err := p.WriteTable(&text); err != nil {
		t.Fatal(err)
	}
	fields := func(line string) string { return strings.Join(strings.Fields(line), " ") }
	lines := strings.Split(text.String(), "\n")
	for i, want := range []string{
		"operator phase launches ms share us each GFLOP/s GB/s",
		"linear backward 1 4.0 40.0 % 4000.0 2.0 0.0",
		"linear forward 1 2.0 20.0 % 2000.0 2.0 0.0",
		"residual forward 1 1.0 10.0 % 1000.0 0.0 0.0",
		"outside operators 3.0 30.0 %",
	} {
		if fields(lines[i]) != want {
			t.Errorf("line %d is %q, want %q", i, fields(lines[i]), want)
		}
	}
}
