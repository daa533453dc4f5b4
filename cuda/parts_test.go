package cuda

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// parts are what tests do in a process of its own, where no library was opened yet. What
// they print is the result.
var parts = map[string]func(){
	"devices": func() {
		_, err := Devices()
		fmt.Println(err)
	},
	"compile": func() {
		c := &Compiler{Cubins: os.Getenv("CAPER_CUBINS")}
		cubin, err := c.Compile(testSource, "sm_90a")
		if err == nil {
			fmt.Println(cubin.Origin)
		} else {
			fmt.Println(err)
		}
	},
	"missing": func() {
		_, err := Open(0)
		var missing *NotFoundError
		fmt.Println(errors.As(err, &missing))
	},
	"range": func() {
		r := StartRange("a phase")
		r.End()
		fmt.Println("ended")
	},
}

// runPart runs a part with these variables alone added to an environment that names no
// library.
func runPart(t *testing.T, part string, variables ...string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append([]string{"PATH=", "CAPER_TEST_PART=" + part}, variables...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", part, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Without any library everything is an error that says where it was looked for and what
// to do.
func TestNothingInstalled(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "no.so")
	got := runPart(t, "devices", "CAPER_CUDA_DRIVER="+nowhere)
	for _, want := range []string{"the CUDA driver (libcuda.so.1) not found", "looked at " + nowhere, "install the NVIDIA driver", "or name it in CAPER_CUDA_DRIVER"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	if got := runPart(t, "missing", "CAPER_CUDA_DRIVER="+nowhere); got != "true" {
		t.Error("the error is no NotFoundError")
	}
	got = runPart(t, "compile", "CAPER_CUDA_DRIVER="+nowhere, "CAPER_NVRTC="+nowhere)
	if !strings.HasPrefix(got, "kernels of cuda/test.cu for sm_90a: NVRTC (libnvrtc.so.13 or .12) not found") || !strings.Contains(got, "pip install nvidia-cuda-nvrtc==13.0.88") {
		t.Error(got)
	}
	if got := runPart(t, "range", "CAPER_NVTX="+nowhere); got != "ended" {
		t.Error(got)
	}
}

// A library that is there and no driver says what it lacks.
func TestWrongLibrary(t *testing.T) {
	needMock(t)
	folder := t.TempDir()
	build := func(name, text string) string {
		path := filepath.Join(folder, name)
		cmd := exec.Command("gcc", "-shared", "-fPIC", "-x", "c", "-o", path, "-")
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return path
	}
	old := build("old.so", "int cuInit(unsigned f) { return f; }")
	if got := runPart(t, "devices", "CAPER_CUDA_DRIVER="+old); got != old+" is too old: it has no cuDriverGetVersion; install NVIDIA driver 525 or later" {
		t.Error(got)
	}
	text := filepath.Join(folder, "text.so")
	if err := os.WriteFile(text, []byte("no library"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := runPart(t, "devices", "CAPER_CUDA_DRIVER="+text); !strings.Contains(got, text+" (") {
		t.Errorf("no reason of the loader: %s", got)
	}
}

// Libraries are found in the stated order: variable, loader, toolkit, Python packages.
func TestSearchOrder(t *testing.T) {
	needMock(t)
	root := t.TempDir()
	place := func(folders ...string) string {
		folder := filepath.Join(append([]string{root}, folders...)...)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(testMock.Path, filepath.Join(folder, "libnvrtc.so.13")); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(root, folders[0])
	}
	packages := place("packages", "nvidia", "cu13", "lib")
	venv := place("venv", "lib", "python3.99", "site-packages", "nvidia", "cu13", "lib")
	toolkit := place("toolkit", "lib64")
	system := place("system")
	named := place("named")

	all := []string{"CAPER_SITE_PACKAGES=" + packages, "VIRTUAL_ENV=" + venv, "CUDA_HOME=" + toolkit, "LD_LIBRARY_PATH=" + system, "CAPER_NVRTC=" + named}
	wants := []string{packages, packages, toolkit, "libnvrtc.so.13", named}
	for n, want := range wants {
		variables := all[:n+1]
		found := "none"
		withVariables(t, variables, func() {
			for _, path := range nvrtcLibrary(13).candidates() {
				if lib, _ := load(path); lib != nil {
					found = path
					break
				}
			}
		})
		if n == 3 { // LD_LIBRARY_PATH counts from the start of a process
			found = loadedFrom(t, variables)
			want = system
		}
		if !strings.HasPrefix(found, want) {
			t.Errorf("with %v: found %s, want %s", variables, found, want)
		}
	}
	if got := runPart(t, "compile", "CAPER_NVRTC="+testMock.Path, "LD_LIBRARY_PATH="+system); got != "compiled by NVRTC 13.0" {
		t.Error(got)
	}
}

func withVariables(t *testing.T, variables []string, f func()) {
	for _, name := range []string{"CAPER_NVRTC", "CAPER_SITE_PACKAGES", "VIRTUAL_ENV", "CUDA_HOME", "CUDA_PATH", "PATH"} {
		t.Setenv(name, "")
	}
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	f()
}

func loadedFrom(t *testing.T, variables []string) string {
	t.Helper()
	return runPart(t, "found", variables...)
}

func init() {
	parts["found"] = func() {
		lib, err := nvrtcLibrary(13).open()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(lib.path)
	}
}

var (
	listed   = regexp.MustCompile(`(?m)^(?:CALL|IN_CONTEXT)\((\w+),`)
	constant = regexp.MustCompile(`\b(CU\w+) = (\d+)`)
)

// driverCalls are the names in calls.h.
func driverCalls(t *testing.T) []string {
	var names []string
	for _, m := range listed.FindAllStringSubmatch(readFile(t, "calls.h"), -1) {
		names = append(names, m[1])
	}
	return names
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
