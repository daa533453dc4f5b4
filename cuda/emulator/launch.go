package emulator

// #cgo LDFLAGS: -ldl
// #include <dlfcn.h>
// #include <stdlib.h>
// #include "emulator.h"
//
// // The functions of one library.
// struct library {
//     const struct caper_emu_kernel *(*kernels)(uint32_t *);
//     int (*run)(const struct caper_emu_launch *, void **, struct caper_emu_fault *);
//     int (*tensor_map)(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *, const uint32_t *,
//                       const uint32_t *, int, int, int, int, const char **);
// };
//
// static const char *open_library(const char *file, struct library *l) {
//     void *so = dlopen(file, RTLD_NOW | RTLD_LOCAL);
//     if (!so) return dlerror();
//     l->kernels = dlsym(so, "caper_emu_kernels");
//     l->run = dlsym(so, "caper_emu_run");
//     l->tensor_map = dlsym(so, "caper_emu_tensor_map");
//     return l->kernels && l->run && l->tensor_map ? NULL : "it lacks the emulator's functions";
// }
//
// static const struct caper_emu_kernel *library_kernels(struct library *l, uint32_t *n) { return l->kernels(n); }
// static int library_run(struct library *l, const struct caper_emu_launch *launch, void **params, struct caper_emu_fault *fault) {
//     return l->run(launch, params, fault);
// }
// static const char *library_tensor_map(struct library *l, void *map, int type, uint32_t rank, void *address, const uint64_t *sizes,
//                                       const uint64_t *strides, const uint32_t *box, int swizzle) {
//     const char *reason;
//     return l->tensor_map(map, type, rank, address, sizes, strides, box, NULL, 0, swizzle, 0, 0, &reason) ? reason : NULL;
// }
import "C"

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unsafe"
)

// Library holds compiled kernels. It may be used by several goroutines; launches wait
// for each other.
type Library struct {
	// Path is the library's file, for programs that open it through emulator.h.
	Path    string
	c       *C.struct_library
	kernels map[string]*Kernel
}

// Kernel is one kernel of a library.
type Kernel struct {
	Name    string
	Threads int // the most that a block may have
	library *Library
	name    *C.char
	params  []C.struct_caper_emu_param
}

// Launch says how a kernel is launched.
type Launch struct {
	Grid, Block [3]int // 0 is 1
	Shared      int    // bytes of dynamic shared memory
	Seed        uint64 // of the order of blocks and threads; 0 is their natural order
}

// Fault is a mistake of a kernel.
type Fault struct {
	Kernel        string
	File          string // the name of the source
	Line          int
	Block, Thread [3]int
	Message       string // one line: all of the above, and what was wrong
}

func (f *Fault) Error() string { return f.Message }

// TensorMap describes a tensor to bulk copies, as cuTensorMapEncodeTiled does.
type TensorMap struct{ opaque [128]byte }

func open(file string) (*Library, error) {
	name := C.CString(file)
	defer C.free(unsafe.Pointer(name))
	l := &Library{Path: file, c: (*C.struct_library)(C.calloc(1, C.sizeof_struct_library)), kernels: map[string]*Kernel{}}
	if reason := C.open_library(name, l.c); reason != nil {
		return nil, fmt.Errorf("%s: %s: delete it and build again", file, C.GoString(reason))
	}
	var n C.uint32_t
	all := C.library_kernels(l.c, &n)
	for _, k := range unsafe.Slice(all, n) {
		name := C.GoString(k.name)
		l.kernels[name] = &Kernel{name, int(k.max_threads), l, k.name, unsafe.Slice(k.param, k.params)}
	}
	return l, nil
}

// Kernel returns a kernel by its name.
func (l *Library) Kernel(name string) (*Kernel, error) {
	if k := l.kernels[name]; k != nil {
		return k, nil
	}
	return nil, fmt.Errorf("no kernel %q among %s", name, strings.Join(l.Kernels(), ", "))
}

// Kernels returns the names of all kernels, sorted.
func (l *Library) Kernels() []string {
	var names []string
	for name := range l.kernels {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Launch runs the kernel to its end. An argument is a *Memory, unsafe.Pointer or nil for
// a pointer, an integer or a float of the parameter's very size, or a *TensorMap. What
// the kernel does wrong is a *Fault.
func (k *Kernel) Launch(l Launch, args ...any) error {
	if len(args) != len(k.params) {
		return fmt.Errorf("kernel %s takes %d arguments, not %d", k.Name, len(k.params), len(args))
	}
	const slot = 128 // the size of the largest parameter
	values := C.aligned_alloc(slot, C.size_t(slot*(len(args)+1)))
	defer C.free(values)
	params := (*unsafe.Pointer)(C.malloc(C.size_t(8 * (len(args) + 1))))
	defer C.free(unsafe.Pointer(params))
	for i, arg := range args {
		value := unsafe.Add(values, i*slot)
		unsafe.Slice(params, len(args))[i] = value
		if err := k.put(value, k.params[i], arg); err != nil {
			return fmt.Errorf("kernel %s: argument %d: %w", k.Name, i, err)
		}
	}
	launch := C.struct_caper_emu_launch{kernel: k.name, shared_bytes: C.uint32_t(l.Shared), seed: C.uint64_t(l.Seed)}
	for d := range 3 {
		launch.grid[d] = C.uint32_t(max(l.Grid[d], 1))
		launch.block[d] = C.uint32_t(max(l.Block[d], 1))
	}
	var fault C.struct_caper_emu_fault
	if C.library_run(k.library.c, &launch, params, &fault) == 0 {
		return nil
	}
	return k.fault(&fault)
}

func (k *Kernel) fault(f *C.struct_caper_emu_fault) *Fault {
	out := &Fault{Kernel: k.Name, File: C.GoString(&f.file[0]), Line: int(f.line), Message: C.GoString(&f.message[0])}
	for d := range 3 {
		out.Block[d], out.Thread[d] = int(f.block[d]), int(f.thread[d])
	}
	return out
}

// put writes an argument where the kernel reads it.
func (k *Kernel) put(to unsafe.Pointer, p C.struct_caper_emu_param, arg any) error {
	kind, bytes, bits := byte('p'), 8, uint64(0)
	switch v := arg.(type) {
	case nil:
	case *Memory:
		if v != nil {
			bits = uint64(uintptr(v.start))
		}
	case unsafe.Pointer:
		bits = uint64(uintptr(v))
	case bool:
		kind, bytes = 'u', 1
		if v {
			bits = 1
		}
	case int32:
		kind, bytes, bits = 'i', 4, uint64(uint32(v))
	case uint32:
		kind, bytes, bits = 'u', 4, uint64(v)
	case int64:
		kind, bytes, bits = 'i', 8, uint64(v)
	case uint64:
		kind, bytes, bits = 'u', 8, v
	case float32:
		kind, bytes, bits = 'f', 4, uint64(math.Float32bits(v))
	case float64:
		kind, bytes, bits = 'f', 8, math.Float64bits(v)
	case *TensorMap:
		kind, bytes = 's', 128
		*(*[128]byte)(to) = v.opaque
	default:
		return fmt.Errorf("a %T cannot be passed", arg)
	}
	if kind != byte(p.kind) || bytes != int(p.bytes) {
		return fmt.Errorf("a %T (%c, %d bytes) for a parameter of kind %c and %d bytes", arg, kind, bytes, p.kind, p.bytes)
	}
	if kind != 's' {
		*(*uint64)(to) = bits
	}
	return nil
}

// Elements of tensors that bulk copies know, as CUtensorMapDataType numbers them.
const (
	U8       = 0
	Float32  = 7
	BFloat16 = 9
)

// TensorMap cuts the tensor at m, of such elements, into boxes. sizes and box run from the
// innermost dimension; strides are in bytes, from the second. swizzle is 0, 32, 64 or
// 128 bytes. What the driver would refuse is an error.
func (l *Library) TensorMap(m *Memory, element int, sizes, strides []int, box []int, swizzle int) (*TensorMap, error) {
	if len(sizes) == 0 || len(strides) != len(sizes)-1 || len(box) != len(sizes) {
		return nil, fmt.Errorf("tensor map: %d sizes, %d strides, %d box sizes", len(sizes), len(strides), len(box))
	}
	number := slices.Index([]int{0, 32, 64, 128}, swizzle)
	if number < 0 {
		return nil, fmt.Errorf("tensor map: a swizzle of %d bytes", swizzle)
	}
	var s, st [5]C.uint64_t
	var b [5]C.uint32_t
	for d := range min(len(sizes), 5) {
		s[d], b[d] = C.uint64_t(sizes[d]), C.uint32_t(box[d])
		if d > 0 {
			st[d-1] = C.uint64_t(strides[d-1])
		}
	}
	t := &TensorMap{}
	reason := C.library_tensor_map(l.c, unsafe.Pointer(&t.opaque), C.int(element), C.uint32_t(len(sizes)), m.start, &s[0], &st[0], &b[0], C.int(number))
	if reason != nil {
		return nil, fmt.Errorf("tensor map: %s", C.GoString(reason))
	}
	return t, nil
}
