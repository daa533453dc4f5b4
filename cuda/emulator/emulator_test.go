package emulator_test

import (
	"context"
	"errors"
	"math"
	"os"
	"testing"
	"unsafe"

	"caper/cuda/emulator"
)

// build compiles files of testdata.
func build(t testing.TB, races bool, files ...string) *emulator.Library {
	t.Helper()
	var sources []emulator.Source
	for _, name := range files {
		sources = append(sources, source(t, name))
	}
	return buildSources(t, races, sources...)
}

func source(t testing.TB, name string) emulator.Source {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return emulator.Source{Name: name, Text: string(text)}
}

func buildSources(t testing.TB, races bool, sources ...emulator.Source) *emulator.Library {
	t.Helper()
	lib, err := emulator.Build(context.Background(), emulator.Options{Races: races}, sources...)
	if errors.Is(err, emulator.ErrNoCompiler) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

func kernel(t testing.TB, lib *emulator.Library, name string) *emulator.Kernel {
	t.Helper()
	k, err := lib.Kernel(name)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// alloc returns memory for n elements of NaN, freed when the test ends.
func alloc[T any](t testing.TB, n int) (*emulator.Memory, []T) {
	t.Helper()
	var zero T
	m, err := emulator.Alloc(n * int(unsafe.Sizeof(zero)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Free)
	return m, emulator.Of[T](m)
}

func toBF16(f float32) uint16 {
	u := math.Float32bits(f)
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

func fromBF16(x uint16) float32 { return math.Float32frombits(uint32(x) << 16) }

// everyCheck runs a test without and with the checks for races.
func everyCheck(t *testing.T, f func(t *testing.T, races bool)) {
	t.Run("plain", func(t *testing.T) { f(t, false) })
	t.Run("races", func(t *testing.T) { f(t, true) })
}

var seeds = []uint64{0, 1, 2, 3}

// matrix returns bf16 memory [rows, cols] of small numbers that differ by seed.
func matrix(t testing.TB, rows, cols, seed int) (*emulator.Memory, []uint16) {
	m, x := alloc[uint16](t, rows*cols)
	for i := range x {
		x[i] = toBF16(float32((i*37+seed*11)%101-50) * 0.01)
	}
	return m, x
}

// tensorMap maps bf16 with a swizzle of 128 bytes.
func tensorMap(t testing.TB, lib *emulator.Library, m *emulator.Memory, sizes, strides, box []int) *emulator.TensorMap {
	t.Helper()
	tm, err := lib.TensorMap(m, emulator.BFloat16, sizes, strides, box, 128)
	if err != nil {
		t.Fatal(err)
	}
	return tm
}
