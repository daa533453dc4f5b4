package safetensors

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// blockElements is how many elements are converted at a time: few enough that a block
// and its copy stay in a core's cache.
const blockElements = 1 << 18

// blocks returns the number of blocks of n elements.
func blocks(n int) int { return (n + blockElements - 1) / blockElements }

// inBlocks calls f for the blocks [from, to) of n elements of the named file, on all
// cores, and returns the error of the first block that has one.
func inBlocks(file string, n int, f func(from, to int) error) error {
	count := blocks(n)
	errs := make([]error, count)
	var next atomic.Int64
	work := func() {
		for {
			b := int(next.Add(1)) - 1
			if b >= count {
				return
			}
			errs[b] = onFault(file, func() error { return f(b*blockElements, min(n, (b+1)*blockElements)) })
		}
	}
	var wait sync.WaitGroup
	for range min(count, runtime.GOMAXPROCS(0)) - 1 {
		wait.Go(work)
	}
	work()
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// onFault runs f, which reads a memory map of the file, and turns the fault of a page
// that the system cannot supply into an error: the file was cut while it was open, or
// its disk failed.
func onFault(file string, f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch r := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }:
			err = fmt.Errorf("%s: cannot be read any more: it was cut while it was open, or its disk failed; get the file again", file)
		default:
			panic(r)
		}
	}()
	return f()
}

// part returns the bytes of elements [from, to).
func (t Tensor) part(from, to int) []byte {
	size := int(t.DType.Size())
	return t.data[from*size : to*size]
}

var pageSize = os.Getpagesize()

// drop gives the memory of elements [from, to) back. They can still be read: the
// system then maps them again. So a file of any size is converted in the memory of
// its result. Pages that are only partly inside stay until the end of their tensor's
// file.
func (t Tensor) drop(from, to int) {
	data := t.part(from, to)
	if !t.mapped || len(data) == 0 {
		return
	}
	start := int(uintptr(unsafe.Pointer(&data[0])) % uintptr(pageSize))
	if start > 0 {
		start = pageSize - start
	}
	if whole := (len(data) - start) / pageSize * pageSize; whole > 0 {
		unix.Madvise(data[start:start+whole], unix.MADV_DONTNEED) // advice: failing changes no result
	}
}
