package kernels

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"caper/cuda/emulator"
	"caper/cuda/mock"
	"caper/engine"
)

// gpu.sh runs from a folder of its own on a machine with neither Go nor a home: a GPU stands
// there, emulated, and tools of NVIDIA that write down how they are called.
func TestScriptOfBundle(t *testing.T) {
	if os.Getenv("CAPER_TEST_GPU") != "emulated" {
		t.Skip("CAPER_TEST_GPU=emulated runs it, as make test-cuda does")
	}
	folder := bundle(t)
	out, err := runScript(t, folder, emulatedGPU(t)...)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var report struct {
		Card   string
		Passed bool
		Tests  []struct{ Test, Result string }
		Steps  Report `json:"steps-0.8B"`
		Shapes Shapes `json:"operators"`
	}
	text := readFile(t, folder, "results/report.json")
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if !report.Passed || report.Card != "a card" || len(report.Tests) != 2 || report.Tests[0].Result != "passed" {
		t.Errorf("%+v", report)
	}
	if !strings.Contains(readFile(t, folder, "results/rmsnorm.log"), "on_CUDA") {
		t.Error("no kernel was tested")
	}
	if s := report.Steps; s.Shared.Rows != 16 || s.Separate.Rows != 24 || s.Shared.Seconds <= 0 || s.Shared.Memory <= 0 {
		t.Errorf("shared prompts: %+v, separate ones: %+v", s.Shared, s.Separate)
	}
	for _, o := range report.Shapes.Timed {
		if o.Seconds <= 0 || o.Bytes <= 0 {
			t.Errorf("%+v", o)
		}
	}
	page := readFile(t, folder, "results/report.md")
	for _, want := range []string{"| marginloss | passed |", "| rmsnorm | memcheck | nothing found |", "| rmsnorm | racecheck |", "gated delta rule", "shared prompt: "} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in report.md", want)
		}
	}
	if !strings.Contains(readFile(t, folder, "results/clocks.csv"), "clocks.sm") {
		t.Error("no clocks are recorded")
	}
}

// Where there is no GPU the script says what is missing; a wrong kernel is a failure.
func TestScriptOfBundleFails(t *testing.T) {
	if os.Getenv("CAPER_TEST_GPU") != "emulated" {
		t.Skip("CAPER_TEST_GPU=emulated runs it, as make test-cuda does")
	}
	folder := bundle(t)
	if out, err := runScript(t, folder, "CAPER_CUDA_DRIVER=/nowhere"); err == nil || !strings.Contains(out, "no usable GPU") || !strings.Contains(out, "install the NVIDIA driver") {
		t.Errorf("%v: %s", err, out)
	}
	write(t, filepath.Join(folder, "caper"), "#!/bin/sh\necho '{\"gpu_ready\": true}'\n")
	write(t, filepath.Join(folder, "tests", "rmsnorm.test"), "#!/bin/sh\n")
	write(t, filepath.Join(folder, "tests", "marginloss.test"), "#!/bin/sh\nexit 1\n")
	write(t, filepath.Join(folder, "bin", "compute-sanitizer"), "#!/bin/sh\nexit 9\n")
	out, err := runScript(t, folder)
	page := readFile(t, folder, "results/report.md")
	if err == nil || !strings.Contains(page, "| marginloss | FAILED |") || !strings.Contains(page, "| rmsnorm | memcheck | FOUND SOMETHING |") ||
		!strings.Contains(readFile(t, folder, "results/report.json"), `"passed": false`) {
		t.Errorf("%v: %s", err, out)
	}
}

// bundle returns a folder as make gpu-bundle makes it, with two tests alone.
func bundle(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	script, err := os.ReadFile("../gpu.sh")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "gpu.sh"), string(script))
	build := func(args ...string) {
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			t.Fatalf("go %v: %v: %s", args, err, out)
		}
	}
	build("build", "-o", filepath.Join(folder, "caper"), "caper/cmd/caper")
	for _, operator := range []string{"rmsnorm", "marginloss"} {
		build("test", "-c", "-o", filepath.Join(folder, "tests", operator+".test"), "caper/kernels/"+operator)
	}
	write(t, filepath.Join(folder, "bin", "nvidia-smi"), "#!/bin/sh\ncase \"$*\" in *clocks.sm*) echo \"$*\"; exec sleep 100 ;; *) echo a card ;; esac\n")
	write(t, filepath.Join(folder, "bin", "compute-sanitizer"), "#!/bin/sh\n[ \"$1 $3 $4\" = '--tool --error-exitcode 9' ] || exit 2\nexit 0\n")
	return folder
}

// emulatedGPU are the variables by which a program finds one.
func emulatedGPU(t *testing.T) []string {
	t.Helper()
	var texts []emulator.Source
	for _, s := range engine.KernelSources() {
		texts = append(texts, emulator.Source(s))
	}
	library, err := emulator.Build(context.Background(), emulator.Options{}, texts...)
	if errors.Is(err, emulator.ErrNoCompiler) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	m, err := mock.Start()
	if err != nil {
		t.Fatal(err)
	}
	return []string{"CAPER_CUDA_DRIVER=" + m.Path, "CAPER_NVRTC=" + m.Path, "CAPER_CUBLASLT=" + m.Path, "CAPER_MOCK_KERNELS=" + library.Path}
}

func runScript(t *testing.T, folder string, variables ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("/bin/sh", filepath.Join(folder, "gpu.sh"))
	cmd.Dir = t.TempDir()
	cmd.Env = append(slices.Clone(variables), "CAPER_TRY=1", "PATH="+filepath.Join(folder, "bin")+":/usr/bin:/bin")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, folder, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
