package optest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"

	"caper/cuda/emulator"
	"caper/cuda/mock"
	"caper/engine"
)

// variable names the GPU that tests of CUDA kernels run on: a number, or "emulated" for the
// processor. Without it they are skipped: to build all kernels for the processor takes minutes.
const variable = "CAPER_TEST_GPU"

func skipUnlessWanted(t testing.TB) {
	t.Helper()
	if os.Getenv(variable) == "" {
		t.Skip(variable + "=emulated runs it, as make test-cuda does")
	}
}

// CUDA returns the GPU that CAPER_TEST_GPU names: one by its number, or an emulated one, on
// which kernels run on the processor. The test is skipped where it names none, or where the
// emulator has no compiler. All tests of a process share it.
func CUDA(t testing.TB) *engine.GPU {
	t.Helper()
	skipUnlessWanted(t)
	g, err := testGPU()
	if errors.Is(err, emulator.ErrNoCompiler) || errors.Is(err, mock.ErrNoCompiler) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	return g
}

// emulated is the emulated GPU, nil on a card.
var emulated *mock.Mock

var testGPU = sync.OnceValues(func() (*engine.GPU, error) {
	number := os.Getenv(variable)
	if number == "emulated" {
		if err := emulate(); err != nil {
			return nil, err
		}
		number = "0"
	}
	ordinal, err := strconv.Atoi(number)
	if err != nil {
		return nil, fmt.Errorf("%s=%s: want the number of a GPU, or emulated", variable, number)
	}
	return engine.CUDA(ordinal)
})

// emulate starts the mock with the kernels of all operators in the program.
func emulate() error {
	var texts []emulator.Source
	for _, s := range engine.KernelSources() {
		texts = append(texts, emulator.Source(s))
	}
	m, err := mock.Start()
	if err != nil {
		return err
	}
	if len(texts) > 0 {
		library, err := emulator.Build(context.Background(), emulator.Options{}, texts...)
		if err != nil {
			return err
		}
		if err := m.AddKernels(library.Path); err != nil {
			return err
		}
	}
	emulated = m
	return nil
}

// checkCUDA returns all that is wrong with the case on a GPU.
func checkCUDA(c Case, g *engine.GPU) error {
	inputs := c.draw()
	for i, in := range c.Inputs {
		for e, x := range inputs[i] {
			if !in.Float32 {
				inputs[i][e] = RoundBF16(x)
			}
		}
	}
	reference, f := newFixture(c, engine.Reference(), inputs), newFixture(c, g, inputs)
	reference.rounded = true
	defer f.tape.Close()
	want, got := reference.step(all), f.step(all)
	errs := []error{
		c.compareTo(got, want, true),
		same("the tape's second step", f.step(all), got),
		f.inference(got),
		f.added(got),
		f.unseeded(),
		f.frozen(got),
		f.orders(got),
	}
	strided := newFixture(c, g, inputs)
	defer strided.tape.Close()
	strided.gap = 8 // views begin at multiples of 16 bytes
	errs = append(errs, same("strided inputs", strided.step(all), got), strided.beside())
	if c.RowWise && emulated != nil { // cuBLASLt chooses by the number of rows
		errs = append(errs, f.rowsAlone(got))
	}
	if len(want.out) > 1 {
		for j := range want.out {
			errs = append(errs, c.compareTo(f.step(j), reference.step(j), true))
		}
	}
	return errors.Join(append(errs, engine.Wait(g))...)
}

// orders checks that the order in which an emulated GPU runs threads changes nothing.
func (f *fixture) orders(want result) error {
	if emulated == nil {
		return nil
	}
	defer emulated.SetOrder(0)
	for seed := range uint64(3) {
		emulated.SetOrder(seed + 1)
		if err := same(fmt.Sprintf("order %d of threads", seed+1), f.step(all), want); err != nil {
			return err
		}
	}
	return nil
}
