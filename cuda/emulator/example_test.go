package emulator_test

import (
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"testing"
	"unsafe"

	"caper/cuda/emulator"
)

// build compiles files of testdata, once for each kind of check.
func build(t testing.TB, checks emulator.Checks, files ...string) *emulator.Library {
	t.Helper()
	var sources []emulator.Source
	for _, name := range files {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, emulator.Source{Name: name, Text: string(text)})
	}
	lib, err := emulator.Build(context.Background(), emulator.Options{Checks: checks}, sources...)
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

// everyCheck runs a test with every kind of check.
func everyCheck(t *testing.T, f func(t *testing.T, checks emulator.Checks)) {
	for name, checks := range map[string]emulator.Checks{"plain": emulator.Plain, "alignment": emulator.Alignment, "races": emulator.Races} {
		t.Run(name, func(t *testing.T) { f(t, checks) })
	}
}

var seeds = []uint64{0, 1, 2, 3}

func TestReduction(t *testing.T) {
	everyCheck(t, func(t *testing.T, checks emulator.Checks) {
		k := kernel(t, build(t, checks, "reduction.cu"), "vector_sum")
		const n, blocks = 5003, 7
		x, xs := alloc[float32](t, n)
		var want float64
		for i := range xs {
			xs[i] = float32(i%1000)*1e-3 - 0.3
			want += float64(xs[i])
		}
		var first float32
		for _, seed := range seeds {
			partial, _ := alloc[float32](t, blocks)
			sum, got := alloc[float32](t, 1)
			count, c := alloc[uint32](t, 1)
			c[0] = 0
			l := emulator.Launch{Grid: [3]int{blocks}, Block: [3]int{256}, Seed: seed}
			if err := k.Launch(l, x, partial, count, sum, int32(n)); err != nil {
				t.Fatal(err)
			}
			if d := math.Abs(float64(got[0]) - want); !(d < 1e-2) {
				t.Errorf("seed %d: sum %g, want %g", seed, got[0], want)
			}
			if seed == 0 {
				first = got[0]
			}
			if got[0] != first {
				t.Errorf("seed %d: sum %g, in natural order %g", seed, got[0], first)
			}
		}
	})
}

// matrix returns bf16 memory [rows, cols] of small numbers that differ by seed.
func matrix(t testing.TB, rows, cols, seed int) (*emulator.Memory, []uint16) {
	m, x := alloc[uint16](t, rows*cols)
	for i := range x {
		x[i] = toBF16(float32((i*37+seed*11)%101-50) * 0.01)
	}
	return m, x
}

// checkProduct compares c [m, n] with a [m, k] b [n, k]^T. The result is rounded to 8
// bits, so the error is at most 2^-9 of it, and that of sums in float32.
func checkProduct(t *testing.T, c, a, b []uint16, m, n, k int) {
	t.Helper()
	for i := range m {
		for j := range n {
			var want float64
			for l := range k {
				want += float64(fromBF16(a[i*k+l])) * float64(fromBF16(b[j*k+l]))
			}
			if got := float64(fromBF16(c[i*n+j])); !(math.Abs(got-want) <= math.Abs(want)/256+1e-4) {
				t.Fatalf("element %d, %d is %g, want %g", i, j, got, want)
			}
		}
	}
}

func TestGEMMOfWarps(t *testing.T) {
	everyCheck(t, func(t *testing.T, checks emulator.Checks) {
		k := kernel(t, build(t, checks, "gemm_mma.cu"), "gemm_mma")
		const m, n, depth = 70, 66, 96
		a, as := matrix(t, m, depth, 1)
		b, bs := matrix(t, n, depth, 2)
		var first []uint16
		for _, seed := range seeds {
			c, got := alloc[uint16](t, m*n)
			l := emulator.Launch{Grid: [3]int{2, 2}, Block: [3]int{128}, Shared: 2 * 3 * 64 * 40 * 2, Seed: seed}
			if err := k.Launch(l, a, b, c, int32(m), int32(n), int32(depth)); err != nil {
				t.Fatal(err)
			}
			if first == nil {
				checkProduct(t, got, as, bs, m, n, depth)
				first = got
			} else if !slices.Equal(got, first) {
				t.Errorf("seed %d: other bits than in natural order", seed)
			}
		}
	})
}

func TestGEMMOfWarpgroups(t *testing.T) {
	everyCheck(t, func(t *testing.T, checks emulator.Checks) {
		lib := build(t, checks, "gemm_wgmma.cu")
		k := kernel(t, lib, "gemm_wgmma")
		const m, n, depth = 100, 254, 384
		a, as := matrix(t, m, depth, 1)
		b, bs := matrix(t, n, depth, 2)
		aMap := tensorMap(t, lib, a, []int{depth, m}, []int{2 * depth}, []int{64, 128})
		bMap := tensorMap(t, lib, b, []int{depth, n}, []int{2 * depth}, []int{64, 256})
		var first []uint16
		for _, seed := range seeds {
			c, got := alloc[uint16](t, m*n)
			l := emulator.Launch{Block: [3]int{384}, Shared: 4 * (128 + 256) * 64 * 2, Seed: seed}
			if err := k.Launch(l, aMap, bMap, c, int32(m), int32(n), int32(depth)); err != nil {
				t.Fatal(err)
			}
			if first == nil {
				checkProduct(t, got, as, bs, m, n, depth)
				first = got
			} else if !slices.Equal(got, first) {
				t.Errorf("seed %d: other bits than in natural order", seed)
			}
		}
	})
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
