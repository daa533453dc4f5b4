package cuda

// #include "driver.h"
import "C"

import "fmt"

// Info describes a GPU.
type Info struct {
	Ordinal      int    `json:"ordinal"` // among the GPUs that CUDA_VISIBLE_DEVICES leaves
	Name         string `json:"name"`
	Memory       Bytes  `json:"memory_bytes"`
	Major        int    `json:"major"` // compute capability
	Minor        int    `json:"minor"`
	SMs          int    `json:"multiprocessors"`
	L2           Bytes  `json:"l2_bytes"`
	SharedPerSM  Bytes  `json:"shared_per_multiprocessor_bytes"`
	SharedOptIn  Bytes  `json:"shared_per_block_bytes"` // the most a block may ask for
	SharedSystem Bytes  `json:"shared_reserved_bytes"`  // what each block loses of SharedPerSM
	MemoryPools  bool   `json:"memory_pools"`           // Stream.Alloc works
	Clusters     bool   `json:"clusters"`               // Launch.Cluster works
	TensorMaps   bool   `json:"tensor_maps"`            // Device.TensorMap works
}

// Arch is the architecture to compile for. Those with an "a" run on this compute
// capability only, and have its tensor cores' instructions.
func (i Info) Arch() string {
	if i.Major == 8 {
		return "sm_80"
	}
	return fmt.Sprintf("sm_%d%da", i.Major, i.Minor)
}

// usable says why kernels cannot run on the GPU, nil if they can.
func (i Info) usable() error {
	if i.Major < 8 {
		return fmt.Errorf("%s has compute capability %d.%d: bf16 needs 8.0 (A100, RTX 30) or later", i, i.Major, i.Minor)
	}
	if !i.MemoryPools {
		return fmt.Errorf("%s has no memory pools: its driver or its virtual GPU's profile switches them off", i)
	}
	return nil
}

// String names the GPU in messages.
func (i Info) String() string { return fmt.Sprintf("GPU %d (%s)", i.Ordinal, i.Name) }

// Devices lists the GPUs.
func Devices() ([]Info, error) {
	if _, err := initDriver(); err != nil {
		return nil, err
	}
	var count C.int
	if r := C.cuDeviceGetCount(&count); r != 0 {
		return nil, failure(r, "cuDeviceGetCount", "")
	}
	list := make([]Info, count)
	for i := range list {
		_, info, err := describe(i)
		if err != nil {
			return nil, err
		}
		list[i] = info
	}
	return list, nil
}

// describe asks for a GPU's handle and its attributes.
func describe(ordinal int) (device C.CUdevice, info Info, err error) {
	info.Ordinal = ordinal
	if r := C.cuDeviceGet(&device, C.int(ordinal)); r != 0 {
		return 0, info, failure(r, "cuDeviceGet", fmt.Sprintf("of GPU %d", ordinal))
	}
	var name [256]C.char
	if r := C.cuDeviceGetName(&name[0], C.int(len(name)), device); r != 0 {
		return 0, info, failure(r, "cuDeviceGetName", fmt.Sprintf("of GPU %d", ordinal))
	}
	info.Name = C.GoString(&name[0])
	var memory C.size_t
	if r := C.cuDeviceTotalMem_v2(&memory, device); r != 0 {
		return 0, info, failure(r, "cuDeviceTotalMem", "of "+info.String())
	}
	info.Memory = Bytes(memory)
	for _, a := range []struct {
		attribute C.CUdevice_attribute
		set       func(int)
	}{
		{C.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, func(v int) { info.Major = v }},
		{C.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, func(v int) { info.Minor = v }},
		{C.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, func(v int) { info.SMs = v }},
		{C.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, func(v int) { info.L2 = Bytes(v) }},
		{C.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, func(v int) { info.SharedPerSM = Bytes(v) }},
		{C.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, func(v int) { info.SharedOptIn = Bytes(v) }},
		{C.CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, func(v int) { info.SharedSystem = Bytes(v) }},
		{C.CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, func(v int) { info.MemoryPools = v != 0 }},
		{C.CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, func(v int) { info.Clusters = v != 0 }},
		{C.CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, func(v int) { info.TensorMaps = v != 0 }},
	} {
		var value C.int
		if r := C.cuDeviceGetAttribute(&value, a.attribute, device); r != 0 {
			return 0, info, failure(r, "cuDeviceGetAttribute", fmt.Sprintf("%d of %s", a.attribute, info))
		}
		a.set(int(value))
	}
	return device, info, nil
}

// Device is a GPU ready for use: its primary context, which all users of the GPU in the
// process share. Its methods may be called by several goroutines at once.
type Device struct {
	Info
	Driver  Version
	handle  C.CUdevice
	context C.CUcontext
	pool    C.CUmemoryPool
}

// Open makes a GPU ready. It refuses what the kernels cannot run on: compute
// capabilities below 8.0, and GPUs without memory pools.
func Open(ordinal int) (*Device, error) {
	version, err := initDriver()
	if err != nil {
		return nil, err
	}
	handle, info, err := describe(ordinal)
	if err != nil {
		return nil, err
	}
	if err := info.usable(); err != nil {
		return nil, err
	}
	d := &Device{Info: info, Driver: version, handle: handle}
	if r := C.cuDevicePrimaryCtxRetain(&d.context, handle); r != 0 {
		return nil, failure(r, "cuDevicePrimaryCtxRetain", "of "+info.String())
	}
	if r := C.cuDeviceGetDefaultMemPool(&d.pool, handle); r != 0 {
		err := failure(r, "cuDeviceGetDefaultMemPool", "of "+info.String())
		d.Close()
		return nil, err
	}
	return d, nil
}

// Close gives the context back. What was made on the device is closed before.
func (d *Device) Close() error {
	if r := C.cuDevicePrimaryCtxRelease_v2(d.handle); r != 0 {
		return failure(r, "cuDevicePrimaryCtxRelease", "of "+d.String())
	}
	return nil
}

// CanAccessPeer reports that kernels and copies of d can reach other's memory directly.
func (d *Device) CanAccessPeer(other *Device) (bool, error) {
	var can C.int
	if r := C.cuDeviceCanAccessPeer(&can, d.handle, other.handle); r != 0 {
		return false, d.failure(r, "cuDeviceCanAccessPeer", "to %v", other)
	}
	return can != 0, nil
}

// EnablePeerAccess lets kernels and copies of d reach other's memory directly, until
// either is closed. To enable it again is no error.
func (d *Device) EnablePeerAccess(other *Device) error {
	r := C.cuCtxEnablePeerAccess(d.context, other.context, 0)
	if r != 0 && r != C.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED {
		return d.failure(r, "cuCtxEnablePeerAccess", "to %v", other)
	}
	return nil
}
