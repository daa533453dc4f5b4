package cuda

// #include <stdlib.h>
// #include "driver.h"
//
// // Sizes of the parameters, up to max of them; -1 where the driver cannot tell.
// static int parameter_sizes(CUfunction f, uint32_t *sizes, int max) {
//     if (!caper_driver.cuFuncGetParamInfo) return -1;
//     size_t offset, size;
//     int n = 0;
//     while (n < max && caper_driver.cuFuncGetParamInfo(f, n, &offset, &size) == 0) sizes[n++] = size;
//     return n;
// }
import "C"

import (
	"fmt"
	"sync/atomic"
	"unsafe"
)

// Module is a cubin loaded on a GPU.
type Module struct {
	device *Device
	cubin  *Cubin
	handle C.CUmodule
}

// Load loads a cubin that was compiled for the GPU's architecture.
func (d *Device) Load(cubin *Cubin) (*Module, error) {
	if len(cubin.Image) == 0 {
		return nil, fmt.Errorf("cuda: cubin of %s is empty", cubin.Name)
	}
	m := &Module{device: d, cubin: cubin}
	image := C.CBytes(cubin.Image)
	defer C.free(image)
	if r := C.cuModuleLoadData(d.context, &m.handle, image); r != 0 {
		return nil, d.failure(r, "cuModuleLoadData", "of %s for %s", cubin.Name, cubin.Arch)
	}
	return m, nil
}

// Close unloads the module once nothing of it runs.
func (m *Module) Close() error {
	if r := C.cuModuleUnload(m.device.context, m.handle); r != 0 {
		return m.device.failure(r, "cuModuleUnload", "of %s", m.cubin.Name)
	}
	return nil
}

// Function is a kernel of a module. Several goroutines may launch it.
type Function struct {
	Name       string
	Registers  int   // of a thread
	Local      Bytes // memory of a thread for what fits in no register
	Shared     Bytes // static
	MaxThreads int   // of a block

	device     *Device
	handle     C.CUfunction
	parameters []uint32     // sizes; nil where the driver does not tell (before CUDA 12.4)
	dynamic    atomic.Int64 // shared memory that launches may ask for
}

// defaultDynamicShared is what a launch may ask for without having set it before.
const defaultDynamicShared = 48 << 10

// Function finds a kernel by its name.
func (m *Module) Function(name string) (*Function, error) {
	f := &Function{Name: name, device: m.device}
	f.dynamic.Store(defaultDynamicShared)
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	if r := C.cuModuleGetFunction(m.device.context, &f.handle, m.handle, text); r != 0 {
		return nil, m.device.failure(r, "cuModuleGetFunction", "%s of %s", name, m.cubin.Name)
	}
	for _, a := range []struct {
		attribute C.CUfunction_attribute
		set       func(int)
	}{
		{C.CU_FUNC_ATTRIBUTE_NUM_REGS, func(v int) { f.Registers = v }},
		{C.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, func(v int) { f.Local = Bytes(v) }},
		{C.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, func(v int) { f.Shared = Bytes(v) }},
		{C.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, func(v int) { f.MaxThreads = v }},
	} {
		var v C.int
		if r := C.cuFuncGetAttribute(m.device.context, &v, a.attribute, f.handle); r != 0 {
			return nil, m.device.failure(r, "cuFuncGetAttribute", "%d of %s", a.attribute, name)
		}
		a.set(int(v))
	}
	var sizes [maxParameters]uint32
	if n := C.parameter_sizes(f.handle, (*C.uint32_t)(&sizes[0]), maxParameters); n >= 0 {
		f.parameters = append([]uint32{}, sizes[:n]...)
	}
	return f, nil
}

// Occupancy returns how many blocks of this many threads and this much dynamic shared
// memory a multiprocessor holds at once.
func (f *Function) Occupancy(threads int, shared Bytes) (blocks int, err error) {
	if err := f.allowShared(shared); err != nil {
		return 0, err
	}
	var n C.int
	if r := C.cuOccupancyMaxActiveBlocksPerMultiprocessor(f.device.context, &n, f.handle, C.int(threads), C.size_t(shared)); r != 0 {
		return 0, f.device.failure(r, "cuOccupancyMaxActiveBlocksPerMultiprocessor", "for %s with %d threads and %v", f.Name, threads, shared)
	}
	return int(n), nil
}

// allowShared raises what launches may ask for, which the driver wants to know before.
func (f *Function) allowShared(shared Bytes) error {
	if int64(shared) <= f.dynamic.Load() {
		return nil
	}
	r := C.cuFuncSetAttribute(f.device.context, f.handle, C.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, C.int(shared))
	if r != 0 {
		e := f.device.failure(r, "cuFuncSetAttribute", "of %s to %v of dynamic shared memory", f.Name, shared)
		e.Remedy = fmt.Sprintf("a block has at most %v, %v of it static", f.device.SharedOptIn, f.Shared)
		return e
	}
	f.dynamic.Store(int64(shared))
	return nil
}
