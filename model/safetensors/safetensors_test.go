package safetensors

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// file builds the bytes of a safetensors file from its header text and payload.
func file(header, payload string) []byte {
	data := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(data, header...), payload...)
}

func save(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Each fault of a header is refused with a message that names it.
func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "cut off"},
		{"huge header", append(binary.LittleEndian.AppendUint64(nil, 1<<40), "{}"...), "not a safetensors file"},
		{"header past the end", append(binary.LittleEndian.AppendUint64(nil, 100), "{}"...), "cut off"},
		{"not JSON", file(`hello`, ""), "not a JSON object"},
		{"array", file(`[]`, ""), "not a JSON object"},
		{"truncated JSON", file(`{"a":{"dtype":"F32"`, ""), "it ends too early"},
		{"text after", file(`{} x`, ""), "text after"},
		{"twice", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, "xy"), `"a" appears twice`},
		{"unknown field", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}}`, "x"), "unknown field"},
		{"three offsets", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,1]}}`, "x"), "data_offsets"},
		{"unknown dtype", file(`{"a":{"dtype":"Q4","shape":[1],"data_offsets":[0,1]}}`, "x"), `type "Q4" cannot be read`},
		{"negative shape", file(`{"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}}`, "x"), "number -1"},
		{"overflow", file(`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, ""), "too large"},
		{"large beside zero", file(`{"a":{"dtype":"F32","shape":[0,18446744073709551615],"data_offsets":[0,0]}}`, ""), "too large"},
		{"size", file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, "1234"), "needs 8"},
		{"past the end", file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, "1234"), "cut off"},
		{"backwards", file(`{"a":{"dtype":"U8","shape":[0],"data_offsets":[1,0]}}`, "x"), "damaged"},
		{"misaligned", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F16","shape":[1],"data_offsets":[1,3]}}`, "123"), "not a multiple"},
		{"overlap", file(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, "12"), "overlap"},
		{"hole", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}`, "123"), "ends at 1"},
		{"payload left", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, "12"), "payload of 2"},
		{"metadata", file(`{"__metadata__":{"a":1}}`, ""), "__metadata__"},
		{"metadata twice", file(`{"__metadata__":{"a":"1","a":"2"}}`, ""), `"a" appears twice`},
		{"bad UTF-8", file("{\"\xff\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", "x"), "not UTF-8"},
		{"field twice", file(`{"a":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}}`, "x"), `"dtype" appears twice`},
		{"field in capitals", file(`{"a":{"DType":"U8","shape":[1],"data_offsets":[0,1]}}`, "x"), "unknown field"},
		{"no shape", file(`{"a":{"dtype":"U8","data_offsets":[0,1]}}`, "x"), "no shape"},
		{"null shape", file(`{"a":{"dtype":"U8","shape":null,"data_offsets":[0,1]}}`, "x"), "no shape"},
		{"no offsets", file(`{"a":{"dtype":"U8","shape":[0]}}`, ""), "data_offsets"},
		{"null", file(`{"a":null}`, ""), "not a JSON object"},
		{"deep", file(strings.Repeat(`{"a":`, 20000)+"1"+strings.Repeat("}", 20000), ""), "unknown field"},
		{"shape deep", file(`{"a":{"dtype":"U8","shape":`+strings.Repeat("[", 20000)+strings.Repeat("]", 20000)+`,"data_offsets":[0,1]}}`, "x"), "shape"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := Open(save(t, "x.safetensors", c.data))
			if err == nil {
				f.Close()
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "x.safetensors") {
				t.Errorf("error %q, want the file's name and %q", err, c.want)
			}
		})
	}
}

// Whatever Open accepts can be read to the last byte, and nothing panics.
func FuzzOpen(f *testing.F) {
	f.Add(file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, "1234"))
	f.Add(file(`{"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[2,1],"data_offsets":[0,4]},"b":{"dtype":"I64","shape":[],"data_offsets":[8,16]}}`, "1234567812345678"))
	f.Add(file(`{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}  `, ""))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "fuzz.safetensors")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		file, err := Open(path)
		if err != nil {
			return
		}
		defer file.Close()
		for _, name := range file.Names() {
			tensor, err := file.Tensor(name)
			if err != nil {
				t.Fatal(err)
			}
			n := 1
			for _, d := range tensor.Shape {
				n *= d
			}
			if n != tensor.Len() {
				t.Fatalf("shape %v with %d elements", tensor.Shape, tensor.Len())
			}
			tensor.Float32s(make([]float32, n))
			tensor.Float64s(make([]float64, n))
			tensor.Int64s(make([]int64, n))
		}
	})
}

// What is written comes back: F32 unchanged, BF16 as the nearest of its numbers.
func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		var entries []Entry
		for i, name := range rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z."é]{1,8}`), 0, 6, rapid.ID).Draw(t, "names") {
			rows, cols := rapid.IntRange(0, 4).Draw(t, "rows"), rapid.IntRange(1, 5).Draw(t, "cols")
			e := Entry{Name: name, DType: []DType{F32, BF16}[i%2], Shape: []int{rows, cols}, F32: make([]float32, rows*cols)}
			for j := range e.F32 {
				e.F32[j] = rapid.Float32Range(-3e38, 3e38).Draw(t, "value") // within bfloat16 as well
			}
			entries = append(entries, e)
		}
		path := filepath.Join(dir, "w.safetensors")
		if err := Write(path, entries, map[string]string{"format": "pt"}); err != nil {
			t.Fatal(err)
		}
		file, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if len(file.Names()) != len(entries) {
			t.Fatalf("%d tensors, want %d", len(file.Names()), len(entries))
		}
		for _, e := range entries {
			tensor, err := file.Tensor(e.Name)
			if err != nil {
				t.Fatal(err)
			}
			got := make([]float32, len(e.F32))
			if err := tensor.Float32s(got); err != nil {
				t.Fatal(err)
			}
			for j, want := range e.F32 {
				if e.DType == F32 && got[j] != want {
					t.Fatalf("%g came back as %g", want, got[j])
				}
				if e.DType == BF16 && !nearest(got[j], want) {
					t.Fatalf("%g was rounded to %g", want, got[j])
				}
			}
		}
	})
	if files, _ := filepath.Glob(filepath.Join(dir, "*.partial")); len(files) > 0 {
		t.Errorf("left behind: %v", files)
	}
}

// nearest reports whether no bfloat16 number is nearer to x than b is.
func nearest(b, x float32) bool {
	bits := math.Float32bits(b)
	if bits&0xffff != 0 {
		return false
	}
	if math.IsInf(float64(b), 0) {
		return math.Abs(float64(x)) > 3.38e38
	}
	distance := math.Abs(float64(b) - float64(x))
	for _, other := range []uint32{bits + 1<<16, bits - 1<<16} {
		if o := float64(math.Float32frombits(other)); math.Abs(o-float64(x)) < distance {
			return false
		}
	}
	return true
}

// Every binary16 number against its definition.
func TestHalf(t *testing.T) {
	for h := range 1 << 16 {
		sign, exponent, mantissa := 1.0, h>>10&31, float64(h&1023)
		if h>>15 == 1 {
			sign = -1
		}
		want := sign * math.Ldexp(1+mantissa/1024, exponent-15)
		switch {
		case exponent == 0:
			want = sign * math.Ldexp(mantissa/1024, -14)
		case exponent == 31 && mantissa == 0:
			want = math.Inf(int(sign))
		case exponent == 31:
			want = math.NaN()
		}
		if got := float64(fromHalf(uint16(h))); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Fatalf("%#04x: %g, want %g", h, got, want)
		}
	}
}

func TestWrittenTypes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	if err := Write(path, []Entry{{Name: "a", DType: F32, Shape: []int{3}, F32: []float32{1}}}, nil); err == nil {
		t.Error("a wrong shape was written")
	}
	if err := Write(path, []Entry{{Name: "a", DType: I64, Shape: []int{1}, F32: []float32{1}}}, nil); err == nil {
		t.Error("I64 was written")
	}
	for dtype, x := range map[DType]float32{F16: 65520, BF16: 0x1.ffp127} {
		below := math.Nextafter32(x, 0)
		if err := Write(path, []Entry{{Name: "a", DType: dtype, Shape: []int{2}, F32: []float32{1, -x}}}, nil); err == nil || !strings.Contains(err.Error(), `"a": element 1 is`) {
			t.Errorf("%g was written as %s: %v", -x, dtype, err)
		}
		if err := Write(path, []Entry{{Name: "a", DType: dtype, Shape: []int{2}, F32: []float32{below, float32(math.Inf(-1))}}}, nil); err != nil {
			t.Errorf("%g was not written as %s: %v", below, dtype, err)
		}
		os.Remove(path)
	}
	if err := Write(path, []Entry{{Name: "a", DType: F32, Shape: []int{1}, F64: []float64{1e39}}}, nil); err == nil {
		t.Error("1e39 was written as F32")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a failed write left a file")
	}
	data := file(`{"i":{"dtype":"I64","shape":[2],"data_offsets":[0,16]}}`, "\x01\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff")
	f, err := Open(save(t, "i.safetensors", data))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tensor, _ := f.Tensor("i")
	var got [2]int64
	if err := tensor.Int64s(got[:]); err != nil || got != [2]int64{1, -1} {
		t.Errorf("%v, %v", got, err)
	}
	if err := tensor.Float32s(make([]float32, 2)); err == nil || !strings.Contains(err.Error(), `"i" is I64`) {
		t.Errorf("converting I64 to float: %v", err)
	}
	if err := tensor.Int64s(got[:1]); err == nil {
		t.Error("a short destination was accepted")
	}
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, entries ...Entry) {
		if err := Write(filepath.Join(dir, name), entries, nil); err != nil {
			t.Fatal(err)
		}
	}
	index := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, IndexName), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(want string) {
		t.Helper()
		if d, err := OpenFolder(dir); err == nil {
			d.Close()
			t.Errorf("accepted, want %q", want)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q, want %q", err, want)
		}
	}
	refused("not a folder of safetensors weights")
	write("one", Entry{Name: "a", DType: F32, Shape: []int{1}, F32: []float32{1}})
	write("two", Entry{Name: "b", DType: F32, Shape: []int{1}, F32: []float32{2}})

	index(`{"weight_map":{"a":"one","b":"two"}}`)
	d, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range d.Names() {
		tensor, err := d.Tensor(name)
		got := make([]float32, 1)
		if err == nil {
			err = tensor.Float32s(got)
		}
		if err != nil || got[0] != float32(i+1) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if _, err := d.Tensor("c"); err == nil {
		t.Error("tensor c was found")
	}
	d.Close()

	for text, want := range map[string]string{
		`{"weight_map":{"a":"two"}}`:    `no tensor "a"`,
		`{"weight_map":{"a":"three"}}`:  "three",
		`{"weight_map":{"a":"../one"}}`: "not a plain file name",
		`{"weight_map":{"a":7}}`:        IndexName,
		`{}`:                            "weight_map",
		`{`:                             IndexName,
	} {
		index(text)
		refused(want)
	}
}
