package emulator_test

import (
	"math"
	"testing"
	"unsafe"

	"caper/cuda/emulator"
)

// The expected values here are computed from the PTX ISA's tables and figures (sections on
// ldmatrix, mma.m16n8k16, wgmma.mma_async, tensor maps and cp.async.bulk.tensor), not from
// the runtime's code.

var oneWarp = emulator.Launch{Block: [3]int{32}}

func run(t *testing.T, lib *emulator.Library, name string, l emulator.Launch, args ...any) {
	t.Helper()
	if err := kernel(t, lib, name).Launch(l, args...); err != nil {
		t.Fatal(err)
	}
}

// The nearest of the two neighbours in bf16, the even one of two that are equally near.
func nearestBF16(x float32) uint16 {
	if x != x {
		return 0x7fff
	}
	down := uint16(math.Float32bits(x) >> 16) // toward zero
	if fromBF16(down) == x {
		return down
	}
	up := down + 1
	upValue := float64(fromBF16(up))
	if math.IsInf(upValue, 0) {
		upValue = math.Copysign(math.Ldexp(1, 128), float64(x)) // where the next number would be
	}
	d, u := math.Abs(float64(x)-float64(fromBF16(down))), math.Abs(upValue-float64(x))
	if d < u || d == u && down%2 == 0 {
		return down
	}
	return up
}

func TestConversions(t *testing.T) {
	lib := build(t, false, "primitives.cu")
	var values []float32
	for _, bits := range []uint32{0, 1, 0x7fff, 0x8000, 0x8001, 0x18000, 0x3f80ffff, 0x3f808000, 0x3f818000, 0x7f7f8000, 0x7f7f7fff, 0x7f800000, 0x7f800001, 0x7fc00000, 0x807f8000, 0x12345678, 0x42f7c000} {
		values = append(values, math.Float32frombits(bits), math.Float32frombits(bits|1<<31))
	}
	n := len(values)
	x, xs := alloc[float32](t, n)
	copy(xs, values)
	one, ones := alloc[uint16](t, n)
	pair, pairs := alloc[uint32](t, n)
	back, backs := alloc[float32](t, 3*n)
	run(t, lib, "convert", oneWarp, x, one, pair, back, int32(n))
	for i, v := range values {
		lo, hi := nearestBF16(v), nearestBF16(values[n-1-i])
		if ones[i] != lo {
			t.Errorf("to_bf16(%x) is %04x, want %04x", math.Float32bits(v), ones[i], lo)
		}
		if want := uint32(hi)<<16 | uint32(lo); pairs[i] != want {
			t.Errorf("pack_bf16 gives %08x, want %08x", pairs[i], want)
		}
		for j, want := range []uint16{lo, lo, hi} {
			if math.Float32bits(backs[3*i+j]) != uint32(want)<<16 {
				t.Errorf("%04x back in float is %x", want, math.Float32bits(backs[3*i+j]))
			}
		}
	}
}

func TestApproximations(t *testing.T) {
	lib := build(t, false, "primitives.cu")
	const n = 100
	x, xs := alloc[float32](t, n)
	y, ys := alloc[float32](t, 4*n)
	for i := range xs {
		xs[i] = float32(i+1) * 0.37
	}
	run(t, lib, "approximate", oneWarp, x, y, int32(n))
	for i, v := range xs {
		v := float64(v)
		for j, want := range []float64{math.Exp2(v), math.Log2(v), 1 / math.Sqrt(v), 1 / v} {
			if got := float64(ys[4*i+j]); math.Abs(got-want) > 3e-7*math.Max(math.Abs(want), 1) && math.Abs(got/want-1) > 3e-7 {
				t.Errorf("function %d of %g is %g, want %g", j, v, got, want)
			}
		}
	}
}

// Table "Shuffle" of the CUDA C++ programming guide: a source outside the segment leaves a
// lane its own value.
func TestShufflesAndVotes(t *testing.T) {
	lib := build(t, false, "primitives.cu")
	for _, operand := range []int{0, 1, 3, 8, 17, 31} {
		out, got := alloc[uint32](t, 32*8)
		run(t, lib, "shuffles", oneWarp, out, int32(operand))
		within := func(source, lane, first, last int) int {
			if source < first || source > last {
				return lane
			}
			return source
		}
		for lane := range 32 {
			segment := lane - lane%8
			want := []int{operand, within(lane-operand, lane, 0, 31), within(lane+operand, lane, 0, 31), lane ^ operand,
				within(lane-operand, lane, segment, segment+7), within(lane+operand, lane, segment, segment+7), segment + operand%8}
			for i, w := range want {
				if got[lane*8+i] != uint32(w) {
					t.Errorf("operand %d, shuffle %d: lane %d got %d, want %d", operand, i, lane, got[lane*8+i], w)
				}
			}
			if voted := got[lane*8+7]>>lane&1 == 1; voted != (lane%3 == operand%3) {
				t.Errorf("operand %d: ballot %08x at lane %d", operand, got[lane*8+7], lane)
			}
		}
	}
	out, got := alloc[int32](t, 64*5)
	run(t, lib, "votes", emulator.Launch{Block: [3]int{64}, Seed: 5}, out)
	for i := range 64 {
		if v := got[5*i : 5*i+5]; v[0] != 22 || v[1] == 0 || v[2] != 0 || v[3] == 0 || v[4] != 0 {
			t.Errorf("thread %d: votes %v", i, v)
		}
	}
}

func TestPackedAccess(t *testing.T) {
	lib := build(t, false, "primitives.cu")
	const n = 8 * 200
	x, xs := alloc[uint32](t, n)
	y, ys := alloc[uint32](t, n)
	for i := range xs {
		xs[i] = uint32(i * 2654435761)
	}
	run(t, lib, "packed", emulator.Launch{Block: [3]int{128}}, x, y, int32(n))
	for i := range xs {
		if ys[i] != xs[i] {
			t.Fatalf("word %d is %x, want %x", i, ys[i], xs[i])
		}
	}
	from, bytes := alloc[byte](t, 32*16)
	to, got := alloc[byte](t, 32*16)
	for i := range bytes {
		bytes[i] = byte(i*7 + 1)
	}
	run(t, lib, "zero_filled_copies", emulator.Launch{Block: [3]int{32}, Shared: 512}, from, to)
	for i := range got {
		want := bytes[i]
		if i%16 >= i/16%17 {
			want = 0
		}
		if got[i] != want {
			t.Fatalf("byte %d is %d, want %d", i, got[i], want)
		}
	}
}

// Loads and stores of a few elements touch those alone, at any address.
func TestRaggedAccess(t *testing.T) {
	lib := build(t, false, "primitives.cu")
	x, xs := alloc[uint16](t, 32)
	f, fs := alloc[float32](t, 32)
	for i := range xs {
		xs[i], fs[i] = toBF16(float32(i)), float32(i)
	}
	for offset := range 9 {
		for count := range 9 {
			y, ys := alloc[uint16](t, 32)
			g, gs := alloc[float32](t, 32)
			at := func(m *emulator.Memory, size int) unsafe.Pointer { return unsafe.Add(m.Pointer(), offset*size) }
			run(t, lib, "ragged", emulator.Launch{}, at(x, 2), at(y, 2), at(f, 4), at(g, 4), int32(count))
			for i := range 32 {
				e := i - offset
				if written := e >= 0 && e < 8 && e < count || e >= 8 && e < 12 && e < 8+count; !written {
					if ys[i] != 0xffff || gs[i] == gs[i] {
						t.Errorf("offset %d, %d elements: wrote element %d", offset, count, e)
					}
				} else if ys[i] != xs[i] || gs[i] != fs[i] {
					t.Errorf("offset %d, %d elements: element %d is %04x and %g", offset, count, e, ys[i], gs[i])
				}
			}
		}
	}
}

func TestSums(t *testing.T) {
	lib := build(t, false, "primitives.cu")
	const rows = 19
	x, xs := alloc[float32](t, rows*40)
	for i := range xs {
		xs[i] = float32(i*i%101) - 50 // sums are exact
	}
	out, got := alloc[float32](t, 192)
	run(t, lib, "sums", emulator.Launch{Block: [3]int{256}}, x, int32(rows), out)
	for lane := range 32 {
		for i, width := range []int{1, 4, 16} {
			var want float32
			for l := lane - lane%width; l < lane-lane%width+width; l++ {
				want += xs[l]
			}
			if got[32*i+lane] != want {
				t.Errorf("sum over groups of %d: lane %d has %g, want %g", width, lane, got[32*i+lane], want)
			}
		}
		var want float32
		for r := 0; r < rows && lane < 24; r++ {
			want += xs[40*r+16+lane]
		}
		if got[128+lane] != want {
			t.Errorf("sum of column %d is %g, want %g", lane, got[128+lane], want)
		}
		if s := 1 / (1 + math.Exp(-float64(xs[lane]))); math.Abs(float64(got[160+lane])-s) > 1e-5*s {
			t.Errorf("sigmoid(%g) is %g, want %g", xs[lane], got[160+lane], s)
		}
	}
}

func TestLdmatrix(t *testing.T) {
	lib := build(t, false, "primitives.cu")
	x, xs := alloc[uint16](t, 256)
	for i := range xs {
		xs[i] = uint16(i)
	}
	out, got := alloc[uint32](t, 32*12)
	run(t, lib, "ldmatrices", oneWarp, x, out)
	at := func(matrix, row, column int) uint32 { return uint32(xs[matrix*64+row*8+column]) }
	for lane := range 32 {
		r, c := lane/4, 2*(lane%4)
		for i := range 12 {
			matrix, trans := i%4, i/4 == 1
			if i >= 8 {
				matrix, trans = i%2, i >= 10
			}
			want := at(matrix, r, c) | at(matrix, r, c+1)<<16
			if trans {
				want = at(matrix, c, r) | at(matrix, c+1, r)<<16
			}
			if got[lane*12+i] != want {
				t.Fatalf("lane %d, register %d: %08x, want %08x", lane, i, got[lane*12+i], want)
			}
		}
	}
}

// small is a number that bf16 holds, different for each of its arguments.
func small(i, j int) float32 { return float32((i*31+j*17)%97-48) / 64 }

func pair(lo, hi float32) uint32 { return uint32(toBF16(lo)) | uint32(toBF16(hi))<<16 }

// fragmentA packs rows row0.. of a [., 16] matrix of small numbers as lane holds it.
func fragmentA(lane, row0, k0 int) [4]uint32 {
	g, t := lane/4, lane%4
	var a [4]uint32
	for i := range a { // a0,a1: row g; a2,a3: row g+8; a4,a5: row g, k+8; a6,a7: row g+8, k+8
		row, k := row0+g+8*(i%2), k0+2*t+8*(i/2)
		a[i] = pair(small(row, k), small(row, k+1))
	}
	return a
}

func TestMMAFragments(t *testing.T) {
	lib := build(t, false, "primitives.cu")
	a, as := alloc[uint32](t, 32*4)
	b, bs := alloc[uint32](t, 32*2)
	d, ds := alloc[float32](t, 32*4)
	bAt := func(k, n int) float32 { return small(100+n, k) }
	for lane := range 32 {
		g, q := lane/4, lane%4
		fragment := fragmentA(lane, 0, 0)
		copy(as[4*lane:], fragment[:])
		for i := range 2 {
			bs[2*lane+i] = pair(bAt(2*q+8*i, g), bAt(2*q+8*i+1, g))
		}
		for i := range 4 {
			ds[4*lane+i] = float32(lane + i)
		}
	}
	run(t, lib, "mma_fragments", oneWarp, a, b, d)
	for lane := range 32 {
		for i := range 4 {
			row, column := lane/4+8*(i/2), 2*(lane%4)+i%2
			want := float64(lane + i)
			for k := range 16 {
				want += float64(small(row, k)) * float64(bAt(k, column))
			}
			if got := float64(ds[4*lane+i]); math.Abs(got-want) > 1e-5*math.Abs(want) {
				t.Errorf("lane %d, d[%d] is %g, want %g", lane, i, got, want)
			}
		}
	}
}

// swizzledOffset is where byte `column` of a 16-byte unit's row lies: with a swizzle of s bytes
// a box's rows are s bytes, and unit u of row r goes to unit u ^ (r modulo s/16 of the rows
// that 128 bytes hold).
func swizzledOffset(row, column, rowBytes, swizzle int) int {
	if swizzle == 0 {
		return row*rowBytes + column
	}
	line := row * rowBytes / 128
	unit := column/16 ^ line%(swizzle/16)
	return row*rowBytes + unit*16 + column%16
}

func TestTensorMaps(t *testing.T) {
	lib := build(t, false, "primitives.cu")
	const width, height, depth, pitch = 150, 21, 3, 320 // bf16; the pitch in bytes
	x, xs := alloc[uint16](t, depth*height*pitch/2)
	for i := range xs {
		xs[i] = uint16(i*7 + 1)
	}
	for _, c := range []struct{ swizzle, x, y, z, columns, rows, planes int }{
		{0, 0, 0, 0, 64, 16, 1}, {0, 100, -3, 0, 72, 8, 1}, {32, -8, 15, 0, 16, 16, 1}, {64, 140, 3, 0, 32, 16, 1},
		{128, 0, 0, 0, 64, 16, 1}, {128, -5, -5, 0, 64, 16, 1}, {128, 128, 10, 2, 64, 8, 2}, {128, 0, 0, -1, 64, 8, 3},
	} {
		rank, sizes, strides, box := 2, []int{width, height}, []int{pitch}, []int{c.columns, c.rows}
		if c.planes > 1 {
			rank, sizes, strides, box = 3, append(sizes, depth), append(strides, height*pitch), append(box, c.planes)
		}
		m, err := lib.TensorMap(x, emulator.BFloat16, sizes, strides, box, c.swizzle)
		if err != nil {
			t.Fatal(err)
		}
		elements := c.columns * c.rows * c.planes
		out, got := alloc[uint16](t, elements)
		l := emulator.Launch{Block: [3]int{32}, Shared: 2 * elements}
		run(t, lib, "load_box", l, m, out, int32(rank), int32(c.x), int32(c.y), int32(c.z), int32(2*elements))
		// The same box stored again: only what lies in the tensor, where it was.
		y, ys := alloc[uint16](t, len(xs))
		back, err := lib.TensorMap(y, emulator.BFloat16, sizes, strides, box, c.swizzle)
		if err != nil {
			t.Fatal(err)
		}
		run(t, lib, "store_box", l, back, out, int32(rank), int32(c.x), int32(c.y), int32(c.z), int32(2*elements))
		inside := map[int]bool{}
		for r := range c.rows * c.planes {
			for i := range c.columns {
				px, py, pz := c.x+i, c.y+r%c.rows, c.z+r/c.rows
				want := uint16(0)
				if px >= 0 && px < width && py >= 0 && py < height && pz >= 0 && pz < depth {
					at := (pz*height+py)*pitch/2 + px
					want = xs[at]
					inside[at] = true
				}
				if at := swizzledOffset(r, 2*i, 2*c.columns, c.swizzle); got[at/2] != want {
					t.Fatalf("%+v: row %d, column %d is %d, want %d", c, r, i, got[at/2], want)
				}
			}
		}
		for i := range ys {
			want := uint16(0xffff)
			if inside[i] {
				want = xs[i]
			}
			if ys[i] != want {
				t.Fatalf("%+v: stored element %d is %d, want %d", c, i, ys[i], want)
			}
		}
	}
	if _, err := lib.TensorMap(x, emulator.BFloat16, []int{8, 8}, []int{24}, []int{8, 8}, 0); err == nil {
		t.Error("a stride of 24 bytes was accepted")
	}
	if _, err := lib.TensorMap(x, emulator.BFloat16, []int{128, 8}, []int{256}, []int{128, 8}, 128); err == nil {
		t.Error("a box wider than its swizzle was accepted")
	}
}

// operand lays out [rows, k] numbers as tiles with a swizzle of 128 bytes: rows along k in
// panels of 64 k, or, along m or n, one k a row in panels of 64 m or n.
func operand(t *testing.T, rows, depth int, along bool, at func(row, k int) float32) (*emulator.Memory, int) {
	m, x := alloc[uint16](t, rows*depth)
	clear(x)
	for r := range rows {
		for k := range depth {
			line, column, lines := r, k, rows
			if along {
				line, column, lines = k, r, depth
			}
			panel := column / 64 * lines * 128
			x[(panel+swizzledOffset(line, column%64*2, 128, 128))/2] = toBF16(at(r, k))
		}
	}
	return m, 2 * rows * depth
}

func TestWarpgroupProducts(t *testing.T) {
	lib := build(t, false, "primitives.cu")
	const depth = 64
	bAt := func(n, k int) float32 { return small(200+n, k) }
	for _, c := range []struct {
		n, form                     int
		transA, transB, inRegisters bool
	}{{32, 0, false, false, false}, {64, 0, false, false, false}, {128, 0, false, false, false}, {256, 0, false, false, false},
		{128, 1, false, true, false}, {64, 2, true, true, false}, {64, 3, false, false, true}, {128, 4, false, true, true}} {
		a, aBytes := operand(t, 64, depth, c.transA, small)
		b, bBytes := operand(t, c.n, depth, c.transB, bAt)
		step := func(trans bool) uint32 { // of 16 k: 32 bytes along a row, or 16 rows
			if trans {
				return 16 * 128
			}
			return 32
		}
		fragments, fs := alloc[uint32](t, depth/16*128*4)
		d, ds := alloc[float32](t, 128*c.n/2)
		start := float64(0)
		for i := range ds {
			if ds[i] = float32(math.NaN()); c.inRegisters { // without registers the first product overwrites
				ds[i], start = 3, 3
			}
		}
		for k := range depth / 16 {
			for thread := range 128 {
				f := fragmentA(thread%32, thread/32*16, k*16)
				copy(fs[(k*128+thread)*4:], f[:])
			}
		}
		l := emulator.Launch{Block: [3]int{128}, Shared: aBytes + bBytes, Seed: 3}
		run(t, lib, "product", l, a, int32(aBytes), step(c.transA), uint32(128*depth), b, int32(bBytes), step(c.transB), uint32(128*depth),
			fragments, d, int32(depth/16), int32(c.n), int32(c.form))
		for thread := range 128 {
			for i := range c.n / 2 {
				row, column := thread/32*16+thread%32/4+i%4/2*8, i/4*8+thread%4*2+i%2
				want := start
				for k := range depth {
					want += float64(small(row, k)) * float64(bAt(column, k))
				}
				if got := float64(ds[thread*c.n/2+i]); !(math.Abs(got-want) <= 1e-4) {
					t.Fatalf("%+v: row %d, column %d is %g, want %g", c, row, column, got, want)
				}
			}
		}
	}
}
