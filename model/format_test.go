package model

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"caper/engine"
	"caper/model/decoder"
	"caper/model/safetensors"
)

// dtypes returns the element type of each tensor in a folder.
func dtypes(t *testing.T, dir string) map[string]safetensors.DType {
	t.Helper()
	folder := openWeights(t, dir)
	all := map[string]safetensors.DType{}
	for _, name := range folder.Names() {
		tensor, err := folder.Tensor(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = tensor.DType
	}
	return all
}

// What goes with a tokenizer goes with it through a training's save and an export.
func TestCompanionsAreKept(t *testing.T) {
	dir := t.TempDir()
	if err := rewardModel(t, "qwen3", engine.CPU(1)).Save(dir); err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{"tokenizer_config.json": `{"eos_token": "<|im_end|>"}`, "chat_template.jinja": "{{ messages }}", "generation_config.json": `{"eos_token_id": [1, 2]}`}
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m, err := Load(dir, engine.CPU(1), Frozen)
	if err != nil {
		t.Fatal(err)
	}
	saved, exported := t.TempDir(), t.TempDir()
	if err := errors.Join(m.Save(saved), Export(dir, exported, Format{})); err != nil {
		t.Fatal(err)
	}
	for name, want := range texts {
		for _, out := range []string{saved, exported} {
			if got, err := os.ReadFile(filepath.Join(out, name)); err != nil || string(got) != want {
				t.Errorf("%s: %q, error %v, want %q", name, got, err, want)
			}
		}
	}
	// A pipe in a tokenizer's place would be waited for.
	path := filepath.Join(dir, tokenizerName)
	if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir, engine.CPU(1), Frozen); err == nil || !strings.Contains(err.Error(), path+": not a regular file") {
		t.Errorf("a pipe as tokenizer: %v", err)
	}
}

// Decays and gated norms are F32 in official releases and BF16 in some later ones. Each
// weight is saved as its file had it, also where BF16 is asked for.
func TestSavedAsInTheFile(t *testing.T) {
	m := newModel(t, small("qwen35"), engine.CPU(1))
	for _, exceptions := range []safetensors.DType{safetensors.F32, safetensors.BF16} {
		dir := t.TempDir()
		if err := m.SaveAs(dir, Format{DType: safetensors.BF16}); err != nil {
			t.Fatal(err)
		}
		var entries []safetensors.Entry
		for _, p := range m.parameters {
			e := p.Entry(safetensors.BF16)
			if decoder.KeepsFloat32(p.Name) {
				e.DType = exceptions
			}
			entries = append(entries, e)
		}
		if err := safetensors.WriteFolder(dir, entries, nil, 0); err != nil {
			t.Fatal(err)
		}
		want := dtypes(t, dir)
		loaded, err := Load(dir, engine.CPU(1), Frozen)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []Format{{}, {DType: safetensors.BF16}, {MaxShardBytes: 1000}} {
			saved, exported, converted := t.TempDir(), t.TempDir(), t.TempDir()
			for out, err := range map[string]error{
				saved: loaded.SaveAs(saved, f), exported: Export(dir, exported, f), converted: Convert(dir, converted, f),
			} {
				if err != nil {
					t.Fatal(err)
				}
				got := dtypes(t, out)
				for name := range want {
					if got[name] != want[name] || len(got) != len(want) {
						t.Errorf("%s is %s, in the file %s", name, got[name], want[name])
					}
				}
				all, err := safetensors.Compare(t.Context(), openWeights(t, dir), openWeights(t, out), nil)
				if err != nil || slices.ContainsFunc(all, func(d safetensors.Difference) bool { return d.Reason != "" }) {
					t.Errorf("%v, error %v", all, err)
				}
			}
		}
		widened := t.TempDir()
		if err := loaded.Save(widened); err != nil {
			t.Fatal(err)
		}
		for name, dtype := range dtypes(t, widened) {
			if dtype != safetensors.F32 {
				t.Errorf("%s was saved as %s", name, dtype)
			}
		}
	}
}

// Converting and exporting tell how far they are, from nothing to all the bytes that the
// new files have, over all shards.
func TestProgress(t *testing.T) {
	dir := t.TempDir()
	m := newModel(t, small("qwen35"), engine.CPU(1))
	if err := m.Save(dir); err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func(in, out string, f Format) error{"convert": Convert, "export": Export} {
		var told []int
		all, out := 0, t.TempDir()
		progress := func(done, total int) { told, all = append(told, done), total }
		if err := write(dir, out, Format{DType: safetensors.BF16, MaxShardBytes: 1000, Progress: progress}); err != nil {
			t.Fatal(err)
		}
		want, from := 0, openWeights(t, out)
		for _, tensor := range from.Names() {
			x, err := from.Tensor(tensor)
			if err != nil {
				t.Fatal(err)
			}
			want += x.Bytes()
		}
		if all != want || told[0] != 0 || told[len(told)-1] != want || !slices.IsSorted(told) || len(told) < 3 {
			t.Errorf("%s: told %v of %d, want 0 to %d", name, told, all, want)
		}
	}
}

// A conversion keeps what is no text model and the other files of the folder, an export
// leaves the former out; both of an official checkpoint, which has all of it.
func TestGoldenConvertAndExport(t *testing.T) {
	official := filepath.Join(goldenFolder(t), "qwen35-tied-official")
	converted, exported := t.TempDir(), t.TempDir()
	if err := Convert(official, converted, Format{MaxShardBytes: 100_000}); err != nil {
		t.Fatal(err)
	}
	if err := Export(official, exported, Format{}); err != nil {
		t.Fatal(err)
	}
	for out, like := range map[string]string{converted: official, exported: filepath.Join(goldenFolder(t), "qwen35-tied-bf16")} {
		all, err := safetensors.Compare(t.Context(), openWeights(t, like), openWeights(t, out), nil)
		if err != nil || len(all) == 0 || slices.ContainsFunc(all, func(d safetensors.Difference) bool { return d.Reason != "" }) {
			t.Errorf("%v, error %v", all, err)
		}
		if _, err := Load(out, engine.CPU(1), Frozen); err != nil {
			t.Error(err)
		}
	}
	if shards, _ := filepath.Glob(filepath.Join(converted, "model-*-of-*.safetensors")); len(shards) < 3 {
		t.Errorf("%d shards", len(shards))
	}
	if err := Convert(official, converted, Format{DType: safetensors.F32}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(converted, ConfigName))
	if err != nil {
		t.Fatal(err)
	}
	var outer, inner decoder.Object
	if outer, err = decoder.ReadObject(filepath.Join(converted, ConfigName)); err == nil {
		err = outer.Decode("text_config", &inner)
	}
	if err != nil || string(inner["dtype"]) != `"float32"` || string(outer["dtype"]) != `"float32"` || len(text) == 0 {
		t.Errorf("config.json: %s, error %v", text, err)
	}
}
