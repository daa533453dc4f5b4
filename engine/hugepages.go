package engine

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// wantHugePages asks the system to back data by pages of 2 MiB instead of 4 KiB, where
// it leaves that to programs: rows of one column block lie on different pages, and the
// processor keeps the addresses of a few thousand only. It is advice; nothing depends
// on whether it is taken.
func wantHugePages[F any](data []F) {
	const linuxHugePage = 14 // MADV_HUGEPAGE, which other systems lack
	if runtime.GOOS != "linux" {
		return
	}
	page := uintptr(os.Getpagesize())
	var zero F
	start := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	size := uintptr(len(data)) * unsafe.Sizeof(zero)
	skip := -start % page
	if size < skip+page {
		return
	}
	whole := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), size)[skip:]
	_ = unix.Madvise(whole[:(size-skip)/page*page], linuxHugePage)
}
