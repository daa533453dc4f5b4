package safetensors

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// What could keep a reader waiting, or lead it elsewhere, is refused.
func TestHostileFiles(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for name, err := range map[string]error{
		"pipe":  syscall.Mkfifo(path("pipe"), 0o600),
		"loop":  os.Symlink("loop", path("loop")),
		"ends":  os.Symlink("/dev/zero", path("ends")),
		"up":    os.Symlink(dir, path("up")),
		"dir":   os.Mkdir(path("dir"), 0o700),
		"index": os.Mkdir(path("index"), 0o700),
	} {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for name, want := range map[string]string{
		"pipe": "not a regular file", "ends": "not a regular file", "up": "not a regular file", "dir": "not a regular file",
		"loop": "too many levels", "gone": "no such file",
	} {
		if f, err := Open(path(name)); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: file %v, error %v, want %q", name, f, err, want)
		}
		if _, err := ReadText(path(name)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s as a text: error %v, want %q", name, err, want)
		}
		os.Remove(path("index/" + IndexName))
		if err := os.Symlink(path(name), path("index/"+IndexName)); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenFolder(path("index")); err == nil {
			t.Errorf("an index that is %s was accepted", name)
		}
	}
}

// A file that is cut while it is open gives an error, not the end of the process.
func TestCutWhileOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	values := make([]float32, 3*blockElements)
	if err := Write(path, []Entry{{Name: "a", DType: F32, Shape: []int{len(values)}, F32: values}}, nil); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Truncate(path, 1<<16); err != nil {
		t.Fatal(err)
	}
	tensor, err := f.Tensor("a")
	if err != nil {
		t.Fatal(err)
	}
	_, stats := tensor.Stats()
	copied := Write(filepath.Join(t.TempDir(), "y"), []Entry{{Name: "a", DType: F32, Shape: tensor.Shape, Tensor: &tensor}}, nil)
	for what, err := range map[string]error{
		"whole": tensor.Float32s(values), "range": tensor.Range(values[:9], 2*blockElements), "stats": stats, "copy": copied,
	} {
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "cut while it was open") {
			t.Errorf("%s: error %v", what, err)
		}
	}
}

// Whatever an index says, opening its folder ends in an error or in tensors of that
// folder.
func FuzzIndex(f *testing.F) {
	f.Add(`{"metadata":{"total_size":4},"weight_map":{"a":"one","b":"one"}}`)
	f.Add(`{"weight_map":{"a":"one","a":"two"}}`)
	f.Add(`{"weight_map":{"a":"../../etc/passwd","b":"/dev/zero","c":"..","d":"one\u0000","e":"loop"}}`)
	f.Add("{\"weight_map\":{\"\xff\":\"one\"}}")
	dir := f.TempDir()
	entries := []Entry{{Name: "a", DType: F32, Shape: []int{1}, F32: []float32{1}}}
	if err := Write(filepath.Join(dir, "one"), entries, nil); err != nil {
		f.Fatal(err)
	}
	if err := os.Symlink("loop", filepath.Join(dir, "loop")); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(filepath.Join(dir, IndexName), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		d, err := OpenFolder(dir)
		if err != nil {
			return
		}
		defer d.Close()
		for _, name := range d.Names() {
			if tensor, err := d.Tensor(name); err != nil || tensor.Name != "a" {
				t.Errorf("%q is %q, error %v", name, tensor.Name, err)
			}
		}
	})
}
