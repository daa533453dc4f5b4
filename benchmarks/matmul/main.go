// Command matmul times the engine's matrix product for matmul.py, which times
// PyTorch's in turn.
//
// It reads one request a line, "FORM ROWS IN OUT THREADS PRECISION SECONDS", and
// answers with the shortest time of a call in seconds. FORM names a product of a
// linear layer with weight [OUT x IN]: "y" = x W^T, "dx" = dy W, "dw" = dy^T x.
package main

import (
	"bufio"
	"fmt"
	"os"
	"time"

	"caper/engine"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var (
			form, precision        string
			rows, in, out, threads int
			seconds                float64
		)
		if _, err := fmt.Sscan(lines.Text(), &form, &rows, &in, &out, &threads, &precision, &seconds); err != nil {
			fmt.Fprintf(os.Stderr, "matmul: request %q: %v\n", lines.Text(), err)
			os.Exit(2)
		}
		fmt.Println(shortest(product(device(threads, precision), form, rows, in, out), seconds))
	}
}

// device keeps one device for each setting: its threads live as long as the process.
func device(threads int, precision string) engine.Device {
	key := fmt.Sprint(threads, precision)
	if devices[key] == nil {
		p, err := engine.ParsePrecision(precision)
		if err != nil {
			fmt.Fprintln(os.Stderr, "matmul:", err)
			os.Exit(2)
		}
		devices[key] = engine.CPU(threads, engine.WithPrecision(p))
	}
	return devices[key]
}

var devices = map[string]engine.Device{}

func product(dev engine.Device, form string, rows, in, out int) func() {
	x, w, y := random(rows, in), random(out, in), random(rows, out)
	switch form {
	case "y":
		return func() { engine.MatMul(dev, y, plain(x), transposed(w), false) }
	case "dx":
		return func() { engine.MatMul(dev, x, plain(y), plain(w), false) }
	case "dw":
		return func() { engine.MatMul(dev, w, transposed(y), plain(x), false) }
	}
	fmt.Fprintf(os.Stderr, "matmul: form %q: want y, dx or dw\n", form)
	os.Exit(2)
	return nil
}

// shortest calls f for that long, five times at least, and returns the shortest call's time in seconds.
func shortest(f func(), seconds float64) float64 {
	f()
	best, end := time.Hour, time.Now().Add(time.Duration(seconds*1e9))
	for calls := 0; calls < 5 || time.Now().Before(end); calls++ {
		start := time.Now()
		f()
		best = min(best, time.Since(start))
	}
	return best.Seconds()
}

func random(rows, cols int) *engine.Tensor {
	r := engine.Random(1, "matmul", uint64(rows), uint64(cols))
	t := &engine.Tensor{Rows: rows, Cols: cols, Stride: cols, F32: make([]float32, rows*cols)}
	for i := range t.F32 {
		t.F32[i] = float32(r.NormFloat64())
	}
	return t
}

func plain(t *engine.Tensor) engine.Operand      { return engine.Operand{Tensor: t} }
func transposed(t *engine.Tensor) engine.Operand { return engine.Operand{Tensor: t, Transposed: true} }
