package emulator_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"caper/cuda/emulator"
)

func TestBuildRefuses(t *testing.T) {
	build(t, false, "reduction.cu") // skips where there is no compiler
	kernel := `extern "C" __global__ void a(float* x) { x[0] = 1; }`
	for _, c := range []struct {
		sources []emulator.Source
		want    string
	}{
		{[]emulator.Source{{Name: "a.cu", Text: "#include \"dialect.cuh\"\n\n__global__ void a() {}"}}, "a.cu: 1 of 1 kernels are not written"},
		{[]emulator.Source{{Name: "a.cu", Text: "#include \"dialect.cuh\"\n" + kernel}, {Name: "b.cu", Text: "#include \"dialect.cuh\"\n" + kernel}}, "b.cu: kernel a is also in a.cu"},
		{[]emulator.Source{{Name: "a.cu", Text: "#include \"dialect.cuh\"\n// extern \"C\" __global__ void comment() {}\n" + strings.Replace(kernel, "1;", "y;", 1)}}, "a.cu:3:"},
		{[]emulator.Source{{Name: "a.cu", Text: "#include <cuda_bf16.h>\n" + kernel}}, "a.cu:1:"},
		{[]emulator.Source{{Name: "../a.cu", Text: kernel}}, "no relative path"},
	} {
		_, err := emulator.Build(context.Background(), emulator.Options{}, c.sources...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

func TestLaunchRefuses(t *testing.T) {
	lib := build(t, false, "reduction.cu")
	if _, err := lib.Kernel("sum"); err == nil || !strings.Contains(err.Error(), "among vector_sum") {
		t.Errorf("unknown kernel: %v", err)
	}
	k := kernel(t, lib, "vector_sum")
	x, _ := alloc[float32](t, 8)
	good := []any{x, x, x, x, int32(8)}
	block := [3]int{256}
	for _, c := range []struct {
		launch emulator.Launch
		args   []any
		want   string
	}{
		{emulator.Launch{Block: block}, good[:4], "takes 5 arguments, not 4"},
		{emulator.Launch{Block: block}, append(good[:4:4], int64(8)), "argument 4: a int64 (i, 8 bytes) for a parameter of kind i and 4 bytes"},
		{emulator.Launch{Block: block}, append(good[:4:4], 8), "a int cannot be passed"},
		{emulator.Launch{Block: block}, append(good[:4:4], float32(8)), "argument 4"},
		{emulator.Launch{Block: [3]int{257}}, good, "257 threads in a block, and the kernel allows 256"},
		{emulator.Launch{Block: block, Shared: 228 << 10}, good, "more than 227 KiB"},
		{emulator.Launch{Block: block, Grid: [3]int{1, 70000}}, good, "65535"},
	} {
		if err := k.Launch(c.launch, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

// Launches live with Go's runtime: collections, preemption signals, goroutines that launch at
// once on one library and on several, and Go's own faults while a kernel runs and after one
// has failed.
func TestEmptyMemory(t *testing.T) {
	m, err := emulator.Alloc(0)
	if err != nil {
		t.Fatal(err)
	}
	if m.Pointer() == nil || len(emulator.Of[byte](m)) != 0 {
		t.Error("no bytes: want an address, and nothing there")
	}
	m.Free()
}

func TestLaunchesBesideGo(t *testing.T) {
	libs := []*emulator.Library{build(t, false, "faults.cu"), build(t, true, "faults.cu")}
	notes := make(chan os.Signal, 1)
	signal.Notify(notes, syscall.SIGUSR1)
	defer signal.Stop(notes)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				runtime.GC()
				syscall.Kill(syscall.Getpid(), syscall.SIGUSR1)
			}
		}
	}()
	var wait sync.WaitGroup
	for worker := range 6 {
		wait.Go(func() {
			lib := libs[worker%2]
			for i := range 20 {
				var fault *emulator.Fault
				if err := launchFault(t, lib, "read_past_end", uint64(i)); !errors.As(err, &fault) {
					t.Errorf("not caught: %v", err)
				}
				if err := launchFault(t, lib, "right_load", uint64(i)); err != nil {
					t.Error(err)
				}
				if r := dereferenceNil(); !strings.Contains(r, "nil pointer") {
					t.Errorf("Go's own fault became %q", r)
				}
			}
		})
	}
	wait.Wait()
	close(done)
}

func dereferenceNil() (message string) {
	defer func() { message = recover().(error).Error() }()
	var p *[4]int
	return string(rune(p[1]))
}

// Built libraries are found again, and a change of a text makes another.
func TestCache(t *testing.T) {
	s := source(t, "reduction.cu")
	a := buildSources(t, false, s)
	if b := buildSources(t, false, s); b.Path != a.Path {
		t.Errorf("the same text is in %s and %s", a.Path, b.Path)
	}
	if b := buildSources(t, true, s); b.Path == a.Path {
		t.Error("other checks, same library")
	}
	s.Text += "\n// changed\n"
	if b := buildSources(t, false, s); b.Path == a.Path {
		t.Error("another text, same library")
	}
}

func TestNoCompiler(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := emulator.Build(context.Background(), emulator.Options{}, source(t, "reduction.cu"))
	if !errors.Is(err, emulator.ErrNoCompiler) {
		t.Errorf("error %v, want %v", err, emulator.ErrNoCompiler)
	}
}

// A C program without Go launches kernels by name through emulator.h.
func TestLaunchFromC(t *testing.T) {
	lib := build(t, false, "reduction.cu")
	program := filepath.Join(t.TempDir(), "launch")
	if out, err := exec.Command("gcc", "-Wall", "-Werror", "-I.", "-o", program, "testdata/launch.c", "-ldl").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.Command(program, lib.Path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := "vector_sum 256: p8 p8 p8 p8 i4\n" +
		"sum 499500\n" +
		"reduction.cu:10: kernel vector_sum: out of bounds: reads address"
	if !strings.HasPrefix(string(out), want) {
		t.Errorf("it printed\n%s\nand not\n%s", out, want)
	}
}
