package cuda

import (
	"errors"
	"strings"
	"testing"
)

// Out of memory says what was asked for, what there is, and what to do.
func TestOutOfMemory(t *testing.T) {
	b := newBench(t)
	testMock.LimitMemory(64 << 20)
	defer testMock.LimitMemory(0)
	p, err := b.stream.Alloc(40 << 20)
	b.must(err)
	want := "of 30.0 MiB on GPU 0 (Mock H200): CUDA_ERROR_OUT_OF_MEMORY (2), out of memory; 24.0 MiB of 64.0 MiB are free: use smaller micro-batches"
	for call, alloc := range map[string]func(Bytes) (Ptr, error){"cuMemAllocAsync": b.stream.Alloc, "cuMemAlloc": b.gpu.Alloc} {
		_, err := alloc(30 << 20)
		if !errors.Is(err, ErrOutOfMemory) || !strings.HasPrefix(err.Error(), call+" "+want) {
			t.Errorf("got %v", err)
		}
	}
	b.must(b.stream.Free(p))
	b.must(b.stream.Synchronize())
	p, err = b.stream.Alloc(60 << 20)
	b.must(err)
	b.must(b.stream.Free(p))

	testMock.Fail("cuMemHostAlloc", 1, 2)
	if _, err := b.gpu.AllocHost(1 << 20); err == nil || !strings.Contains(err.Error(), "ulimit -l") {
		t.Errorf("got %v", err)
	}
	b.must(b.stream.Synchronize())
}

func TestPool(t *testing.T) {
	b := newBench(t)
	b.must(b.gpu.SetPoolKeep(1 << 30))
	before, err := b.gpu.PoolUsage()
	b.must(err)
	p, err := b.stream.Alloc(3 << 20)
	b.must(err)
	q, err := b.stream.Alloc(1 << 20)
	b.must(err)
	b.must(b.stream.Free(q))
	b.must(b.stream.Synchronize())
	u, err := b.gpu.PoolUsage()
	b.must(err)
	if u.Used-before.Used != 3<<20 || u.PeakUsed < 4<<20 || u.Reserved < u.Used {
		t.Errorf("usage %+v", u)
	}
	b.must(b.stream.Free(p))
	b.must(b.stream.Synchronize())
	b.must(b.gpu.ResetPoolPeak())
	b.must(b.gpu.TrimPool(0))
	if u, err = b.gpu.PoolUsage(); err != nil || u.Used != 0 || u.PeakUsed != 0 || u.Reserved != 0 {
		t.Errorf("usage %+v, %v", u, err)
	}
}

func TestCopies(t *testing.T) {
	b := newBench(t)
	second, err := Open(1)
	b.must(err)
	defer second.Close()
	if can, err := b.gpu.CanAccessPeer(second); err != nil || !can {
		t.Errorf("peer access %v, %v", can, err)
	}
	b.must(b.gpu.EnablePeerAccess(second))
	b.must(b.gpu.EnablePeerAccess(second))
	there, err := second.Alloc(16)
	b.must(err)
	x, y := b.floats(4), b.floats(4)
	b.must(b.stream.CopyPeer(second, there, b.gpu, x, 16))
	b.must(b.stream.Fill(x, 0, 16))
	b.must(b.stream.CopyPeer(b.gpu, y, second, there, 16))
	if got := b.read(y, 4); got[3] != 3 {
		t.Errorf("copied there and back: %v", got)
	}
	b.must(b.stream.Upload(y, []byte{0, 0, 0x80, 0x3f}))
	if got := b.read(y, 2); got[0] != 1 || got[1] != 1 {
		t.Errorf("uploaded: %v", got)
	}
	b.must(errors.Join(b.stream.Upload(y, nil), b.stream.Download(nil, y)))
	if err := b.stream.Copy(y, x, 1<<20); err == nil || !strings.Contains(err.Error(), "of 1.0 MiB from 0x") {
		t.Errorf("a copy past the end: %v", err)
	}
	b.must(second.Free(there))
}

func TestHostSlice(t *testing.T) {
	needMock(t)
	h := Host{size: 16}
	for _, bounds := range [][2]int{{-1, 4}, {4, 3}, {0, 17}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Slice(%d, %d) of 16 bytes passed", bounds[0], bounds[1])
				}
			}()
			h.Slice(bounds[0], bounds[1])
		}()
	}
}

func TestBytes(t *testing.T) {
	for b, want := range map[Bytes]string{5: "5 bytes", 1536: "1.5 KiB", 3 << 20: "3.0 MiB", 150 << 30: "150.0 GiB"} {
		if b.String() != want {
			t.Errorf("%d prints %s, want %s", int64(b), b, want)
		}
	}
}

// What the driver would only call an invalid value is said in words.
func TestTensorMapRefusals(t *testing.T) {
	good := TensorLayout{Element: BFloat16, At: 1 << 20, Sizes: []uint64{64, 100}, Strides: []uint64{128}, Box: []uint32{64, 8}, Swizzle: 128}
	if err := good.check(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*TensorLayout){
		"no multiple of 16":                  func(l *TensorLayout) { l.At = 8 },
		"stride 120 of dimension 1":          func(l *TensorLayout) { l.Strides = []uint64{120} },
		"box measures 257 along dimension 1": func(l *TensorLayout) { l.Box = []uint32{64, 257} },
		"have 256 bytes, more than":          func(l *TensorLayout) { l.Box = []uint32{128, 8} },
		"have 18 bytes, no multiple":         func(l *TensorLayout) { l.Box = []uint32{9, 8} },
		"size 0 of dimension 0":              func(l *TensorLayout) { l.Sizes = []uint64{0, 4} },
		"swizzle of 48 bytes":                func(l *TensorLayout) { l.Swizzle = 48 },
		"2 sizes, 1 strides, 1 sides":        func(l *TensorLayout) { l.Box = l.Box[:1] },
		"0 sizes":                            func(l *TensorLayout) { l.Sizes, l.Strides = nil, nil },
	} {
		l := good
		change(&l)
		if err := l.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
