package cuda

// #cgo noescape cuMemcpyHtoDAsync_v2
// #cgo nocallback cuMemcpyHtoDAsync_v2
// #cgo noescape cuMemcpyDtoHAsync_v2
// #cgo nocallback cuMemcpyDtoHAsync_v2
// #include "driver.h"
//
// struct outcome { CUresult code; const char *call; };
//
// // Waits for a copy that was asked for: its memory may move or go once the call returns.
// static struct outcome waited(CUcontext c, CUresult asked, const char *call, CUstream s) {
//     if (asked) return (struct outcome){asked, call};
//     return (struct outcome){cuStreamSynchronize(c, s), "cuStreamSynchronize"};
// }
// static struct outcome copy_in(CUcontext c, CUdeviceptr to, const void *from, size_t bytes, CUstream s) {
//     return waited(c, cuMemcpyHtoDAsync_v2(c, to, from, bytes, s), "cuMemcpyHtoDAsync", s);
// }
// static struct outcome copy_out(CUcontext c, void *to, CUdeviceptr from, size_t bytes, CUstream s) {
//     return waited(c, cuMemcpyDtoHAsync_v2(c, to, from, bytes, s), "cuMemcpyDtoHAsync", s);
// }
import "C"

import "unsafe"

// ToDevice copies pinned memory to the GPU, after the stream's work so far. The memory is
// neither changed nor freed until the copy is done.
func (s *Stream) ToDevice(to Ptr, from Host) error {
	r := C.cuMemcpyHtoDAsync_v2(s.device.context, C.CUdeviceptr(to), from.at, C.size_t(from.size), s.handle)
	if r != 0 {
		return s.device.failure(r, "cuMemcpyHtoDAsync", "of %v to %v", Bytes(from.size), to)
	}
	return nil
}

// ToHost copies from the GPU to pinned memory, which is read once the copy is done.
func (s *Stream) ToHost(to Host, from Ptr) error {
	r := C.cuMemcpyDtoHAsync_v2(s.device.context, to.at, C.CUdeviceptr(from), C.size_t(to.size), s.handle)
	if r != 0 {
		return s.device.failure(r, "cuMemcpyDtoHAsync", "of %v from %v", Bytes(to.size), from)
	}
	return nil
}

// Upload copies any memory to the GPU and waits for the stream.
func (s *Stream) Upload(to Ptr, from []byte) error {
	if len(from) == 0 {
		return nil
	}
	r := C.copy_in(s.device.context, C.CUdeviceptr(to), unsafe.Pointer(&from[0]), C.size_t(len(from)), s.handle)
	if r.code != 0 {
		return s.device.failure(r.code, C.GoString(r.call), "of %v to %v", Bytes(len(from)), to)
	}
	return nil
}

// Download copies from the GPU to any memory and waits for the stream.
func (s *Stream) Download(to []byte, from Ptr) error {
	if len(to) == 0 {
		return nil
	}
	r := C.copy_out(s.device.context, unsafe.Pointer(&to[0]), C.CUdeviceptr(from), C.size_t(len(to)), s.handle)
	if r.code != 0 {
		return s.device.failure(r.code, C.GoString(r.call), "of %v from %v", Bytes(len(to)), from)
	}
	return nil
}

// Copy copies within the GPU. The two ranges do not overlap.
func (s *Stream) Copy(to, from Ptr, size Bytes) error {
	r := C.cuMemcpyDtoDAsync_v2(s.device.context, C.CUdeviceptr(to), C.CUdeviceptr(from), C.size_t(size), s.handle)
	if r != 0 {
		return s.device.failure(r, "cuMemcpyDtoDAsync", "of %v from %v to %v", size, from, to)
	}
	return nil
}

// CopyPeer copies between GPUs, over their link where EnablePeerAccess was called and
// through the processor's memory elsewhere.
func (s *Stream) CopyPeer(toDevice *Device, to Ptr, fromDevice *Device, from Ptr, size Bytes) error {
	r := C.cuMemcpyPeerAsync(s.device.context, C.CUdeviceptr(to), toDevice.context, C.CUdeviceptr(from), fromDevice.context,
		C.size_t(size), s.handle)
	if r != 0 {
		return s.device.failure(r, "cuMemcpyPeerAsync", "of %v from %v to %v, asked for", size, fromDevice, toDevice)
	}
	return nil
}

// Fill sets bytes.
func (s *Stream) Fill(to Ptr, value byte, size Bytes) error {
	if r := C.cuMemsetD8Async(s.device.context, C.CUdeviceptr(to), C.uchar(value), C.size_t(size), s.handle); r != 0 {
		return s.device.failure(r, "cuMemsetD8Async", "of %v at %v", size, to)
	}
	return nil
}

// Fill32 sets words of 4 bytes; the address is a multiple of 4.
func (s *Stream) Fill32(to Ptr, value uint32, words int) error {
	if r := C.cuMemsetD32Async(s.device.context, C.CUdeviceptr(to), C.uint(value), C.size_t(words), s.handle); r != 0 {
		return s.device.failure(r, "cuMemsetD32Async", "of %d words at %v", words, to)
	}
	return nil
}
