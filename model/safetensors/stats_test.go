package safetensors

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
)

// open writes entries to a file and opens it.
func open(t *testing.T, entries ...Entry) *File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.safetensors")
	if err := Write(path, entries, nil); err != nil {
		t.Fatal(err)
	}
	return openPath(t, path)
}

// openBytes opens a file of these bytes.
func openBytes(t *testing.T, data []byte) *File {
	t.Helper()
	return openPath(t, save(t, "x.safetensors", data))
}

func openPath(t *testing.T, path string) *File {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// Statistics over several blocks against plain sums.
func TestStats(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	values := make([]float32, 2*blockElements+77)
	for i := range values {
		switch values[i] = 1000 + float32(r.NormFloat64()); i % 100_000 {
		case 3:
			values[i] = float32(math.NaN())
		case 5:
			values[i] = float32(math.Inf(i%200_000 - 6))
		}
	}
	values[9], values[len(values)-1] = -5, 2000
	sum, count, squares := 0.0, 0.0, 0.0
	finite := func(f func(x float64)) {
		for _, x := range values {
			if !math.IsNaN(float64(x)) && !math.IsInf(float64(x), 0) {
				f(float64(x))
			}
		}
	}
	finite(func(x float64) { sum += x; count++ })
	finite(func(x float64) { squares += (x - sum/count) * (x - sum/count) })
	f := open(t, Entry{Name: "a", DType: F32, Shape: []int{len(values)}, F32: values}, Entry{Name: "none", DType: F32, Shape: []int{0}},
		Entry{Name: "lost", DType: F32, Shape: []int{1}, F32: []float32{float32(math.NaN())}})
	tensor, _ := f.Tensor("a")
	got, err := tensor.Stats()
	near := func(x, y float64) bool { return math.Abs(x-y) <= 1e-9*math.Abs(y) }
	if err != nil || got.Min != -5 || got.Max != 2000 || got.NaN != 6 || got.Inf != 6 || got.Elements != len(values) ||
		!near(got.Mean, sum/count) || !near(got.Deviation, math.Sqrt(squares/count)) {
		t.Errorf("%+v, error %v; want mean %g, deviation %g", got, err, sum/count, math.Sqrt(squares/count))
	}
	for _, name := range []string{"none", "lost"} {
		tensor, _ := f.Tensor(name)
		if s, err := tensor.Stats(); err != nil || s.Min != 0 || s.Max != 0 || s.Mean != 0 || s.Deviation != 0 || s.NaN != tensor.Len() {
			t.Errorf("%s: %+v, error %v", name, s, err)
		}
	}
	if err := Weights(tensor, make([]float32, len(values))); err == nil || !strings.Contains(err.Error(), "element [3] is NaN") {
		t.Errorf("weights with NaN: error %v", err)
	}
}

// Every type of elements is read as the numbers that it holds.
func TestStatsOfIntegers(t *testing.T) {
	for dtype, payload := range map[string]string{
		"BOOL": "\x00\x01", "U8": "\x00\xff", "I8": "\x7f\x80", "U16": "\x00\x00\xff\xff", "I16": "\xff\x7f\x00\x80",
		"U32": "\x00\x00\x00\x00\xff\xff\xff\xff", "I32": "\xff\xff\xff\x7f\x00\x00\x00\x80",
		"I64": "\x00\x00\x00\x00\x01\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff", "U64": "\x00\x00\x00\x00\x00\x00\x00\x80\x00\x00\x00\x00\x00\x00\x00\x00",
	} {
		want := map[string][2]float64{
			"BOOL": {0, 1}, "U8": {0, 255}, "I8": {-128, 127}, "U16": {0, 65535}, "I16": {-32768, 32767},
			"U32": {0, 1<<32 - 1}, "I32": {-1 << 31, 1<<31 - 1}, "I64": {-1, 1 << 32}, "U64": {0, 1 << 63},
		}[dtype]
		f, err := Open(save(t, "i", file(fmt.Sprintf(`{"i":{"dtype":%q,"shape":[2],"data_offsets":[0,%d]}}`, dtype, len(payload)), payload)))
		if err != nil {
			t.Fatal(err)
		}
		tensor, _ := f.Tensor("i")
		if s, err := tensor.Stats(); err != nil || s.Min != want[0] || s.Max != want[1] {
			t.Errorf("%s: %+v, error %v", dtype, s, err)
		}
		f.Close()
	}
}

// A comparison names each kind of difference.
func TestCompare(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	vector := func(name string, dtype DType, values ...float32) Entry {
		return Entry{Name: name, DType: dtype, Shape: []int{len(values)}, F32: values}
	}
	a := open(t, vector("same", F32, 1, nan, inf), vector("gone", F32, 1), vector("shape", F32, 1, 2), vector("near", F32, 1, 2, 4),
		vector("type", F32, 1, 2), vector("lost", F32, 1, 2), vector("both", F32, 1.001, 2))
	b := open(t, vector("same", F32, 1, nan, inf), vector("new", BF16, 1), vector("shape", F32, 1), vector("near", F32, 1, 2.5, 3),
		vector("type", BF16, 1, 2), vector("lost", F32, 1, nan), vector("both", BF16, 1.001, 2))
	all, err := Compare(t.Context(), a, b, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"same": "equal", "gone": "only in the first: F32 [1]", "new": "only in the second: BF16 [1]", "shape": "shape [2], in the second [1]",
		"near": "2 elements differ, by at most 1 (relative 0.25)", "type": "F32, in the second BF16, same values",
		"lost": "1 elements differ, by at most 1.8e+308 (relative 1.8e+308)", "both": "1 elements differ, by at most 0.001 (relative 0.000999), F32 and BF16",
	}
	for _, d := range all {
		if d.String() != want[d.Name] {
			t.Errorf("%s: %s, want %s", d.Name, d, want[d.Name])
		}
	}
	if len(all) != len(want) {
		t.Errorf("%d tensors, want %d", len(all), len(want))
	}
}

// 64-bit integers that one float64 stands for are different all the same.
func TestCompareWideIntegers(t *testing.T) {
	integers := func(values ...int64) *File {
		var data []byte
		for _, v := range values {
			data = binary.LittleEndian.AppendUint64(data, uint64(v))
		}
		return openBytes(t, file(fmt.Sprintf(`{"i":{"dtype":"I64","shape":[%d],"data_offsets":[0,%d]}}`, len(values), len(data)), string(data)))
	}
	all, err := Compare(t.Context(), integers(1<<53, -1<<60, 5, 7), integers(1<<53+1, -1<<60-3, 5, 8), nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := all[0]; d.Elements != 3 || d.MaxAbs != 3 || d.Reason != "values" {
		t.Errorf("%+v, want three elements that differ by 1, 3 and 1", d)
	}
}

// Statistics of numbers at the end of the range are numbers, which JSON needs.
func TestStatsStayInRange(t *testing.T) {
	f := openBytes(t, file(`{"a":{"dtype":"F64","shape":[2],"data_offsets":[0,16]}}`, strings.Repeat("\xff\xff\xff\xff\xff\xff\xef\x7f", 2)))
	tensor, err := f.Tensor("a")
	if err != nil {
		t.Fatal(err)
	}
	s, err := tensor.Stats()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(s); err != nil || s.Max != math.MaxFloat64 {
		t.Errorf("%+v: %v", s, err)
	}
}
