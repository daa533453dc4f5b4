package cuda

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// exercise makes every call of this package once, cleans up whatever happens, and returns
// the first error.
func exercise(t *testing.T) error {
	w := &worker{}
	defer w.cleanUp()
	if _, err := Devices(); err != nil {
		return err
	}
	gpu, err := Open(0)
	w.keep(err, "gpu", func() error { return gpu.Close() })
	other, err := Open(1)
	w.keep(err, "other", func() error { return other.Close() })
	if w.failed != nil {
		return w.failed
	}
	_, err = gpu.CanAccessPeer(other)
	w.check(err)
	w.check(gpu.EnablePeerAccess(other))
	stream, err := gpu.NewStream(HighPriority)
	w.keep(err, "stream", func() error { return stream.Close() })
	start, err := gpu.NewEvent(true)
	w.keep(err, "start", func() error { return start.Close() })
	if w.failed != nil {
		return w.failed
	}
	cubin, err := (&Compiler{headers: testCompiler(t).headers}).Compile(testSource, gpu.Arch())
	w.check(err)
	if w.failed != nil {
		return w.failed
	}
	module, err := gpu.Load(cubin)
	w.keep(err, "module", func() error { return module.Close() })
	memory, err := gpu.Alloc(1 << 10)
	w.keep(err, "memory", func() error { return gpu.Free(memory) })
	host, err := gpu.AllocHost(1 << 10)
	w.keep(err, "host", func() error { return host.Free() })
	if w.failed != nil {
		return w.failed
	}
	w.check(exerciseMemory(gpu, stream, memory, host))
	w.check(exerciseKernel(gpu, stream, module, memory))
	w.check(exerciseEvents(stream, start))
	w.check(exerciseGraph(stream, memory))
	return w.cleanUp()
}

func exerciseMemory(gpu *Device, stream *Stream, memory Ptr, host Host) error {
	_, _, infoErr := gpu.Memory()
	p, err := stream.Alloc(1 << 10)
	if err != nil {
		return errors.Join(infoErr, err)
	}
	_, usageErr := gpu.PoolUsage()
	err = errors.Join(infoErr, usageErr, gpu.ResetPoolPeak(), gpu.SetPoolKeep(1<<20), gpu.TrimPool(0),
		stream.Fill(p, 0, 64), stream.Fill32(p, 0, 16), stream.Copy(p, memory, 64), stream.CopyPeer(gpu, memory, gpu, p, 64),
		stream.ToDevice(p, host), stream.ToHost(host, p), stream.Upload(p, make([]byte, 64)), stream.Download(make([]byte, 64), p))
	if failed := stream.Free(p); failed != nil {
		return errors.Join(err, failed, stream.Free(p))
	}
	return err
}

func exerciseKernel(gpu *Device, stream *Stream, module *Module, memory Ptr) error {
	_, err := gpu.TensorMap(TensorLayout{Element: Float32, At: memory &^ 15, Sizes: []uint64{16}, Box: []uint32{16}})
	add, addErr := module.Function("add")
	if addErr != nil {
		return errors.Join(err, addErr)
	}
	_, occupancyErr := add.Occupancy(64, 64<<10)
	launchErr := add.Launch(stream, Launch{Grid: Dim{X: 1}, Block: Dim{X: 1}}, new(Args).Ptr(memory).Float32(0).Int32(1))
	return errors.Join(err, occupancyErr, launchErr)
}

func exerciseEvents(stream *Stream, start *Event) error {
	err := errors.Join(stream.Record(start), stream.Wait(start), start.Synchronize(), stream.Synchronize())
	_, doneErr := start.Done()
	_, streamErr := stream.Done()
	_, timeErr := start.Since(start)
	return errors.Join(err, doneErr, streamErr, timeErr)
}

func exerciseGraph(stream *Stream, memory Ptr) error {
	graph, err := stream.Capture(func() error { return stream.Fill(memory, 0, 16) })
	if err != nil {
		return err
	}
	exec, err := graph.Instantiate()
	if err == nil {
		err = errors.Join(exec.Update(graph), exec.Upload(stream), exec.Launch(stream), twice(exec.Close))
	}
	return errors.Join(err, twice(graph.Close))
}

// twice does something again that failed; a test makes only one call fail.
func twice(f func() error) error {
	err := f()
	if err != nil {
		f()
	}
	return err
}

// worker keeps the first error and what is to be closed.
type worker struct {
	failed error
	close  []func() error
}

func (w *worker) check(err error) {
	if w.failed == nil {
		w.failed = err
	}
}

func (w *worker) keep(err error, _ string, close func() error) {
	w.check(err)
	if err == nil {
		w.close = append(w.close, close)
	}
}

func (w *worker) cleanUp() error {
	for _, f := range slices.Backward(w.close) {
		w.check(twice(f))
	}
	w.close = nil
	return w.failed
}

// Each call of the driver that fails is named in the error, with its code's name, and
// nothing is left over.
func TestEveryCallFails(t *testing.T) {
	testKernels(t)
	made := map[string]bool{}
	for _, line := range testMock.Record(func() {
		if err := exercise(t); err != nil {
			t.Fatal(err)
		}
	}) {
		call, _, _ := strings.Cut(line, " ")
		made[call] = true
	}
	delete(made, "nvrtcDestroyProgram") // the cubin is there: nobody needs to know
	for _, call := range slices.Sorted(maps.Keys(made)) {
		t.Run(call, func(t *testing.T) {
			code := map[bool]int{true: 801, false: 6}[strings.HasPrefix(call, "cu")]
			testMock.Fail(call, 1, code)
			err := exercise(t)
			testMock.Fail("", 0, 0)
			checkFailure(t, call, code, err)
			if left := testMock.Alive(); left != "" {
				t.Errorf("left over: %s", left)
			}
		})
	}
	for _, call := range driverCalls(t) {
		if !made[call] && call != "cuCtxSetCurrent" && !strings.HasPrefix(call, "cuGetError") {
			t.Errorf("no test makes %s", call)
		}
	}
}

func checkFailure(t *testing.T, call string, code int, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v", err)
	}
	if e.Call != strings.TrimSuffix(call, "_v2") || e.Code != code {
		t.Errorf("%s failed, the error names %s with code %d", call, e.Call, e.Code)
	}
	if code == 801 && !strings.Contains(err.Error(), "CUDA_ERROR_NOT_SUPPORTED (801), operation not supported") {
		t.Errorf("got %v", err)
	}
}

// Drivers of CUDA 12 and 13 work, each with its compiler; older ones are refused.
func TestDriverVersions(t *testing.T) {
	needMock(t)
	defer testMock.SetVersion(13000, 90)
	for version, sonames := range map[int]string{12000: "libnvrtc.so.12", 12090: "libnvrtc.so.12", 13000: "libnvrtc.so.13 libnvrtc.so.12", 13020: "libnvrtc.so.13 libnvrtc.so.12"} {
		testMock.SetVersion(version, 90)
		if err := exercise(t); err != nil {
			t.Errorf("driver %d: %v", version, err)
		}
		v, _ := presentDriver()
		if v != (Version{version / 1000, version % 1000 / 10}) {
			t.Errorf("driver %d is called %v", version, v)
		}
		if got := strings.Join(nvrtcLibrary(v.Major).sonames, " "); got != sonames {
			t.Errorf("driver %v takes %s, want %s", v, got, sonames)
		}
	}
	testMock.SetVersion(11080, 90)
	if _, err := Open(0); err == nil || !strings.Contains(err.Error(), "is of CUDA 11.8; install NVIDIA driver 525") {
		t.Errorf("got %v", err)
	}
}

// Each GPU has its architecture; those that lack bf16 are refused.
func TestArchitectures(t *testing.T) {
	needMock(t)
	defer testMock.SetVersion(13000, 90)
	for capability, arch := range map[int]string{80: "sm_80", 86: "sm_80", 89: "sm_80", 90: "sm_90a", 100: "sm_100a", 103: "sm_103a", 120: "sm_120a"} {
		testMock.SetVersion(13000, capability)
		list, err := Devices()
		if err != nil {
			t.Fatal(err)
		}
		if len(list) != 2 || list[1].Arch() != arch || list[1].Ordinal != 1 || list[0].SMs != 132 || list[0].SharedOptIn != 227<<10 {
			t.Errorf("capability %d: %+v", capability, list)
		}
	}
	testMock.SetVersion(13000, 75)
	if _, err := Open(0); err == nil || !strings.Contains(err.Error(), "has compute capability 7.5: bf16 needs 8.0") {
		t.Errorf("got %v", err)
	}
	if _, err := Open(7); err == nil || !strings.Contains(err.Error(), "cuDeviceGet of GPU 7: CUDA_ERROR_INVALID_DEVICE (101)") || !strings.Contains(err.Error(), "caper doctor") {
		t.Errorf("got %v", err)
	}
}

// A cubin of another architecture, or no cubin, is refused with the reason.
func TestWrongCubin(t *testing.T) {
	b := newBench(t)
	cubin, err := testCompiler(t).Compile(testSource, "sm_80")
	b.must(err)
	_, err = b.gpu.Load(cubin)
	if want := "cuModuleLoadData of cuda/test.cu for sm_80 on GPU 0 (Mock H200): CUDA_ERROR_NO_BINARY_FOR_GPU (209)"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err = b.gpu.Load(&Cubin{Name: "x", Image: []byte(fmt.Sprintf("%0100d", 0))}); err == nil || !strings.Contains(err.Error(), "CUDA_ERROR_INVALID_IMAGE") {
		t.Errorf("got %v", err)
	}
	if _, err = b.gpu.Load(&Cubin{Name: "x"}); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("got %v", err)
	}
}
