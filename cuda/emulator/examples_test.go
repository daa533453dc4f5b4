package emulator_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"caper/cuda/emulator"
)

// example is a kernel with its launch and the check of what it gives.
type example struct {
	file, kernel string
	launch       emulator.Launch
	// prepare returns the arguments, and a function that judges the results and returns
	// their bits.
	prepare func(t testing.TB, lib *emulator.Library) ([]any, func() ([]uint32, error))
}

var examples = []example{
	{"reduction.cu", "vector_sum", emulator.Launch{Grid: [3]int{7}, Block: [3]int{256}}, prepareSum},
	{"gemm_mma.cu", "gemm_mma", emulator.Launch{Grid: [3]int{2, 2}, Block: [3]int{128}, Shared: 2 * 3 * 64 * 40 * 2}, prepareWarps},
	{"gemm_wgmma.cu", "gemm_wgmma", emulator.Launch{Block: [3]int{384}, Shared: 4 * (128 + 256) * 64 * 2}, prepareWarpgroups},
}

func prepareSum(t testing.TB, lib *emulator.Library) ([]any, func() ([]uint32, error)) {
	const n = 5003
	x, xs := alloc[float32](t, n)
	var want float64
	for i := range xs {
		xs[i] = float32(i%1000)*1e-3 - 0.3
		want += float64(xs[i])
	}
	partial, _ := alloc[float32](t, 7)
	count, c := alloc[uint32](t, 1)
	c[0] = 0
	sum, got := alloc[float32](t, 1)
	return []any{x, partial, count, sum, int32(n)}, func() ([]uint32, error) {
		if d := math.Abs(float64(got[0]) - want); !(d < 1e-2) { // 5,003 sums of up to 1e3, each off by 2^-24 of it
			return nil, fmt.Errorf("sum %g, want %g", got[0], want)
		}
		return []uint32{math.Float32bits(got[0])}, nil
	}
}

func prepareWarps(t testing.TB, _ *emulator.Library) ([]any, func() ([]uint32, error)) {
	const m, n, depth = 70, 66, 128
	a, as := matrix(t, m, depth, 1)
	b, bs := matrix(t, n, depth, 2)
	c, got := alloc[uint16](t, m*n)
	return []any{a, b, c, int32(m), int32(n), int32(depth)}, func() ([]uint32, error) { return checkProduct(got, as, bs, m, n, depth) }
}

func prepareWarpgroups(t testing.TB, lib *emulator.Library) ([]any, func() ([]uint32, error)) {
	const m, n, depth = 100, 254, 384
	a, as := matrix(t, m, depth, 1)
	b, bs := matrix(t, n, depth, 2)
	c, got := alloc[uint16](t, m*n)
	aMap := tensorMap(t, lib, a, []int{depth, m}, []int{2 * depth}, []int{64, 128})
	bMap := tensorMap(t, lib, b, []int{depth, n}, []int{2 * depth}, []int{64, 256})
	return []any{aMap, bMap, c, int32(m), int32(n), int32(depth)}, func() ([]uint32, error) { return checkProduct(got, as, bs, m, n, depth) }
}

// checkProduct compares c [m, n] with a [m, k] b [n, k]^T. The result is rounded to 8
// bits, so the error is at most 2^-8 of it, and that of sums in float32.
func checkProduct(c, a, b []uint16, m, n, k int) ([]uint32, error) {
	var bits []uint32
	for i := range m {
		for j := range n {
			var want float64
			for l := range k {
				want += float64(fromBF16(a[i*k+l])) * float64(fromBF16(b[j*k+l]))
			}
			if got := float64(fromBF16(c[i*n+j])); !(math.Abs(got-want) <= math.Abs(want)/256+1e-4) {
				return nil, fmt.Errorf("element %d, %d is %g, want %g", i, j, got, want)
			}
			bits = append(bits, uint32(c[i*n+j]))
		}
	}
	return bits, nil
}

// run launches the example in every order; it returns the first fault, wrong result, or
// difference between orders.
func (e example) run(t *testing.T, lib *emulator.Library) error {
	var first []uint32
	for _, seed := range seeds {
		args, judge := e.prepare(t, lib)
		e.launch.Seed = seed
		if err := kernel(t, lib, e.kernel).Launch(e.launch, args...); err != nil {
			return err
		}
		bits, err := judge()
		if err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
		if first == nil {
			first = bits
		} else if !slices.Equal(bits, first) {
			return fmt.Errorf("seed %d: other bits than in natural order", seed)
		}
	}
	return nil
}

// The examples are right, give the same bits in four orders, and no check reports them.
func TestExamples(t *testing.T) {
	for _, e := range examples {
		t.Run(e.kernel, func(t *testing.T) {
			everyCheck(t, func(t *testing.T, races bool) {
				if err := e.run(t, build(t, races, e.file)); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A mistake planted in an example by a change of its text is found, by a wrong result at
// least: without any check compiled in, or, if races is set, by those at that line.
func TestMistakesInExamples(t *testing.T) {
	for _, m := range []struct {
		example   int
		name      string
		text, new string
		races     bool
	}{
		{0, "no barrier before the block's sum", "    __syncthreads();\n    if (threadIdx.x == 0) {", "    if (threadIdx.x == 0) {", false},
		{0, "no fence before the count", "        __threadfence();\n        last", "        last", true},
		{1, "wait for one group too few", "cp_async_wait<STAGES - 2>", "cp_async_wait<STAGES - 1>", false},
		{1, "no barrier after the wait", "        __syncthreads();\n        if (const", "        if (const", false},
		{1, "swapped registers of b", "b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]", "b[j / 2][j % 2 * 2 + 1], b[j / 2][j % 2 * 2]", false},
		{1, "a's quarters in another order", "lane % 16) * PITCH + k + lane / 16 * 8", "lane / 2) * PITCH + k + lane % 2 * 8", false},
		{1, "d's rows exchanged", "lane / 4 + e / 2 * 8", "lane / 4 + (1 - e / 2) * 8", false},
		{1, "a stage overwritten while it is read", "step + STAGES - 1; next", "step + STAGES; next", false},
		{2, "no wait for the tile", "mbarrier_wait(&full[s], step / RING % 2);", "", false},
		{2, "the other parity", "step / RING % 2 ^ 1", "step / RING % 2", false},
		{2, "no wait for the product", "wgmma_wait<0>();", "", false},
		{2, "the ring's stage given back too early", "wgmma_wait<0>();\n        if (threadIdx.x % 128 == 0) mbarrier_arrive(&empty[s]);", "if (threadIdx.x % 128 == 0) mbarrier_arrive(&empty[s]);\n        wgmma_wait<0>();", true},
		{2, "wrong step along k", "a + k * 2", "a + k * 4", false},
		{2, "bytes of one copy expected", "A_BYTES + B_BYTES);", "A_BYTES);", false},
	} {
		t.Run(m.name, func(t *testing.T) {
			e := examples[m.example]
			s := source(t, e.file)
			if strings.Count(s.Text, m.text) != 1 {
				t.Fatalf("%s holds %q %d times", e.file, m.text, strings.Count(s.Text, m.text))
			}
			s.Text = strings.Replace(s.Text, m.text, m.new, 1)
			err := e.run(t, buildSources(t, m.races, s))
			if err == nil {
				t.Fatal("not found")
			}
			if fault := (*emulator.Fault)(nil); m.races && !errors.As(err, &fault) {
				t.Errorf("no fault, but %v", err)
			}
			t.Log(err)
		})
	}
}
