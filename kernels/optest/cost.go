package optest

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"caper/engine"
)

// launches collects what an observed device reports.
type launches []engine.Launch

func (l *launches) Observe(launch *engine.Launch) { *l = append(*l, *launch) }

// cost checks what the operator says of its cost.
func (c Case) cost(inputs [][]float64, want result) error {
	var seen launches
	f := newFixture(c, engine.Observed(engine.CPU(1), &seen), inputs)
	got := f.step(all)
	errs := []error{same("observed", got, want)}

	var walked launches
	newFixture(c, engine.Observed(engine.Shapes(4), &walked), inputs).run(all)
	if a, b := describe(seen), describe(walked); !slices.Equal(a, b) {
		errs = append(errs, fmt.Errorf("launches on a device of shapes %v, on the CPU %v", b, a))
	}

	// Without what the operator does not save, the backward pass gives the same.
	f.before = func() {
		for _, l := range seen {
			for _, x := range slices.Concat(l.Reads, l.Writes) {
				if !holds(l.Saves, x) && !holdsAny(seen, x) {
					fillWith(x.Whole(), math.NaN())
				}
			}
		}
	}
	seen = nil
	errs = append(errs, same("what is not saved gone", result{grad: f.step(all).grad}, result{grad: want.grad}))

	// Without one of what it saves, the backward pass gives something else.
	for i := range count(seen) {
		f.before = func() { fillWith(saved(seen)[i].Whole(), math.NaN()) }
		seen = nil
		if grad := f.step(all).grad; same("", result{grad: grad}, result{grad: want.grad}) == nil && !empty(grad) {
			errs = append(errs, fmt.Errorf("saves %s, number %d, which the backward pass does not read", saved(seen)[i], i))
		}
	}
	return errors.Join(errs...)
}

func describe(l launches) []string {
	var text []string
	for _, x := range l {
		text = append(text, fmt.Sprintf("%s %s %s -> %s saves %s: %g FLOP, %g again, %g B", x.Operator, x.Phase, x.Reads, x.Writes, x.Saves, x.FLOPs, x.Again, x.Bytes()))
	}
	return text
}

// saved returns what the forward launches save, in order.
func saved(l launches) engine.Tensors {
	var all engine.Tensors
	for _, x := range l {
		all = append(all, x.Saves...)
	}
	return all
}

func count(l launches) int { return len(saved(l)) }

// holds reports whether x shares its storage with one of ts.
func holds(ts engine.Tensors, x *engine.Tensor) bool {
	return slices.ContainsFunc(ts, func(y *engine.Tensor) bool { return x.Whole() == y.Whole() })
}

func holdsAny(l launches, x *engine.Tensor) bool { return holds(saved(l), x) }

func empty(grads [][]float64) bool {
	return !slices.ContainsFunc(grads, func(g []float64) bool { return len(g) > 0 })
}
