package causalconv

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"caper/engine"
)

// Decoding sequences in any pieces, in any company, gives what Forward gives on each
// as a whole: the specification to float64, the C code to float32.
func TestDecode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		channels, taps := rapid.SampledFrom([]int{1, 16, 70, 130}).Draw(t, "channels"), rapid.IntRange(1, maxTaps).Draw(t, "taps")
		var tree engine.Tree
		for range rapid.IntRange(1, 4).Draw(t, "sequences") {
			tree.AddSegment(-1, make([]int32, rapid.IntRange(1, 20).Draw(t, "length")))
		}
		r := engine.Random(rapid.Uint64().Draw(t, "seed"), "decode", 0, 0)
		x, w := make([]float64, tree.Rows()*channels), make([]float64, channels*taps)
		for _, s := range [][]float64{x, w} {
			for i := range s {
				s[i] = float64(float32(r.NormFloat64()))
			}
		}
		for dev, tolerance := range map[engine.Device]float64{engine.Reference(): 1e-12, engine.CPU(2): 2e-6} {
			tape := engine.NewTape(dev)
			tape.Inference, tape.Poison = true, true
			weight := tensor(dev, channels, taps, func(i, j int) float64 { return w[i*taps+j] })
			want := Forward(tape, tensor(dev, tree.Rows(), channels, func(i, j int) float64 { return x[i*channels+j] }), weight, &tree)
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
				y := Decode(tape, in, weight, c, &s)
				for i, row := range rows {
					for j := range channels {
						got, want := y.At(i, j), want.At(int(row), j)
						if !(math.Abs(got-want) <= tolerance) {
							t.Fatalf("%s: row %d, channel %d: %g, want %g", dev.Name(), row, j, got, want)
						}
					}
				}
			}
		}
	})
}

func tensor(dev engine.Device, rows, cols int, at func(i, j int) float64) *engine.Tensor {
	x := engine.NewFrozen(dev, "x", rows, cols).Tensor
	for i := range rows {
		for j := range cols {
			x.Set(i, j, at(i, j))
		}
	}
	return x
}
