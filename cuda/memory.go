package cuda

// #cgo noescape cuMemAllocAsync
// #cgo nocallback cuMemAllocAsync
// #cgo noescape cuMemFreeAsync
// #cgo nocallback cuMemFreeAsync
// #include "driver.h"
import "C"

import (
	"fmt"
	"unsafe"
)

// Ptr is an address in a GPU's memory; 0 is nil. Add with + to point into an allocation.
type Ptr uint64

func (p Ptr) String() string { return fmt.Sprintf("%#x", uint64(p)) }

// Memory returns how much of the GPU's memory no process uses, and how much there is.
func (d *Device) Memory() (free, total Bytes, err error) {
	var f, t C.size_t
	if r := C.cuMemGetInfo_v2(d.context, &f, &t); r != 0 {
		return 0, 0, d.failure(r, "cuMemGetInfo", "")
	}
	return Bytes(f), Bytes(t), nil
}

// Alloc takes memory that lives until Free, such as an arena; it waits for the GPU.
// Contents are undefined, alignment 256 bytes or more.
func (d *Device) Alloc(size Bytes) (Ptr, error) {
	var p C.CUdeviceptr
	if r := C.cuMemAlloc_v2(d.context, &p, C.size_t(size)); r != 0 {
		return 0, d.failure(r, "cuMemAlloc", "of %v", size)
	}
	return Ptr(p), nil
}

// Free gives back what Alloc took; it waits for the GPU.
func (d *Device) Free(p Ptr) error {
	if r := C.cuMemFree_v2(d.context, C.CUdeviceptr(p)); r != 0 {
		return d.failure(r, "cuMemFree", "of %v", p)
	}
	return nil
}

// Alloc takes memory from the GPU's pool for the stream's further work. Not while the
// stream is captured.
func (s *Stream) Alloc(size Bytes) (Ptr, error) {
	var p C.CUdeviceptr
	if r := C.cuMemAllocAsync(s.device.context, &p, C.size_t(size), s.handle); r != 0 {
		return 0, s.device.failure(r, "cuMemAllocAsync", "of %v", size)
	}
	return Ptr(p), nil
}

// Free gives memory of Stream.Alloc back to the pool when the stream's work up to here
// is done. Another stream that used it is waited for first (Wait).
func (s *Stream) Free(p Ptr) error {
	if r := C.cuMemFreeAsync(s.device.context, C.CUdeviceptr(p), s.handle); r != 0 {
		return s.device.failure(r, "cuMemFreeAsync", "of %v", p)
	}
	return nil
}

// PoolUsage tells what the pool of Stream.Alloc holds.
type PoolUsage struct {
	Used, PeakUsed         Bytes // in allocations
	Reserved, PeakReserved Bytes // taken from the GPU
}

// PoolUsage returns what the pool holds now and at most since ResetPoolPeak.
func (d *Device) PoolUsage() (u PoolUsage, err error) {
	for _, a := range []struct {
		attribute C.CUmemPool_attribute
		to        *Bytes
	}{
		{C.CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &u.Used},
		{C.CU_MEMPOOL_ATTR_USED_MEM_HIGH, &u.PeakUsed},
		{C.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &u.Reserved},
		{C.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &u.PeakReserved},
	} {
		var v C.uint64_t
		if r := C.cuMemPoolGetAttribute(d.context, d.pool, a.attribute, unsafe.Pointer(&v)); r != 0 {
			return u, d.failure(r, "cuMemPoolGetAttribute", "%d", a.attribute)
		}
		*a.to = Bytes(v)
	}
	return u, nil
}

// ResetPoolPeak lets the peaks begin again at what is used now.
func (d *Device) ResetPoolPeak() error {
	if err := d.setPool(C.CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0); err != nil {
		return err
	}
	return d.setPool(C.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 0)
}

// SetPoolKeep sets how much the pool keeps when a stream or event is waited for, instead
// of giving it back to the GPU. It is 0 at first, which makes each step pay for its
// memory again.
func (d *Device) SetPoolKeep(size Bytes) error {
	return d.setPool(C.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, size)
}

func (d *Device) setPool(attribute C.CUmemPool_attribute, size Bytes) error {
	v := C.uint64_t(size)
	if r := C.cuMemPoolSetAttribute(d.context, d.pool, attribute, unsafe.Pointer(&v)); r != 0 {
		return d.failure(r, "cuMemPoolSetAttribute", "%d to %v", attribute, size)
	}
	return nil
}

// TrimPool gives unused memory of the pool beyond keep back to the GPU.
func (d *Device) TrimPool(keep Bytes) error {
	if r := C.cuMemPoolTrimTo(d.context, d.pool, C.size_t(keep)); r != 0 {
		return d.failure(r, "cuMemPoolTrimTo", "%v", keep)
	}
	return nil
}

// Host is pinned memory of the processor, or a part of it. Only such memory takes part
// in copies that go on after the call; it is outside of Go's heap.
type Host struct {
	device *Device
	at     unsafe.Pointer
	size   int
}

// AllocHost takes pinned memory, which any GPU can reach. Contents are undefined.
func (d *Device) AllocHost(size Bytes) (Host, error) {
	h := Host{device: d, size: int(size)}
	if r := C.cuMemHostAlloc(d.context, &h.at, C.size_t(size), C.CU_MEMHOSTALLOC_PORTABLE); r != 0 {
		e := failure(r, "cuMemHostAlloc", fmt.Sprintf("of %v for %v", size, d))
		if r == C.CUDA_ERROR_OUT_OF_MEMORY {
			e.Remedy = "the processor's memory, or what may be pinned of it (ulimit -l), is used up"
		}
		return Host{}, e
	}
	return h, nil
}

// Free gives the memory back; h is the whole of what AllocHost returned.
func (h Host) Free() error {
	if r := C.cuMemFreeHost(h.device.context, h.at); r != 0 {
		return h.device.failure(r, "cuMemFreeHost", "of %v", Bytes(h.size))
	}
	return nil
}

// Len is the number of bytes.
func (h Host) Len() int { return h.size }

// Slice is the part from byte lo up to byte hi.
func (h Host) Slice(lo, hi int) Host {
	if lo < 0 || hi < lo || hi > h.size {
		panic(fmt.Sprintf("cuda: Host.Slice [%d:%d] of %d bytes", lo, hi, h.size))
	}
	return Host{h.device, unsafe.Add(h.at, lo), hi - lo}
}

// Bytes is the memory itself, valid until Free.
func (h Host) Bytes() []byte { return unsafe.Slice((*byte)(h.at), h.size) }

// HostAs is the memory as elements of a fixed size, valid until Free.
func HostAs[T ~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~float32 | ~float64](h Host) []T {
	var element T
	return unsafe.Slice((*T)(h.at), h.size/int(unsafe.Sizeof(element)))
}
