package safetensors

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/nlpodyssey/safetensors"
)

// Tensors is a file of tensors or a folder of them.
type Tensors interface {
	Names() []string
	Tensor(name string) (Tensor, error)
}

// Difference says how the tensor called Name differs between two checkpoints. A tensor
// that only one of them has, or has in another shape, has no differing elements.
type Difference struct {
	Name string `json:"name"`
	// Reason is "" when types, shapes and all elements are equal; else "missing" (in
	// the second), "extra" (in the second), "shape", "values" or "dtype" (alone).
	Reason string    `json:"reason,omitempty"`
	Shapes [2][]int  `json:"shapes"`
	DTypes [2]string `json:"dtypes"` // "" where the tensor is not there
	// Elements counts those that differ. MaxAbs is the largest |a - b|, MaxRel the
	// largest |a - b| / max(|a|, |b|). A NaN equals a NaN and is infinitely far from
	// all else, for which math.MaxFloat64 stands.
	Elements int     `json:"elements"`
	MaxAbs   float64 `json:"max_abs"`
	MaxRel   float64 `json:"max_rel"`
}

// Compare returns the differences of all tensors of two checkpoints, sorted by name,
// those that are equal included. Both are read once, a block at a time. progress, if
// there is one, is told after each tensor how many bytes of both are behind it.
func Compare(ctx context.Context, a, b Tensors, progress func(done int)) ([]Difference, error) {
	done := 0
	names := map[string]bool{}
	inB := map[string]bool{}
	for _, name := range a.Names() {
		names[name] = true
	}
	for _, name := range b.Names() {
		inB[name] = true
	}
	var all []Difference
	for _, name := range slices.Sorted(maps.Keys(union(names, inB))) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		d := Difference{Name: name}
		var pair [2]Tensor
		for i, side := range []struct {
			from Tensors
			has  bool
		}{{a, names[name]}, {b, inB[name]}} {
			if !side.has {
				d.Reason = []string{"extra", "missing"}[i]
				continue
			}
			var err error
			if pair[i], err = side.from.Tensor(name); err != nil {
				return nil, err
			}
			d.Shapes[i], d.DTypes[i] = pair[i].Shape, pair[i].DType.String()
			done += pair[i].Bytes()
		}
		if d.Reason == "" {
			if err := d.compare(pair[0], pair[1]); err != nil {
				return nil, err
			}
		}
		all = append(all, d)
		if progress != nil {
			progress(done)
		}
	}
	return all, nil
}

func union(a, b map[string]bool) map[string]bool {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

func (d *Difference) compare(a, b Tensor) error {
	if !slices.Equal(a.Shape, b.Shape) {
		d.Reason = "shape"
		return nil
	}
	parts := make([]Difference, blocks(a.Len()))
	err := inBlocks(a.File+" and "+b.File, a.Len(), func(from, to int) error {
		first, second := borrow(), borrow()
		defer first.giveBack()
		defer second.giveBack()
		x, err := a.numbers(first[:to-from], from)
		if err != nil {
			return err
		}
		y, err := b.numbers(second[:to-from], from)
		part := &parts[from/blockElements]
		for i := range y {
			part.element(x[i], y[i])
		}
		if err == nil && a.DType == b.DType && (a.DType == I64 || a.DType == safetensors.U64) {
			err = onFault(a.File, func() error { part.wide(a.part(from, to), b.part(from, to), x, y); return nil })
		}
		a.drop(from, to)
		b.drop(from, to)
		return err
	})
	for _, p := range parts {
		d.Elements += p.Elements
		d.MaxAbs, d.MaxRel = max(d.MaxAbs, p.MaxAbs), max(d.MaxRel, p.MaxRel)
	}
	switch {
	case d.Elements > 0:
		d.Reason = "values"
	case a.DType != b.DType:
		d.Reason = "dtype"
	}
	return err
}

func (d *Difference) element(x, y float64) {
	if x == y || x != x && y != y {
		return
	}
	d.Elements++
	distance := math.Abs(x - y)
	if distance-distance != 0 { // NaN or infinite
		d.MaxAbs, d.MaxRel = math.MaxFloat64, math.MaxFloat64
		return
	}
	d.MaxAbs = max(d.MaxAbs, distance)
	d.MaxRel = max(d.MaxRel, distance/max(math.Abs(x), math.Abs(y)))
}

// wide adds the 64-bit integers that differ, but not as float64, which has 53 bits. It
// compares them as unsigned: near numbers have near bits whatever their sign.
func (d *Difference) wide(a, b []byte, x, y []float64) {
	for i := range x {
		m, n := binary.LittleEndian.Uint64(a[8*i:]), binary.LittleEndian.Uint64(b[8*i:])
		if m == n || x[i] != y[i] {
			continue
		}
		d.Elements++
		distance := float64(min(m-n, n-m))
		d.MaxAbs = max(d.MaxAbs, distance)
		d.MaxRel = max(d.MaxRel, distance/math.Abs(x[i]))
	}
}

// String says in words what differs.
func (d Difference) String() string {
	switch d.Reason {
	case "missing":
		return fmt.Sprintf("only in the first: %s %v", d.DTypes[0], d.Shapes[0])
	case "extra":
		return fmt.Sprintf("only in the second: %s %v", d.DTypes[1], d.Shapes[1])
	case "shape":
		return fmt.Sprintf("shape %v, in the second %v", d.Shapes[0], d.Shapes[1])
	case "dtype":
		return fmt.Sprintf("%s, in the second %s, same values", d.DTypes[0], d.DTypes[1])
	case "values":
		types := ""
		if d.DTypes[0] != d.DTypes[1] {
			types = fmt.Sprintf(", %s and %s", d.DTypes[0], d.DTypes[1])
		}
		return fmt.Sprintf("%d elements differ, by at most %.3g (relative %.3g)%s", d.Elements, d.MaxAbs, d.MaxRel, types)
	}
	return "equal"
}
