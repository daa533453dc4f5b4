package engine

// #include "cpu.h"
// #cgo noescape cpu_gemm
// #cgo nocallback cpu_gemm
// static void cpu_gemm(struct cpu *cpu, int ta, int tb, int m, int n, int k, float *a, int lda,
//                      float *b, int ldb, float *c, int ldc, int accumulate) {
//     cpu->gemm(cpu, ta, tb, m, n, k, a, lda, b, ldb, c, ldc, accumulate);
// }
import "C"

import "fmt"

// Operand is a matrix of a product as it is stored, or transposed.
type Operand struct {
	*Tensor
	Transposed bool
}

// MatMul computes c = a b, or c += a b when accumulate is set, on the CPU device:
// c is [m x n], a [m x k] and b [k x n] after their transposition. A row of c has
// the same bits whatever m is and however many threads dev has.
func MatMul(dev Device, c *Tensor, a, b Operand, accumulate bool) {
	m, k := a.shape()
	kb, n := b.shape()
	if c.Rows != m || c.Cols != n || k != kb {
		panic(fmt.Sprintf("engine: product %s = %s %s", c, a, b))
	}
	if m == 0 || n == 0 {
		return
	}
	C.cpu_gemm((*C.struct_cpu)(dev.runtime()), bit(a.Transposed), bit(b.Transposed), C.int(m), C.int(n), C.int(k),
		(*C.float)(a.Pointer()), C.int(a.Stride), (*C.float)(b.Pointer()), C.int(b.Stride),
		(*C.float)(c.Pointer()), C.int(c.Stride), bit(accumulate))
}

func (o Operand) shape() (rows, cols int) {
	if o.Transposed {
		return o.Cols, o.Rows
	}
	return o.Rows, o.Cols
}

// String is the tensor's shape, with a T for the transposition.
func (o Operand) String() string {
	if o.Transposed {
		return o.Tensor.String() + "T"
	}
	return o.Tensor.String()
}

func bit(b bool) C.int {
	if b {
		return 1
	}
	return 0
}
