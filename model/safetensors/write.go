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

// Entry is a tensor to be written. The elements are in F32 or F64, whichever is set.
type Entry struct {
	Name  string
	DType DType // F32 or BF16; values are rounded to it
	Shape []int
	F32   []float32
	F64   []float64
}

func (e *Entry) len() int { return max(len(e.F32), len(e.F64)) }

func (e *Entry) at(i int) float32 {
	if e.F32 != nil {
		return e.F32[i]
	}
	return float32(e.F64[i])
}

// Write stores entries in a safetensors file at path, one element at a time, so that
// it needs no memory for a second copy. The file is written under a temporary name
// beside it, read back and compared, and only then takes its name: path holds the old
// content or the new one, never a part.
func Write(path string, entries []Entry, metadata map[string]string) error {
	// The order of the reference writer: largest elements first keeps all aligned.
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(-cmp.Compare(a.DType, b.DType), cmp.Compare(a.Name, b.Name))
	})
	header, err := marshalHeader(entries, metadata)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
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
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

func marshalHeader(entries []Entry, metadata map[string]string) ([]byte, error) {
	content := map[string]any{}
	if len(metadata) > 0 {
		content["__metadata__"] = metadata
	}
	end := uint64(0)
	for i := range entries {
		e := &entries[i]
		if e.DType != F32 && e.DType != BF16 {
			return nil, fmt.Errorf("tensor %q: cannot write %s, only F32 and BF16", e.Name, e.DType)
		}
		count := 1
		entry := header{DType: e.DType.String(), Shape: make([]uint64, len(e.Shape))}
		for d, n := range e.Shape {
			count *= n
			entry.Shape[d] = uint64(n)
		}
		if count != e.len() {
			return nil, fmt.Errorf("tensor %q: %d elements for shape %v", e.Name, e.len(), e.Shape)
		}
		if _, twice := content[e.Name]; twice {
			return nil, fmt.Errorf("tensor %q: name used twice", e.Name)
		}
		entry.Offsets = [2]uint64{end, end + uint64(count)*e.DType.Size()}
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
	out := bufio.NewWriterSize(w, 1<<20)
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], uint64(len(header)))
	out.Write(word[:])
	out.Write(header)
	for i := range entries {
		e := &entries[i]
		size := int(e.DType.Size())
		for j := range e.len() {
			if e.DType == BF16 {
				binary.LittleEndian.PutUint16(word[:], toBFloat16(e.at(j)))
			} else {
				binary.LittleEndian.PutUint32(word[:], math.Float32bits(e.at(j)))
			}
			out.Write(word[:size])
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
