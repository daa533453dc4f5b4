package cuda

import (
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Every type of parameter arrives with its bits, at its alignment, whatever the values.
func TestArguments(t *testing.T) {
	b := newBench(t)
	every := b.function("every_type")
	out, err := b.gpu.Alloc(9 * 128)
	b.must(err)
	defer b.gpu.Free(out)
	layout := TensorLayout{Element: BFloat16, At: out, Sizes: []uint64{64, 4}, Strides: []uint64{128}, Box: []uint32{64, 2}, Swizzle: 128}
	tensors, err := b.gpu.TensorMap(layout)
	b.must(err)

	args := &Args{}
	rapid.Check(t, func(r *rapid.T) {
		i32, u32 := rapid.Int32().Draw(r, "i32"), rapid.Uint32().Draw(r, "u32")
		i64, u64 := rapid.Int64().Draw(r, "i64"), rapid.Uint64().Draw(r, "u64")
		f32, f64 := rapid.Float32().Draw(r, "f32"), rapid.Float64().Draw(r, "f64")
		last := rapid.Int32().Draw(r, "last")
		args.Reset().Ptr(out).Int32(int(i32)).Uint32(u32).Int64(i64).Uint64(u64).Float32(f32).Float64(f64).TensorMap(&tensors).Int32(int(last))
		b.must(every.Launch(b.stream, Launch{Grid: Dim{X: 1}, Block: Dim{X: 1}}, args))
		got := make([]byte, 9*128)
		b.must(b.stream.Download(got, out))
		word := func(i int) uint64 { return binary.LittleEndian.Uint64(got[128*i:]) }
		half := func(i int) uint32 { return binary.LittleEndian.Uint32(got[128*i:]) }
		for i, same := range []bool{
			word(0) == uint64(out), half(1) == uint32(i32), half(2) == u32, word(3) == uint64(i64), word(4) == u64,
			half(5) == math.Float32bits(f32), word(6) == math.Float64bits(f64),
			[128]byte(got[7*128:8*128]) == tensors.opaque, half(8) == uint32(last),
		} {
			if !same {
				r.Fatalf("parameter %d arrived as %x", i, got[128*i:128*i+8])
			}
		}
	})
	if word := binary.LittleEndian.Uint64(tensors.opaque[:]); word != uint64(out) {
		t.Errorf("the tensor map holds address %#x, want %v", word, out)
	}
}

// Parameters that do not fit the kernel's are refused before they are read as others.
func TestWrongArguments(t *testing.T) {
	b := newBench(t)
	add := b.function("add")
	x := b.floats(4)
	launch := Launch{Grid: Dim{X: 1}, Block: Dim{X: 32}}
	for want, args := range map[string]*Args{
		"launch of add: 2 parameters given, the kernel has 3":       new(Args).Ptr(x).Float32(1),
		"launch of add: parameter 2 has 8 bytes, in the kernel 4":   new(Args).Ptr(x).Float32(1).Int64(4),
		"launch of add: parameter 0 has 4 bytes, in the kernel 8":   new(Args).Int32(1).Float32(1).Int32(4),
		"launch of add: 129 parameters of 516 bytes, at most 128 o": many(129),
	} {
		if err := add.Launch(b.stream, launch, args); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if got := b.read(x, 4); got[3] != 3 {
		t.Errorf("a refused launch changed %v", got)
	}
}

func many(n int) *Args {
	a := &Args{}
	for range n {
		a.Int32(0)
	}
	return a
}

// What a launch says reaches the driver: sizes, shared memory allowed once, clusters.
func TestLaunchAttributes(t *testing.T) {
	b := newBench(t)
	add := b.function("add")
	args := new(Args).Ptr(b.floats(1)).Float32(1).Int32(1)
	big := Launch{Grid: Dim{X: 8, Y: 2}, Block: Dim{X: 128}, Shared: 200 << 10, Cluster: Dim{X: 2}, Cooperative: true}
	calls := testMock.Record(func() {
		b.must(add.Launch(b.stream, big, args))
		b.must(add.Launch(b.stream, big, args))
	})
	launched := "cuLaunchKernelEx add grid 8 2 1 block 128 1 1 shared 204800 cluster 2 1 1 cooperative"
	want := []string{"cuFuncSetAttribute add 8 204800", launched, launched}
	if strings.Join(calls, "\n") != strings.Join(want, "\n") {
		t.Errorf("calls:\n%s\nwant:\n%s", strings.Join(calls, "\n"), strings.Join(want, "\n"))
	}
	blocks, err := add.Occupancy(128, 200<<10)
	b.must(err)
	if blocks != 1 || add.Registers != 32 || add.MaxThreads != 256 {
		t.Errorf("%d blocks, %d registers, %d threads", blocks, add.Registers, add.MaxThreads)
	}

	for want, launch := range map[string]Launch{
		"cuLaunchKernelEx of add, grid 1 x 1 x 1, block 512 x 1 x 1, on GPU 0 (Mock H200): CUDA_ERROR_INVALID_VALUE (1), invalid argument; blocks of this kernel have 1 to 256 threads": {Grid: Dim{X: 1}, Block: Dim{X: 512}},
		"cuLaunchKernelEx of add, grid 3 x 1 x 1, block 32 x 1 x 1, cluster 2 x 1 x 1, on GPU 0 (Mock H200): CUDA_ERROR_INVALID_CLUSTER_SIZE (912)":                                     {Grid: Dim{X: 3}, Block: Dim{X: 32}, Cluster: Dim{X: 2}},
		"cuFuncSetAttribute of add to 228.0 KiB of dynamic shared memory on GPU 0 (Mock H200): CUDA_ERROR_INVALID_VALUE (1), invalid argument; a block has at most 227.0 KiB":           {Grid: Dim{X: 1}, Block: Dim{X: 32}, Shared: 228 << 10},
	} {
		if err := add.Launch(b.stream, launch, args); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	b.must(b.stream.Synchronize())
}

// A launch in a training step takes no memory from Go's heap.
func TestLaunchAllocatesNothing(t *testing.T) {
	b := newBench(t)
	add := b.function("add")
	x := b.floats(16)
	event, err := b.gpu.NewEvent(false)
	b.must(err)
	defer event.Close()
	args := &Args{}
	step := func() {
		b.must(add.Launch(b.stream, Launch{Grid: Dim{X: 2}, Block: Dim{X: 32}}, args.Reset().Ptr(x).Float32(1).Int32(16)))
		p, err := b.stream.Alloc(256)
		b.must(err)
		b.must(b.stream.Free(p))
		b.must(b.stream.Fill(x, 0, 4))
		b.must(b.stream.Record(event))
		b.must(b.stream.Wait(event))
		b.must(b.stream.Synchronize())
	}
	if n := testing.AllocsPerRun(50, step); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
}

// A kernel's mistake comes out where it is waited for, in the emulator's words, and every
// later call says that the context is lost.
func TestKernelFault(t *testing.T) {
	b := newBench(t)
	broken := b.function("broken")
	b.must(broken.Launch(b.stream, Launch{Grid: Dim{X: 1}, Block: Dim{X: 1}}, new(Args).Int32(1)))
	err := b.stream.Synchronize()
	var e *Error
	if !errors.As(err, &e) || e.Name != "CUDA_ERROR_LAUNCH_FAILED" || e.Text != "kernels.c:1: kernel broken: planted" || !strings.Contains(e.Remedy, "CUDA_LAUNCH_BLOCKING") {
		t.Errorf("got %v", err)
	}
	if err := b.stream.Synchronize(); !errors.As(err, &e) || e.Code != 719 {
		t.Errorf("after a fault: %v", err)
	}
	testMock.Recover()
	_, err = b.module.Function("nowhere")
	if !errors.As(err, &e) || e.Name != "CUDA_ERROR_NOT_FOUND" || !strings.HasPrefix(err.Error(), "cuModuleGetFunction nowhere of cuda/test.cu on GPU 0") {
		t.Errorf("got %v", err)
	}
}

// Goroutines that wander between threads launch on two GPUs at once.
func TestThreads(t *testing.T) {
	testKernels(t)
	done := make(chan error)
	for ordinal := range 2 {
		for range 4 {
			go func() { done <- launchAndCheck(t, ordinal) }()
		}
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if left := testMock.Alive(); left != "" {
		t.Errorf("left over: %s", left)
	}
}

func launchAndCheck(t *testing.T, ordinal int) error {
	gpu, err := Open(ordinal)
	if err != nil {
		return err
	}
	defer gpu.Close()
	stream, err := gpu.NewStream(HighPriority)
	if err != nil {
		return err
	}
	defer stream.Close()
	cubin, err := testCompiler(t).Compile(testSource, gpu.Arch())
	if err != nil {
		return err
	}
	module, err := gpu.Load(cubin)
	if err != nil {
		return err
	}
	defer module.Close()
	add, err := module.Function("add")
	if err != nil {
		return err
	}
	x, err := stream.Alloc(64)
	if err != nil {
		return err
	}
	if err := stream.Fill32(x, 0, 16); err != nil {
		return err
	}
	for range 50 {
		runtime.Gosched()
		if err := add.Launch(stream, Launch{Grid: Dim{X: 1}, Block: Dim{X: 32}}, new(Args).Ptr(x).Float32(1).Int32(16)); err != nil {
			return err
		}
	}
	got := make([]byte, 64)
	if err := stream.Download(got, x); err != nil {
		return err
	}
	if v := math.Float32frombits(binary.LittleEndian.Uint32(got[60:])); v != 50 {
		t.Errorf("GPU %d: sum %v, want 50", ordinal, v)
	}
	return errors.Join(stream.Free(x), stream.Synchronize())
}
