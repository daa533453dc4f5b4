package cuda

// #cgo noescape caper_plan_run
// #cgo nocallback caper_plan_run
// #include <stdlib.h>
// #include "cublaslt.h"
//
// static const char *blas_status(cublasStatus_t s) { return caper_cublaslt.cublasLtGetStatusName(s); }
// static cublasStatus_t blas_create(CUcontext c, cublasLtHandle_t *h) { return cuCtxSetCurrent(c) ? CUBLAS_STATUS_NOT_INITIALIZED : caper_cublaslt.cublasLtCreate(h); }
// static cublasStatus_t blas_destroy(CUcontext c, cublasLtHandle_t h) { return cuCtxSetCurrent(c) ? CUBLAS_STATUS_NOT_INITIALIZED : caper_cublaslt.cublasLtDestroy(h); }
import "C"

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"unsafe"
)

// cublasLtLibrary is the release that goes with a driver; major is 0 where there is none.
func cublasLtLibrary(major int) library {
	l := library{
		name: "cuBLASLt (libcublasLt.so.13 or .12)", variable: "CAPER_CUBLASLT", sonames: []string{"libcublasLt.so.13", "libcublasLt.so.12"},
		purpose: "matrix products on a GPU need",
		remedy:  "pip install nvidia-cublas==13.1.0.3",
	}
	if major == 12 {
		l.name, l.sonames = "cuBLASLt (libcublasLt.so.12)", l.sonames[1:]
		l.remedy = "pip install nvidia-cublas-cu12"
	}
	return l
}

// loadCublasLt opens cuBLASLt once in the life of the process, the one that suits the driver.
var loadCublasLt = sync.OnceValues(func() (*sharedLibrary, error) {
	driver, _ := presentDriver()
	lib, err := cublasLtLibrary(driver.Major).open()
	if err != nil {
		return nil, err
	}
	if missing := C.caper_cublaslt_load(lib.handle); missing != nil {
		return nil, fmt.Errorf("%s has no %s; install nvidia-cublas==13.1.0.3", lib.path, C.GoString(missing))
	}
	return lib, nil
})

// Epilogue is what a product does besides.
type Epilogue int

const (
	NoEpilogue   Epilogue = C.CUBLASLT_EPILOGUE_DEFAULT
	Bias         Epilogue = C.CUBLASLT_EPILOGUE_BIAS   // adds vector [N] to each row of c
	BiasGradient Epilogue = C.CUBLASLT_EPILOGUE_BGRADB // writes the sums of op(a)'s rows to vector [M]
)

// Product is c [M, N] = op(a) [M, K] op(b) [K, N], row-major, summed in float32. c is
// added to instead where Accumulate is set.
type Product struct {
	M, N, K        int
	TransA, TransB bool     // a is stored as [K, M], b as [N, K]
	In, Out        Element  // of a and b, and of c and the vector: BFloat16 or Float32
	LDA, LDB, LDC  int      // elements from one row, as stored, to the next; 0: rows touch
	Epilogue       Epilogue // 0 is NoEpilogue
	Accumulate     bool
}

// BLAS multiplies matrices in one stream through cuBLASLt. How a product is best computed
// is asked once for each Product; the answer splits no sum along K, so that results
// do not depend on the order in which blocks end.
type BLAS struct {
	stream    *Stream
	handle    C.cublasLtHandle_t
	workspace Ptr
	size      Bytes
	plans     map[planKey]*C.struct_caper_plan
}

type planKey struct {
	product Product
	align   [3]uint32 // of the pointers
}

// NewBLAS makes a BLAS with a workspace; 32 MiB serve Hopper's best kernels.
func (s *Stream) NewBLAS(workspace Bytes) (*BLAS, error) {
	if _, err := loadCublasLt(); err != nil {
		return nil, err
	}
	b := &BLAS{stream: s, size: workspace, plans: map[planKey]*C.struct_caper_plan{}}
	if status := C.blas_create(s.device.context, &b.handle); status != 0 {
		return nil, blasFailure("cublasLtCreate", status, "on "+s.device.String())
	}
	var err error
	if b.workspace, err = s.device.Alloc(workspace); err != nil {
		C.blas_destroy(s.device.context, b.handle)
		return nil, err
	}
	return b, nil
}

// Close frees the workspace; it waits for the GPU.
func (b *BLAS) Close() error {
	for _, plan := range b.plans {
		destroyPlan(plan)
	}
	b.plans = nil
	err := b.stream.device.Free(b.workspace)
	if status := C.blas_destroy(b.stream.device.context, b.handle); status != 0 {
		return errors.Join(err, blasFailure("cublasLtDestroy", status, "on "+b.stream.device.String()))
	}
	return err
}

// MatMul asks for a product in the stream. vector is the epilogue's, 0 without one. Once
// a Product was seen it takes no memory.
func (b *BLAS) MatMul(p Product, a, bMatrix, c, vector Ptr) error {
	plan, err := b.plan(p.normal(), a, bMatrix, c)
	if err != nil {
		return err
	}
	if (vector != 0) != (p.Epilogue == Bias || p.Epilogue == BiasGradient) {
		return fmt.Errorf("product %v: an epilogue and its vector go together", p)
	}
	var beta C.float
	if p.Accumulate {
		beta = 1
	}
	o := C.caper_plan_run(plan, b.stream.device.context, b.handle, b.stream.handle, C.CUdeviceptr(a), C.CUdeviceptr(bMatrix), C.CUdeviceptr(c),
		C.CUdeviceptr(vector), beta, C.CUdeviceptr(b.workspace), C.size_t(b.size))
	if o.call != nil {
		return blasFailure(C.GoString(o.call), o.status, fmt.Sprintf("of %v on %v", p, b.stream.device))
	}
	return nil
}

// plan returns how to compute a product, asked for when it is first seen.
func (b *BLAS) plan(p Product, pointers ...Ptr) (*C.struct_caper_plan, error) {
	key := planKey{product: p}
	for i, pointer := range pointers {
		key.align[i] = alignment(pointer)
	}
	if plan := b.plans[key]; plan != nil {
		return plan, nil
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	plan, err := describePlan(p, key.align, b.size)
	if err != nil {
		return nil, err
	}
	if o := C.caper_plan_choose(plan, b.stream.device.context, b.handle); o.call != nil {
		destroyPlan(plan)
		return nil, blasFailure(C.GoString(o.call), o.status, fmt.Sprintf("of %v on %v", p, b.stream.device))
	}
	b.plans[key] = plan
	return plan, nil
}

func destroyPlan(plan *C.struct_caper_plan) {
	C.caper_plan_destroy(plan)
	C.free(unsafe.Pointer(plan))
}

// describePlan makes the descriptors of a product; it needs no GPU.
func describePlan(p Product, align [3]uint32, workspace Bytes) (*C.struct_caper_plan, error) {
	plan := (*C.struct_caper_plan)(C.calloc(1, C.sizeof_struct_caper_plan))
	types := map[Element]C.uint{BFloat16: C.CUDA_R_16BF, Float32: C.CUDA_R_32F}
	in := C.struct_caper_product{
		m: C.uint64_t(p.M), n: C.uint64_t(p.N), k: C.uint64_t(p.K),
		lda: C.int64_t(p.LDA), ldb: C.int64_t(p.LDB), ldc: C.int64_t(p.LDC),
		in: types[p.In], out: types[p.Out], epilogue: C.int(p.Epilogue),
		align_a: C.uint32_t(align[0]), align_b: C.uint32_t(align[1]), align_c: C.uint32_t(align[2]),
	}
	if p.TransA {
		in.trans_a = 1
	}
	if p.TransB {
		in.trans_b = 1
	}
	if o := C.caper_plan_describe(plan, &in, C.uint64_t(workspace)); o.call != nil {
		destroyPlan(plan)
		return nil, blasFailure(C.GoString(o.call), o.status, fmt.Sprintf("of %v", p))
	}
	return plan, nil
}

// normal fills in what 0 stands for.
func (p Product) normal() Product {
	aWidth, bWidth := p.K, p.N
	if p.TransA {
		aWidth = p.M
	}
	if p.TransB {
		bWidth = p.K
	}
	p.LDA, p.LDB, p.LDC = cmp.Or(p.LDA, aWidth), cmp.Or(p.LDB, bWidth), cmp.Or(p.LDC, p.N)
	p.Epilogue = cmp.Or(p.Epilogue, NoEpilogue)
	return p
}

// check says in words what cuBLASLt would only call an invalid value.
func (p Product) check() error {
	if p.M <= 0 || p.N <= 0 || p.K <= 0 {
		return fmt.Errorf("product %v: a size is not positive", p)
	}
	for _, e := range []Element{p.In, p.Out} {
		if e != BFloat16 && e != Float32 {
			return fmt.Errorf("product %v: elements are BFloat16 or Float32", p)
		}
	}
	least := Product{M: p.M, N: p.N, K: p.K, TransA: p.TransA, TransB: p.TransB}.normal()
	if p.LDA < least.LDA || p.LDB < least.LDB || p.LDC < least.LDC {
		return fmt.Errorf("product %v: rows of %d, %d and %d elements overlap", p, p.LDA, p.LDB, p.LDC)
	}
	return nil
}

func (p Product) String() string {
	mark := map[bool]string{true: "^T", false: ""}
	return fmt.Sprintf("c [%d, %d] = a%s b%s over %d", p.M, p.N, mark[p.TransA], mark[p.TransB], p.K)
}

// alignment is the largest power of two, up to 256, that divides an address.
func alignment(p Ptr) uint32 {
	const most = 256
	if p%most == 0 {
		return most
	}
	return uint32(p & -p)
}

func blasFailure(call string, status C.cublasStatus_t, on string) *Error {
	e := &Error{Call: call, On: on, Code: int(status), Name: C.GoString(C.blas_status(status))}
	switch status {
	case C.CUBLAS_STATUS_NOT_INITIALIZED:
		e.Remedy = "cuBLASLt found no GPU that it can use: caper doctor compares its release with the driver's"
	case C.CUBLAS_STATUS_NOT_SUPPORTED:
		e.Remedy = "cuBLASLt has no kernel for it: give it more workspace, or rows whose bytes are a multiple of 16"
	}
	return e
}
