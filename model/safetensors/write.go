package safetensors

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
)

// Entry is a tensor to be written. Its elements are in one of F32, F64, Tensor and Fill.
type Entry struct {
	Name  string
	DType DType // F32, BF16 or F16, to which the elements are rounded; any other for a Tensor that has it
	Shape []int

	F32    []float32
	F64    []float64
	Tensor *Tensor // of an open file
	// Fill makes the elements from, from+1, ... and is asked for all of them in order.
	Fill func(dst []float32, from int) error

	// Written, if there is one, is told the bytes of each block that the file got.
	Written func(bytes int)
}

// Len returns the number of elements that the shape says.
func (e *Entry) Len() int {
	n := 1
	for _, d := range e.Shape {
		n *= d
	}
	return n
}

// Bytes returns the size of the tensor in a file.
func (e *Entry) Bytes() int { return e.Len() * int(e.DType.Size()) }

func (e *Entry) check() error {
	isFloat := e.DType == F32 || e.DType == BF16 || e.DType == F16
	given := -1
	switch {
	case e.F32 != nil:
		given = len(e.F32)
	case e.F64 != nil:
		given = len(e.F64)
	case e.Tensor != nil:
		given = e.Tensor.Len()
		isFloat = isFloat && e.Tensor.IsFloat() || e.DType == e.Tensor.DType
	case e.Fill != nil || e.Len() == 0:
		given = e.Len()
	}
	if !isFloat {
		return fmt.Errorf("tensor %q: cannot write %s, only F32, BF16 and F16, and a tensor of a file as it is", e.Name, e.DType)
	}
	if given != e.Len() {
		return fmt.Errorf("tensor %q: %d elements for shape %v", e.Name, given, e.Shape)
	}
	return nil
}

// block appends elements [from, to) as they are stored to data.
func (e *Entry) block(data []byte, scratch []float32, from, to int) ([]byte, error) {
	values := scratch[:to-from]
	switch {
	case e.F32 != nil:
		values = e.F32[from:to]
	case e.F64 != nil:
		return encode(e.DType, data, e.F64[from:to]), checkRange(e, e.F64[from:to], from)
	case e.Tensor != nil && e.Tensor.DType == e.DType:
		err := onFault(e.Tensor.File, func() error {
			data = append(data, e.Tensor.part(from, to)...)
			e.Tensor.drop(from, to)
			return nil
		})
		return data, err
	case e.Tensor != nil:
		if err := e.Tensor.Range(values, from); err != nil {
			return data, err
		}
	default:
		if err := e.Fill(values, from); err != nil {
			return data, err
		}
	}
	return encode(e.DType, data, values), checkRange(e, values, from)
}

// largest is where the numbers of a type end: from halfway to the number that would come
// next, finite ones would become infinite.
var largest = map[DType]float64{
	F32:  0x1.ffffffp127,
	BF16: 0x1.ffp127,
	F16:  65520,
}

// checkRange refuses finite elements that the entry's type has no number for: infinite
// weights make every output NaN.
func checkRange[F float32 | float64](e *Entry, values []F, from int) error {
	limit := F(largest[e.DType])
	if math.IsInf(float64(limit), 0) {
		return nil // float32 as F32
	}
	for i, x := range values {
		if (x >= limit || x <= -limit) && !math.IsInf(float64(x), 0) {
			return fmt.Errorf("tensor %q: element %d is %g, which %s cannot hold: choose a wider type", e.Name, from+i, x, e.DType)
		}
	}
	return nil
}

// Write stores entries in a safetensors file at path, a block at a time, so that it
// needs no memory for a second copy. The file is written under a temporary name
// beside it, read back and compared, and only then takes its name: path holds the old
// content or the new one, never a part.
func Write(path string, entries []Entry, metadata map[string]string) error {
	if err := write(path, entries, metadata); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

func write(path string, entries []Entry, metadata map[string]string) error {
	// The order of the reference writer: largest elements first keeps all aligned.
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(-cmp.Compare(a.DType, b.DType), cmp.Compare(a.Name, b.Name))
	})
	header, err := marshalHeader(entries, metadata)
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.partial")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // does nothing after the rename
	sum := crc32.NewIEEE()
	err = stream(io.MultiWriter(temp, sum), header, entries)
	if err == nil {
		err = temp.Chmod(0o644)
	}
	if err == nil {
		err = temp.Sync()
	}
	if e := temp.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = readBack(temp.Name(), sum)
	}
	if err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

func marshalHeader(entries []Entry, metadata map[string]string) ([]byte, error) {
	content := map[string]any{}
	if len(metadata) > 0 {
		content["__metadata__"] = metadata
	}
	end := uint64(0)
	for i := range entries {
		e := &entries[i]
		if err := e.check(); err != nil {
			return nil, err
		}
		if _, twice := content[e.Name]; twice {
			return nil, fmt.Errorf("tensor %q: name used twice", e.Name)
		}
		entry := header{DType: e.DType.String(), Shape: make([]uint64, len(e.Shape))}
		for d, n := range e.Shape {
			entry.Shape[d] = uint64(n)
		}
		entry.Offsets = []uint64{end, end + uint64(e.Bytes())}
		end = entry.Offsets[1]
		content[e.Name] = entry
	}
	text, err := json.Marshal(content)
	for len(text)%8 != 0 { // the payload starts aligned
		text = append(text, ' ')
	}
	return text, err
}

func stream(w io.Writer, header []byte, entries []Entry) error {
	out := bufio.NewWriter(w) // for the header; blocks are larger and pass through
	out.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(header))))
	out.Write(header)
	data, scratch := []byte(nil), make([]float32, blockElements)
	for i := range entries {
		e := &entries[i]
		n := e.Len()
		for from := 0; from < n; from += blockElements {
			var err error
			if data, err = e.block(data[:0], scratch, from, min(n, from+blockElements)); err != nil {
				return err
			}
			if _, err := out.Write(data); err != nil {
				return err
			}
			if e.Written != nil {
				e.Written(len(data))
			}
		}
	}
	return out.Flush() // a bufio.Writer keeps the first error
}

// readBack opens the file as a reader would and compares its checksum with that of
// the bytes that were meant.
func readBack(path string, want hash.Hash32) error {
	file, err := Open(path)
	if err != nil {
		return fmt.Errorf("reading back: %w", err)
	}
	defer file.Close()
	source, err := os.Open(path)
	if err != nil {
		return err
	}
	defer source.Close()
	got := crc32.NewIEEE()
	if _, err := io.Copy(got, source); err != nil {
		return err
	}
	if got.Sum32() != want.Sum32() {
		return fmt.Errorf("reading back: the file differs from what was written; check the disk")
	}
	return nil
}
