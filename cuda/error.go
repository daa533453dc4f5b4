package cuda

// #include "driver.h"
import "C"

import (
	"errors"
	"fmt"
	"strings"
)

// Error is a call of a CUDA library that failed.
type Error struct {
	Call   string // "cuMemAllocAsync"
	On     string // on what: "3.0 GiB on GPU 0 (NVIDIA H200)"; may be empty
	Code   int    // the library's own numbering
	Name   string // "CUDA_ERROR_OUT_OF_MEMORY"
	Text   string // what the library says about the code; may be empty
	Remedy string // what to do; may be empty
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Call)
	if e.On != "" {
		b.WriteString(" " + e.On)
	}
	fmt.Fprintf(&b, ": %s (%d)", e.Name, e.Code)
	if e.Text != "" {
		b.WriteString(", " + e.Text)
	}
	if e.Remedy != "" {
		b.WriteString("; " + e.Remedy)
	}
	return b.String()
}

// ErrOutOfMemory is the target of errors.Is for an Error that says that the GPU's
// memory is used up.
var ErrOutOfMemory = errors.New("out of GPU memory")

// Is reports that the error is of the kind that target names.
func (e *Error) Is(target error) bool {
	return target == ErrOutOfMemory && e.Name == "CUDA_ERROR_OUT_OF_MEMORY"
}

// kernelFault ends the remedies of errors that a kernel makes some time after its launch.
const kernelFault = "a kernel launched earlier did it, and the GPU's context is lost: end the program; " +
	"to find the kernel run with CUDA_LAUNCH_BLOCKING=1 or under compute-sanitizer"

// remedies tell what to do about the driver's codes that users meet.
var remedies = map[C.CUresult]string{
	C.CUDA_ERROR_INVALID_VALUE:              "an argument is outside what the GPU allows",
	C.CUDA_ERROR_OUT_OF_MEMORY:              "use smaller micro-batches, shorter sequences or activation checkpointing, or end other processes on the GPU",
	C.CUDA_ERROR_NO_DEVICE:                  "the driver sees no GPU: check nvidia-smi, CUDA_VISIBLE_DEVICES, and --gpus all if this is a container",
	C.CUDA_ERROR_INVALID_DEVICE:             "caper doctor lists the GPUs",
	C.CUDA_ERROR_INVALID_IMAGE:              "the cubin is damaged or of a newer compiler: empty the cache folder that caper doctor names",
	C.CUDA_ERROR_NO_BINARY_FOR_GPU:          "the cubin is for another architecture: compile it for Device.Arch",
	C.CUDA_ERROR_UNSUPPORTED_PTX_VERSION:    "the compiler is newer than the driver: update the driver or use the driver's NVRTC",
	C.CUDA_ERROR_NOT_FOUND:                  "the name is that of an extern \"C\" __global__ function of the module",
	C.CUDA_ERROR_ILLEGAL_ADDRESS:            kernelFault,
	C.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:    "the block needs more registers or shared memory than a multiprocessor has: use fewer threads",
	C.CUDA_ERROR_ILLEGAL_INSTRUCTION:        kernelFault,
	C.CUDA_ERROR_MISALIGNED_ADDRESS:         kernelFault,
	C.CUDA_ERROR_LAUNCH_FAILED:              kernelFault,
	C.CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:     "libcuda and the kernel module are of different versions: reboot, or reinstall the driver",
	C.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: "the stream is being captured into a graph: neither wait nor allocate before Stream.Capture returns",
	C.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED: "something waited for a stream, or failed, while it was captured into a graph",
	C.CUDA_ERROR_STREAM_CAPTURE_UNJOINED:    "another stream joined the capture and did not come back: let the captured stream wait for an event at its end",
	C.CUDA_ERROR_INVALID_CLUSTER_SIZE:       "the grid is a multiple of the cluster, and a cluster holds at most 8 blocks",
}

// failure is the error of a call of the driver. on says on what it was called.
func failure(code C.CUresult, call, on string) *Error {
	e := &Error{Call: call, On: on, Code: int(code), Name: "CUDA_ERROR_UNKNOWN", Remedy: remedies[code]}
	var text *C.char
	if C.cuGetErrorName(code, &text) == 0 && text != nil {
		e.Name = C.GoString(text)
	}
	if C.cuGetErrorString(code, &text) == 0 && text != nil {
		e.Text = C.GoString(text)
	}
	return e
}

// failure is the error of a call on this GPU; format says on what.
func (d *Device) failure(code C.CUresult, call, format string, args ...any) *Error {
	on := strings.TrimSpace(fmt.Sprintf(format, args...) + " on " + d.String())
	e := failure(code, call, on)
	if code == C.CUDA_ERROR_OUT_OF_MEMORY {
		var free, total C.size_t
		if C.cuMemGetInfo_v2(d.context, &free, &total) == 0 {
			e.Remedy = fmt.Sprintf("%s of %s are free: %s", Bytes(free), Bytes(total), e.Remedy)
		}
	}
	return e
}

// Bytes is a number of bytes that prints in the unit that fits: "1.5 GiB".
type Bytes int64

func (b Bytes) String() string {
	const kib, mib, gib = 1 << 10, 1 << 20, 1 << 30
	switch {
	case b >= gib:
		return fmt.Sprintf("%.1f GiB", float64(b)/gib)
	case b >= mib:
		return fmt.Sprintf("%.1f MiB", float64(b)/mib)
	case b >= kib:
		return fmt.Sprintf("%.1f KiB", float64(b)/kib)
	}
	return fmt.Sprintf("%d bytes", int64(b))
}
