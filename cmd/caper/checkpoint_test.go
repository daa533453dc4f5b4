package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A model is converted, compared with what it was, and exported.
func TestConvertExportCompare(t *testing.T) {
	w := openWorkshop(t, "model")
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	killed := path(".cut.tmp-999999999") // no process has this number
	if err := os.MkdirAll(filepath.Join(killed, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	must(t, "convert", w.model(), path("cut"), "--max-shard-size", "20KB")
	if _, err := os.Stat(killed); err == nil {
		t.Error("the folder of a process that was killed is still there")
	}
	if shards, _ := filepath.Glob(path("cut/model-*.safetensors")); len(shards) < 2 {
		t.Errorf("%d shards", len(shards))
	}
	if r := must(t, "inspect", w.model(), path("cut")); !strings.Contains(r.stderr, "none differs") {
		t.Error(r.stderr)
	}
	must(t, "export", w.model(), path("short"), "--dtype", "bf16")
	if r := caper(t, "inspect", w.model(), path("short")); r.status != exitFailed || !strings.Contains(r.stdout, "score.weight: ") || !strings.Contains(r.stderr, "differ in ") {
		t.Errorf("status %d: %s%s", r.status, r.stdout, r.stderr)
	}
	must(t, "inspect", w.model(), path("short"), "--tolerance", "0.02")
	d := oneDocument(t, must(t, "inspect", path("short"), "--json"))
	first := d["tensors"].([]any)[0].(map[string]any)
	if first["stats"].(map[string]any)["nan"] != 0.0 || d["elements"].(float64)*2 > d["bytes"].(float64) {
		t.Errorf("%v", d)
	}
	if r := must(t, "inspect", path("short"), "--shapes"); strings.Contains(r.stdout, "NaN") || !strings.Contains(r.stdout, "BF16") {
		t.Error(r.stdout)
	}
	for _, k := range []struct {
		arguments []string
		status    int
		want      []string
	}{
		{[]string{"convert", w.model(), path("cut")}, exitFailed, []string{path("cut"), "new folder"}},
		{[]string{"export", w.model(), path("x"), "--max-shard-size", "5XB"}, exitUsage, []string{"--max-shard-size 5XB"}},
		{[]string{"export", w.model(), path("x"), "--dtype", "int8"}, exitUsage, []string{"--dtype", "bf16"}},
		{[]string{"convert", dir, path("x")}, exitFailed, []string{dir, "not a folder of safetensors weights"}},
		{[]string{"inspect", w.model(), path("gone")}, exitFailed, []string{path("gone")}},
		{[]string{"inspect", w.model(), w.tuples}, exitFailed, []string{w.tuples}},
		{[]string{"inspect", w.model(), "--tolerance=-1"}, exitUsage, []string{"--tolerance -1"}},
	} {
		r := caper(t, k.arguments...)
		if r.status != k.status {
			t.Errorf("%v: status %d: %s", k.arguments, r.status, r.stderr)
		}
		oneLine(t, k.arguments, r, k.want)
	}
	if left, _ := filepath.Glob(path(".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := os.Stat(path("x")); err == nil {
		t.Error("a failed command left a folder")
	}
}
