package safetensors

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// draw makes some tensors of random shapes and types.
func draw(t *rapid.T) []Entry {
	var entries []Entry
	for i := range rapid.IntRange(1, 6).Draw(t, "tensors") {
		values := rapid.SliceOfN(rapid.Float32Range(-1e4, 1e4), 0, 9).Draw(t, "values")
		dtype := rapid.SampledFrom([]DType{F32, BF16, F16}).Draw(t, "dtype")
		entries = append(entries, Entry{Name: string(rune('f' - i)), DType: dtype, Shape: []int{len(values)}, F32: append([]float32{}, values...)})
	}
	return entries
}

// A folder of shards holds what was written, in files of the size that was asked for,
// and nothing of what lay there before; written from its own open tensors, it is equal.
func TestWriteFolder(t *testing.T) {
	root := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(root, "*")
		if err != nil {
			t.Fatal(err)
		}
		var last *Folder
		for range 2 {
			entries, limit := draw(t), rapid.IntRange(0, 40).Draw(t, "limit")
			if err := WriteFolder(dir, entries, nil, limit); err != nil {
				t.Fatal(err)
			}
			if last != nil {
				last.Close()
			}
			last = checkFolder(t, dir, entries, limit)
		}
		defer last.Close()
		var copied []Entry
		for _, name := range last.Names() {
			tensor, _ := last.Tensor(name)
			copied = append(copied, Entry{Name: name, DType: tensor.DType, Shape: tensor.Shape, Tensor: &tensor})
		}
		again := filepath.Join(dir, "again")
		if err := os.Mkdir(again, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := WriteFolder(again, copied, nil, 10); err != nil {
			t.Fatal(err)
		}
		second, err := OpenFolder(again)
		if err != nil {
			t.Fatal(err)
		}
		defer second.Close()
		all, err := Compare(context.Background(), last, second, nil)
		if err != nil || len(all) != len(copied) || slices.ContainsFunc(all, func(d Difference) bool { return d.Reason != "" }) {
			t.Fatalf("%v, error %v", all, err)
		}
	})
}

func checkFolder(t *rapid.T, dir string, entries []Entry, limit int) *Folder {
	d, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int{}
	tensors := map[string]int{}
	for _, e := range entries {
		tensor, err := d.Tensor(e.Name)
		if err != nil || tensor.DType != e.DType {
			t.Fatalf("%s: %v, error %v", e.Name, tensor, err)
		}
		got := make([]float32, tensor.Len())
		if err := tensor.Float32s(got); err != nil {
			t.Fatal(err)
		}
		for i, x := range e.F32 {
			if math.Abs(float64(got[i]-x)) > math.Abs(float64(x))/256+1e-7 {
				t.Fatalf("%s: %g became %g", e.Name, x, got[i])
			}
		}
		sizes[d.shards[e.Name]] += e.Bytes()
		tensors[d.shards[e.Name]]++
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.safetensors"))
	if len(files) != len(sizes) || len(d.Names()) != len(entries) {
		t.Fatalf("%d files for %d, %d tensors for %d", len(files), len(sizes), len(d.Names()), len(entries))
	}
	for name, size := range sizes {
		if limit > 0 && size > limit && tensors[name] > 1 {
			t.Fatalf("%s holds %d tensors of %d bytes, limit %d", name, tensors[name], size, limit)
		}
	}
	return d
}

// The index says what Hugging Face's does.
func TestIndexContent(t *testing.T) {
	dir := t.TempDir()
	entries := []Entry{
		{Name: "a", DType: BF16, Shape: []int{2}, F32: []float32{1, 2}},
		{Name: "b", DType: F32, Shape: []int{3}, F64: []float64{1, 2, 3}},
	}
	if err := WriteFolder(dir, entries, nil, 12); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, IndexName))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got["metadata"]["total_size"] != 16.0 || got["metadata"]["total_parameters"] != 5.0 ||
		got["weight_map"]["a"] != "model-00001-of-00002.safetensors" || got["weight_map"]["b"] != "model-00002-of-00002.safetensors" {
		t.Errorf("%s", text)
	}
	if err := WriteFolder(dir, append(entries, entries[0]), nil, 12); err == nil || !strings.Contains(err.Error(), `"a": name used twice`) {
		t.Errorf("a name in two shards: error %v", err)
	}
}

// No binary16 number is nearer than the one that a number is rounded to; of two that
// are as near, it is the even one.
func TestToHalf(t *testing.T) {
	if h := toHalf(float32(math.NaN())); !math.IsNaN(float64(fromHalf(h))) {
		t.Errorf("NaN became %#04x", h)
	}
	for h := range uint16(0x7c00) { // all finite ones that are not negative
		x, next := fromHalf(h), float64(fromHalf(h+1))
		if h == 0x7bff {
			next = 65536 // where the next one would lie
		}
		if toHalf(x) != h || toHalf(-x) != h|0x8000 {
			t.Fatalf("%g is %#04x, became %#04x", x, h, toHalf(x))
		}
		middle := float32((float64(x) + next) / 2)
		even := h + h&1
		below, above := math.Nextafter32(middle, 0), math.Nextafter32(middle, math.MaxFloat32)
		if toHalf(middle) != even || toHalf(below) != h || toHalf(above) != h+1 || toHalf(-above) != (h+1)|0x8000 {
			t.Fatalf("between %g and %g: %#04x %#04x %#04x, want %#04x %#04x %#04x", x, next, toHalf(below), toHalf(middle), toHalf(above), h, even, h+1)
		}
	}
}
