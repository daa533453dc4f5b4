package causalconv

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"caper/engine"
	"caper/kernels/optest"
)

// Decoding sequences in any pieces, in any company, gives what Forward gives on each
// as a whole: the specification to float64, the C code to float32.
func TestDecode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		proveDecoding(t, maxTaps, map[engine.Device]float64{engine.Reference(): 1e-12, engine.CPU(2): 2e-6})
	})
}

// On a GPU a row's window is the same bf16 either way, and so is the result.
func TestDecodeOnCUDA(t *testing.T) {
	dev := optest.CUDA(t)
	rapid.Check(t, func(t *rapid.T) { proveDecoding(t, cudaTaps, map[engine.Device]float64{dev: 0}) })
	if err := engine.Wait(dev); err != nil {
		t.Error(err)
	}
}

// proveDecoding draws a case with up to so many taps, for devices with their tolerances.
func proveDecoding(t *rapid.T, most int, devices map[engine.Device]float64) {
	channels, taps := rapid.SampledFrom([]int{1, 16, 70, 130}).Draw(t, "channels"), rapid.IntRange(1, most).Draw(t, "taps")
	var tree engine.Tree
	for range rapid.IntRange(1, 4).Draw(t, "sequences") {
		tree.AddSegment(-1, make([]int32, rapid.IntRange(1, 20).Draw(t, "length")))
	}
	r := engine.Random(rapid.Uint64().Draw(t, "seed"), "decode", 0, 0)
	x, w := make([]float64, tree.Rows()*channels), make([]float64, channels*taps)
	for _, s := range [][]float64{x, w} {
		for i := range s {
			s[i] = optest.RoundBF16(r.NormFloat64())
		}
	}
	for dev, tolerance := range devices {
		tape, decoding := engine.NewTape(dev), engine.NewTape(dev)
		defer tape.Close()
		defer decoding.Close()
		tape.Inference, tape.Poison, decoding.Inference, decoding.Poison = true, true, true, true
		weight := tensor(dev, channels, taps, func(i, j int) float64 { return w[i*taps+j] })
		whole := Forward(tape, tensor(dev, tree.Rows(), channels, func(i, j int) float64 { return x[i*channels+j] }), weight, &tree)
		want := elements(whole)
		c := NewCache(dev, len(tree.Start), channels, taps)
		done := make([]int32, len(tree.Start))
		for {
			var s Steps
			var rows []int32
			for i, n := range tree.Len {
				if done[i] == n || !rapid.Bool().Draw(t, "goes on") && len(rows) > 0 {
					continue
				}
				from, piece := int32(i), int32(rapid.IntRange(1, int(n-done[i])).Draw(t, "piece"))
				if done[i] == 0 {
					from = -1
				}
				s.Add(int(piece), from, int32(i))
				for range piece {
					rows = append(rows, tree.Start[i]+done[i])
					done[i]++
				}
			}
			if len(rows) == 0 {
				break
			}
			in := tensor(dev, len(rows), channels, func(i, j int) float64 { return x[int(rows[i])*channels+j] })
			decoding.Reset()
			y := elements(Decode(decoding, in, weight, c, &s))
			for i, row := range rows {
				for j := range channels {
					got, want := y[i*channels+j], want[int(row)*channels+j]
					if !(math.Abs(got-want) <= tolerance) {
						t.Fatalf("%s: row %d, channel %d: %g, want %g", dev.Name(), row, j, got, want)
					}
				}
			}
		}
	}
}

func tensor(dev engine.Device, rows, cols int, at func(i, j int) float64) *engine.Tensor {
	x, values := engine.NewFrozen(dev, "x", rows, cols).Tensor, make([]float32, rows*cols)
	for e := range values {
		values[e] = float32(at(e/cols, e%cols))
	}
	x.Write(values)
	return x
}

func elements(x *engine.Tensor) []float64 {
	s := make([]float64, x.Rows*x.Cols)
	if x.F64 != nil {
		copy(s, x.F64)
		return s
	}
	single := make([]float32, len(s))
	x.Read(single)
	for e, v := range single {
		s[e] = float64(v)
	}
	return s
}
