package optest

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"slices"
	"testing"
	"unsafe"

	"caper/cuda"
	"caper/cuda/emulator"
)

// Kernels is an operator's op.cu and what is promised of it.
type Kernels struct {
	File string // such as "kernels/rmsnorm/op.cu", by which faults name its lines; it lies beside the test
	// Registers bounds what a thread of each kernel uses, on every architecture.
	Registers map[string]int
	// Archs are those that have what the text uses; none stands for sm_80 and up.
	Archs []string
}

// Run proves the kernels on the emulator. prove launches them over a table of shapes and
// compares with the specification. It is called in four orders of threads, whose results must
// be the same bits, and once, with Races set, under the checks for races, where small shapes
// suffice.
func (k Kernels) Run(t *testing.T, prove func(d *EmulatedGPU)) {
	t.Helper()
	skipUnlessWanted(t)
	source := k.source(t)
	var first []uint64
	for _, run := range []struct {
		name  string
		races bool
		seed  uint64
	}{{"in order", false, 0}, {"order 1", false, 1}, {"order 2", false, 2}, {"order 3", false, 3}, {"races", true, 1}} {
		t.Run(run.name, func(t *testing.T) {
			lib, err := emulator.Build(context.Background(), emulator.Options{Races: run.races}, source)
			if errors.Is(err, emulator.ErrNoCompiler) {
				t.Skip(err)
			} else if err != nil {
				t.Fatal(err)
			}
			d := &EmulatedGPU{T: t, Races: run.races, lib: lib, seed: run.seed}
			prove(d)
			if run.seed == 0 {
				first = d.bits
			} else if !run.races && !slices.Equal(d.bits, first) {
				t.Errorf("other bits than in natural order")
			}
		})
	}
}

// Compile compiles the kernels for cards by NVRTC: no spill, no serialised product, no more
// registers than promised. Where NVRTC is not installed the test is skipped, unless CAPER_NVRTC
// names one. It does so in a process of its own, since an emulated GPU (CUDA) takes the place of
// NVRTC in this one.
func (k Kernels) Compile(t *testing.T) {
	t.Helper()
	skipUnlessWanted(t)
	if os.Getenv(compiling) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(environment, compiling+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		} else if bytes.Contains(out, []byte("--- SKIP")) {
			t.Skip(string(out))
		}
		return
	}
	k.compile(t)
}

// environment is that of the process's start, and compiling marks that of Compile's.
var (
	environment = os.Environ()
	compiling   = "CAPER_TEST_COMPILE"
)

func (k Kernels) compile(t *testing.T) {
	source, archs := k.source(t), k.Archs
	if archs == nil {
		archs = []string{"sm_80", "sm_90a", "sm_100a", "sm_120a"}
	}
	for _, arch := range archs {
		cubin, err := cuda.NewCompiler().Compile(cuda.Source{Name: source.Name, Text: source.Text}, arch)
		if missing := (*cuda.NotFoundError)(nil); errors.As(err, &missing) && os.Getenv("CAPER_NVRTC") == "" {
			t.Skip(err)
		} else if err != nil {
			t.Error(err)
			continue
		}
		for _, used := range cubin.Kernels {
			budget, named := k.Registers[used.Kernel]
			if !named || used.Registers > budget {
				t.Errorf("%s for %s: kernel %s uses %d registers, its budget is %d", k.File, arch, used.Kernel, used.Registers, budget)
			}
		}
	}
}

func (k Kernels) source(t *testing.T) emulator.Source {
	t.Helper()
	text, err := os.ReadFile("op.cu")
	if err != nil {
		t.Fatal(err)
	}
	return emulator.Source{Name: k.File, Text: string(text)}
}

// EmulatedGPU launches kernels on the emulator. Its memory is freed as the test ends.
type EmulatedGPU struct {
	*testing.T
	Races bool
	lib   *emulator.Library
	seed  uint64
	bits  []uint64 // of all results that have been read
}

// Matrix is a bf16 matrix on the emulator, whose rows begin at multiples of 16 bytes. What lies
// between rows is NaN and must stay so.
type Matrix struct {
	*emulator.Memory
	Rows, Cols, Stride int
}

// Matrix returns a matrix of these elements, rounded, or, if values is nil, of NaN.
func (d *EmulatedGPU) Matrix(rows, cols int, values []float64) Matrix {
	d.Helper()
	m := Matrix{Rows: rows, Cols: cols, Stride: (cols + 7) / 8 * 8}
	m.Memory = d.alloc(rows*m.Stride, unsafe.Sizeof(uint16(0)))
	bits := emulator.Of[uint16](m.Memory)
	for i, v := range values {
		bits[i/cols*m.Stride+i%cols] = bf16Bits(v)
	}
	return m
}

// CheckMatrix compares a result with the specification's, as Case.Tolerance says.
func (d *EmulatedGPU) CheckMatrix(what string, m Matrix, want []float64, tolerance float64) {
	d.Helper()
	var got []float64
	for i, bits := range emulator.Of[uint16](m.Memory) {
		if i%m.Stride < m.Cols {
			got = append(got, float64(math.Float32frombits(uint32(bits)<<16)))
		} else if bits != 0xffff {
			d.Errorf("%s: something is written behind row %d", what, i/m.Stride)
		}
	}
	d.check(what, got, want, tolerance)
}

// Float32 returns memory that holds x rounded to float32.
func (d *EmulatedGPU) Float32(x []float64) *emulator.Memory {
	m := d.NewFloat32(len(x))
	for i, out := 0, emulator.Of[float32](m); i < len(x); i++ {
		out[i] = float32(x[i])
	}
	return m
}

// NewBF16 and NewFloat32 return memory for n elements, which hold NaN.
func (d *EmulatedGPU) NewBF16(n int) *emulator.Memory { return d.alloc(n, unsafe.Sizeof(uint16(0))) }
func (d *EmulatedGPU) NewFloat32(n int) *emulator.Memory {
	return d.alloc(n, unsafe.Sizeof(float32(0)))
}

func (d *EmulatedGPU) alloc(n int, size uintptr) *emulator.Memory {
	d.Helper()
	m, err := emulator.Alloc(n * int(size))
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(m.Free)
	return m
}

// Launch runs a kernel; what it does wrong ends the test.
func (d *EmulatedGPU) Launch(kernel string, l emulator.Launch, args ...any) {
	d.Helper()
	k, err := d.lib.Kernel(kernel)
	if err != nil {
		d.Fatal(err)
	}
	l.Seed = d.seed
	if err := k.Launch(l, args...); err != nil {
		d.Fatal(err)
	}
}

// CheckFloat32 compares a result in float32.
func (d *EmulatedGPU) CheckFloat32(what string, m *emulator.Memory, want []float64, tolerance float64) {
	d.Helper()
	var got []float64
	for _, v := range emulator.Of[float32](m) {
		got = append(got, float64(v))
	}
	d.check(what, got, want, tolerance)
}

func (d *EmulatedGPU) check(what string, got, want []float64, tolerance float64) {
	d.Helper()
	for _, v := range got {
		d.bits = append(d.bits, math.Float64bits(v))
	}
	if err := near(what, got, want, tolerance); err != nil {
		d.Error(err)
	}
}

// RoundBF16 rounds to the nearest bf16, ties to even.
func RoundBF16(x float64) float64 {
	return float64(math.Float32frombits(uint32(bf16Bits(x)) << 16))
}

func bf16Bits(x float64) uint16 {
	u := math.Float32bits(float32(x))
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}
