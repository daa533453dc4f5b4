package optest

import (
	"strings"
	"testing"

	"caper/engine"
)

// square is an operator in Go, y = x^2 w for a weight w [1, 1], that can be broken on
// purpose.
type square struct {
	x, w, y *engine.Tensor
	fault   string
}

func (o *square) Forward(t *engine.Tape) {
	if !t.Reference() && !t.CPU() {
		return
	}
	for r := range o.x.Rows {
		for c := range o.x.Cols {
			if o.fault == "element not written" && !t.Reference() && c == 1 {
				continue
			}
			v := o.x.At(r, c)
			o.y.Set(r, c, v*v*o.w.At(0, 0))
			if o.fault == "rows meet" && !t.Reference() {
				o.y.Set(r, c, v*v*o.w.At(0, 0)*(1+float64(o.x.Rows)/1e6))
			}
			if o.fault == "result off" && !t.Reference() {
				o.y.Set(r, c, v*v*o.w.At(0, 0)*1.0001)
			}
		}
	}
	if o.fault == "ignores stride" && !t.Reference() && o.y.Rows > 1 {
		o.y.Set(1, 0, float64(o.x.F32[o.x.Cols]*o.x.F32[o.x.Cols])*o.w.At(0, 0))
	}
	if o.fault == "writes beside" && o.x.Stride > o.x.Cols {
		o.x.F32[o.x.Cols] = 0
	}
	if o.fault == "allocates" {
		o.y = t.Columns(o.y, 0, o.y.Cols)
		sink = make([]float64, 100)
	}
}

func (o *square) Cost() engine.Cost {
	in := engine.Tensors{o.x, o.w}
	c := engine.Cost{Operator: "square", Reads: in, Writes: engine.Tensors{o.y}, Saves: in}
	switch {
	case o.fault == "saves too little":
		c.Saves = in[1:]
	case o.fault == "saves too much":
		c.Saves = engine.Tensors{o.x, o.w, o.y}
	case o.fault == "counts elements" && o.x.Stored():
		c.Forward = 1
	}
	return c
}

var sink []float64

func (o *square) Backward(t *engine.Tape) {
	dy := t.Gradient(o.y)
	if dy == nil {
		return
	}
	dx, dw := t.AddTo(o.x), t.AddTo(o.w)
	factor := 2.0
	switch {
	case o.fault == "specification's gradient off" && t.Reference():
		factor = 2.001
	case o.fault == "gradient off" && !t.Reference():
		factor = 2.001
	}
	for r := range dy.Rows {
		for c := range dy.Cols {
			v, d := o.x.At(r, c), dy.At(r, c)
			if dx != nil {
				was := dx.At(r, c)
				if o.fault == "overwrites" {
					was = 0
				}
				dx.Set(r, c, was+factor*v*o.w.At(0, 0)*d)
			}
			if dw != nil && !(o.fault == "frozen input matters" && dx == nil) {
				dw.Set(0, 0, dw.At(0, 0)+v*v*d)
			}
		}
	}
}

// Every fault must be found, and none in the sound operator.
func TestCheckFindsFaults(t *testing.T) {
	for fault, want := range map[string]string{
		"":                             "",
		"element not written":          "result 0: element 1 is NaN",
		"result off":                   "result 0",
		"rows meet":                    "row 0 alone",
		"ignores stride":               "two threads and strided inputs",
		"writes beside":                "x: wrote beside the view",
		"allocates":                    "allocates",
		"specification's gradient off": "specification: gradient of x",
		"gradient off":                 "gradient of x",
		"overwrites":                   "gradient of x added to 0.5",
		"frozen input matters":         "x frozen",
		"saves too little":             "what is not saved gone",
		"saves too much":               "which the backward pass does not read",
		"counts elements":              "on a device of shapes",
	} {
		err := Check(Case{
			Name:   fault,
			Inputs: []Input{{Name: "x", Rows: 3, Cols: 4}, {Name: "w", Rows: 1, Cols: 1, Tolerance: 1e-5}},
			Forward: func(t *engine.Tape, in, out []*engine.Tensor) []*engine.Tensor {
				o := engine.NewOp[square](t)
				*o = square{x: in[0], w: in[1], y: t.New(in[0].Rows, in[0].Cols), fault: fault}
				t.Run(o)
				return append(out, o.y)
			},
			// One rounding in float32; the rest of the work is in float64.
			Tolerance: 1e-6,
			RowWise:   true,
		})
		switch {
		case want == "" && err != nil:
			t.Errorf("sound operator: %v", err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("fault %q: got %v, want %q", fault, err, want)
		}
	}
}
