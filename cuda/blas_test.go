package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// matrix is a row-major matrix with rows of pitch elements, on the GPU and here.
type matrix struct {
	element     Element
	rows, pitch int
	at          Ptr
	values      []float64
}

func randomMatrix(b *bench, random *rand.Rand, e Element, rows, pitch int) *matrix {
	m := &matrix{element: e, rows: rows, pitch: pitch, values: make([]float64, rows*pitch)}
	bytes := make([]byte, len(m.values)*e.Size())
	for i := range m.values {
		v := math.Float32bits(random.Float32()*2-1) &^ 0xffff // exact in both types
		m.values[i] = float64(math.Float32frombits(v))
		if e == BFloat16 {
			binary.LittleEndian.PutUint16(bytes[2*i:], uint16(v>>16))
		} else {
			binary.LittleEndian.PutUint32(bytes[4*i:], v)
		}
	}
	var err error
	m.at, err = b.gpu.Alloc(Bytes(len(bytes)))
	b.must(err)
	b.must(b.stream.Upload(m.at, bytes))
	return m
}

func (m *matrix) read(b *bench) []float64 {
	bytes := make([]byte, len(m.values)*m.element.Size())
	b.must(b.stream.Download(bytes, m.at))
	values := make([]float64, len(m.values))
	for i := range values {
		if m.element == BFloat16 {
			values[i] = float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(bytes[2*i:])) << 16))
		} else {
			values[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(bytes[4*i:])))
		}
	}
	return values
}

// get is element i, j of the matrix or of its transpose.
func (m *matrix) get(i, j int, transposed bool) float64 {
	if transposed {
		i, j = j, i
	}
	return m.values[i*m.pitch+j]
}

// A product of row-major matrices of any shape, order and pitch is that of the formula,
// with its epilogue, and what lies between rows stays.
func TestMatMul(t *testing.T) {
	b := newBench(t)
	blas, err := b.stream.NewBLAS(1 << 10)
	b.must(err)
	defer func() { b.must(blas.Close()) }()
	rapid.Check(t, func(r *rapid.T) {
		size := rapid.IntRange(1, 9)
		p := Product{M: size.Draw(r, "m"), N: size.Draw(r, "n"), K: size.Draw(r, "k"),
			TransA: rapid.Bool().Draw(r, "transA"), TransB: rapid.Bool().Draw(r, "transB"), Accumulate: rapid.Bool().Draw(r, "accumulate"),
			In: rapid.SampledFrom([]Element{BFloat16, Float32}).Draw(r, "in"), Out: rapid.SampledFrom([]Element{BFloat16, Float32}).Draw(r, "out"),
			Epilogue: rapid.SampledFrom([]Epilogue{0, NoEpilogue, Bias, BiasGradient}).Draw(r, "epilogue")}
		pad := rapid.IntRange(0, 3)
		touching := p.normal()
		if rapid.Bool().Draw(r, "padded") {
			p.LDA, p.LDB, p.LDC = touching.LDA+pad.Draw(r, "padA"), touching.LDB+pad.Draw(r, "padB"), touching.LDC+pad.Draw(r, "padC")
		}
		if err := checkProduct(b, blas, p); err != nil {
			r.Fatal(err)
		}
	})
}

func checkProduct(b *bench, blas *BLAS, p Product) error {
	random := rand.New(rand.NewPCG(1, 2))
	full := p.normal()
	aRows, bRows := p.M, p.K
	if p.TransA {
		aRows = p.K
	}
	if p.TransB {
		bRows = p.N
	}
	x, y, c := randomMatrix(b, random, p.In, aRows, full.LDA), randomMatrix(b, random, p.In, bRows, full.LDB), randomMatrix(b, random, p.Out, p.M, full.LDC)
	vector := randomMatrix(b, random, p.Out, 1, max(p.M, p.N))
	defer func() {
		b.must(errors.Join(b.gpu.Free(x.at), b.gpu.Free(y.at), b.gpu.Free(c.at), b.gpu.Free(vector.at)))
	}()
	at := vector.at
	if full.Epilogue == NoEpilogue {
		at = 0
	}
	if err := blas.MatMul(p, x.at, y.at, c.at, at); err != nil {
		return err
	}
	got, gotVector := c.read(b), vector.read(b)
	for i := range p.M {
		sum := 0.0
		for k := range p.K {
			sum += x.get(i, k, p.TransA)
		}
		if full.Epilogue == BiasGradient && !near(gotVector[i], sum, p) {
			return fmt.Errorf("sum of row %d is %g, want %g", i, gotVector[i], sum)
		}
		for j := range full.LDC {
			want := c.values[i*full.LDC+j]
			if j < p.N {
				want = wanted(p, x, y, c, vector, i, j)
			}
			if !near(got[i*full.LDC+j], want, p) {
				return fmt.Errorf("element %d, %d is %g, want %g", i, j, got[i*full.LDC+j], want)
			}
		}
	}
	return nil
}

func wanted(p Product, x, y, c, vector *matrix, i, j int) (sum float64) {
	for k := range p.K {
		sum += x.get(i, k, p.TransA) * y.get(k, j, p.TransB)
	}
	if p.Accumulate {
		sum += c.get(i, j, false)
	}
	if p.Epilogue == Bias {
		sum += vector.values[j]
	}
	return sum
}

// near allows for the rounding of one result: 8 bits of bf16, 24 of float32.
func near(got, want float64, p Product) bool {
	eps := map[Element]float64{BFloat16: 1.0 / 256, Float32: 1e-6}[p.Out]
	return math.Abs(got-want) <= eps*math.Abs(want)+1e-7
}

// A product that was seen before is asked for without a thought, and without memory.
func TestMatMulAgain(t *testing.T) {
	b := newBench(t)
	blas, err := b.stream.NewBLAS(1 << 10)
	b.must(err)
	defer func() { b.must(blas.Close()) }()
	x := b.floats(64)
	p := Product{M: 4, N: 4, K: 4, In: Float32, Out: Float32}
	step := func() {
		b.must(blas.MatMul(p, x, x+64, x+128, 0))
		b.must(b.stream.Synchronize())
	}
	step()
	if calls := testMock.Record(step); len(calls) != 2 || !strings.HasPrefix(calls[0], "cublasLtMatmul ") {
		t.Errorf("a known product made %v", calls)
	}
	if n := testing.AllocsPerRun(20, step); n != 0 {
		t.Errorf("%v allocations a product", n)
	}
	// Pointers of other alignment may need another kernel.
	calls := testMock.Record(func() { b.must(blas.MatMul(p, x+16, x+64, x+128, 0)) })
	if !slices.ContainsFunc(calls, func(c string) bool { return strings.HasPrefix(c, "cublasLtMatmulAlgoGetHeuristic") }) {
		t.Errorf("another alignment made %v", calls)
	}
	b.must(b.stream.Synchronize())
}

func TestMatMulRefusals(t *testing.T) {
	b := newBench(t)
	blas, err := b.stream.NewBLAS(1 << 10)
	b.must(err)
	defer func() { b.must(blas.Close()) }()
	x := b.floats(64)
	for want, p := range map[string]Product{
		"product c [0, 4] = a b over 4: a size is not positive":                 {N: 4, K: 4, In: Float32, Out: Float32},
		"product c [4, 4] = a^T b over 4: rows of 3, 4 and 4 elements overlap":  {M: 4, N: 4, K: 4, TransA: true, LDA: 3, In: Float32, Out: Float32},
		"product c [4, 4] = a b^T over 4: elements are BFloat16 or Float32":     {M: 4, N: 4, K: 4, TransB: true, In: Uint8, Out: Float32},
		"product c [4, 4] = a b over 4: an epilogue and its vector go together": {M: 4, N: 4, K: 4, In: Float32, Out: Float32, Epilogue: Bias},
	} {
		if err := blas.MatMul(p, x, x, x, 0); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	p := Product{M: 2, N: 2, K: 2, In: Float32, Out: Float32}
	if err := blas.MatMul(p, x, x+8, x+64, 0); err == nil || !strings.Contains(err.Error(), "cublasLtMatmulAlgoGetHeuristic of c [2, 2] = a b over 2 on GPU 0 (Mock H200): CUBLAS_STATUS_NOT_SUPPORTED (15); cuBLASLt has no kernel") {
		t.Errorf("got %v", err)
	}
}

// Each call of cuBLASLt that fails is named, and nothing is left over.
func TestEveryProductCallFails(t *testing.T) {
	b := newBench(t)
	x := b.floats(64)
	multiply := func() error {
		blas, err := b.stream.NewBLAS(1 << 10)
		if err != nil {
			return err
		}
		err = blas.MatMul(Product{M: 4, N: 4, K: 4, In: Float32, Out: Float32, Epilogue: Bias}, x, x+64, x+128, x)
		return errors.Join(err, b.stream.Synchronize(), blas.Close())
	}
	made := map[string]bool{}
	for _, line := range testMock.Record(func() { b.must(multiply()) }) {
		if call, _, _ := strings.Cut(line, " "); strings.HasPrefix(call, "cublasLt") && !strings.HasSuffix(call, "Destroy") {
			made[call] = true
		}
	}
	if len(made) != 8 {
		t.Errorf("calls %v", slices.Sorted(maps.Keys(made)))
	}
	alive := testMock.Alive()
	for call := range made {
		testMock.Fail(call, 1, 7)
		err := multiply()
		testMock.Fail("", 0, 0)
		var e *Error
		if !errors.As(err, &e) || e.Call != call || e.Name != "CUBLAS_STATUS_INVALID_VALUE" {
			t.Errorf("%s failed: %v", call, err)
		}
		if left := testMock.Alive(); left != alive {
			t.Errorf("%s failed: left over %s, before %s", call, left, alive)
		}
	}
}

// NVIDIA's own library, where there is one, takes every descriptor; no GPU is needed.
func TestDescriptorsOfCublasLt(t *testing.T) {
	var found []string
	for _, pattern := range folderPatterns() {
		files, _ := filepath.Glob(filepath.Join(pattern, "libcublasLt.so.1*"))
		found = append(found, files...)
	}
	if found == nil {
		t.Skip("no cuBLASLt: pip install nvidia-cublas==13.1.0.3 and name the site-packages folder in CAPER_SITE_PACKAGES")
	}
	if got := runPart(t, "descriptors", "CAPER_CUBLASLT="+found[0], "CAPER_CUDA_DRIVER="+os.DevNull); got != "24 plans" {
		t.Error(got)
	}
}

func init() {
	parts["descriptors"] = func() {
		if _, err := loadCublasLt(); err != nil {
			fmt.Println(err)
			return
		}
		n := 0
		for _, e := range []Element{BFloat16, Float32} {
			for _, epilogue := range []Epilogue{NoEpilogue, Bias, BiasGradient} {
				for trans := range 4 {
					p := Product{M: 64, N: 128, K: 256, In: e, Out: e, Epilogue: epilogue, TransA: trans&1 != 0, TransB: trans&2 != 0}.normal()
					plan, err := describePlan(p, [3]uint32{256, 16, 128}, 32<<20)
					if err != nil {
						fmt.Println(err)
						return
					}
					destroyPlan(plan)
					n++
				}
			}
		}
		fmt.Println(n, "plans")
	}
}
