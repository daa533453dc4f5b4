package lora

import (
	"runtime"
	"slices"
	"sync"

	"caper/model/decoder"
)

// Merge adds the adapter to its targets' weights, each element rounded once, so that
// the model computes without it. Unmerge undoes it to the bit; for that the weights are
// kept beside.
func (a *Adapter) Merge() {
	if a.Merged() {
		return
	}
	for i, l := range a.targets {
		a.kept = append(a.kept, kept{slices.Clone(l.F32), slices.Clone(l.F64)})
		d := newDelta(a.low[i])
		for r := range l.Rows {
			if l.F32 != nil {
				d.Add(l.F32[r*l.Stride:][:l.Cols], r*l.Cols)
			} else {
				d.addRow(l.F64[r*l.Stride:][:l.Cols], r, 0)
			}
		}
		l.Adapter = nil
	}
}

// kept is a target's own weight while the adapter is merged into it.
type kept struct {
	f32 []float32
	f64 []float64
}

// Unmerge takes the adapter out of the weights again.
func (a *Adapter) Unmerge() {
	for i, k := range a.kept {
		copy(a.targets[i].F32, k.f32)
		copy(a.targets[i].F64, k.f64)
		a.targets[i].Adapter = a.low[i]
	}
	a.kept = nil
}

// Merged reports whether the adapter is in the weights at present.
func (a *Adapter) Merged() bool { return a.kept != nil }

// Deltas returns what the adapter adds to weights, by their names.
func (a *Adapter) Deltas() map[string]*Delta {
	all := map[string]*Delta{}
	for i, l := range a.targets {
		all[l.Name] = newDelta(a.low[i])
	}
	return all
}

// Delta is the matrix Scale B A that an adapter adds to a weight, ready to be computed
// row by row.
type Delta struct {
	cols int
	a    [][]float64 // rows of A
	b    [][]float64 // rows of Scale B
}

// newDelta prepares the product.
func newDelta(low *decoder.LowRank) *Delta {
	d := &Delta{cols: low.A.Cols}
	for k := range low.A.Rows {
		row := make([]float64, low.A.Cols)
		for j := range row {
			row[j] = low.A.At(k, j)
		}
		d.a = append(d.a, row)
	}
	for r := range low.B.Rows {
		row := make([]float64, low.B.Cols)
		for k := range row {
			row[k] = low.Scale * low.B.At(r, k)
		}
		d.b = append(d.b, row)
	}
	return d
}

// Add adds the elements from, from+1, ... of the matrix, row after row, to weights.
// They are summed in float64 and rounded once.
func (d *Delta) Add(weights []float32, from int) {
	workers := runtime.GOMAXPROCS(0)
	share := (len(weights) + workers - 1) / workers
	var wait sync.WaitGroup
	for first := 0; first < len(weights); first += share {
		part, at := weights[first:min(first+share, len(weights))], from+first
		wait.Go(func() { d.add(part, at) })
	}
	wait.Wait()
}

func (d *Delta) add(weights []float32, from int) {
	sums := make([]float64, d.cols)
	for len(weights) > 0 {
		row, col := from/d.cols, from%d.cols
		n := min(len(weights), d.cols-col)
		for j, x := range weights[:n] {
			sums[j] = float64(x)
		}
		d.addRow(sums[:n], row, col)
		for j, x := range sums[:n] {
			weights[j] = float32(x)
		}
		weights, from = weights[n:], from+n
	}
}

// addRow adds the elements of a row from col on.
func (d *Delta) addRow(sums []float64, row, col int) {
	for k, factor := range d.b[row] {
		for j, x := range d.a[k][col:][:len(sums)] {
			sums[j] += factor * x
		}
	}
}
