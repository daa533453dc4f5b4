package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"unicode/utf8"

	"github.com/nlpodyssey/safetensors"
)

// maxHeaderBytes bounds the JSON header, as the reference implementation does.
const maxHeaderBytes = 100_000_000

// header is one tensor's entry in the JSON header: {"dtype","shape","data_offsets"}.
// Offsets are bytes from the end of the header.
type header struct {
	name    string
	DType   string   `json:"dtype"`
	Shape   []uint64 `json:"shape"`
	Offsets []uint64 `json:"data_offsets"`
}

// checkHeader accepts only what every reader understands the same way: UTF-8, each
// name and each field once, no unknown fields, payloads that are aligned, as large as their shape says,
// inside the file, and side by side without holes or overlaps.
func checkHeader(data []byte) error {
	if len(data) < 8 {
		return fmt.Errorf("the file is cut off: it has only %d bytes", len(data))
	}
	n := binary.LittleEndian.Uint64(data)
	if n > maxHeaderBytes {
		return fmt.Errorf("header of %d bytes is larger than %d: not a safetensors file", n, maxHeaderBytes)
	}
	if n > uint64(len(data)-8) {
		return fmt.Errorf("header of %d bytes in a file of %d: the file is cut off", n, len(data))
	}
	entries, err := parseHeader(data[8 : 8+n])
	if err != nil {
		return fmt.Errorf("header: %w", err)
	}
	return checkLayout(entries, uint64(len(data))-8-n)
}

func parseHeader(text []byte) ([]header, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	var entries []header
	err := parseObject(dec, func(name string) error {
		if name == "__metadata__" {
			return parseObject(dec, func(key string) error {
				if token, err := dec.Token(); err != nil {
					return err
				} else if _, ok := token.(string); !ok {
					return fmt.Errorf("%q is not a text", key)
				}
				return nil
			})
		}
		entry := header{name: name}
		entries = append(entries, entry)
		return parseEntry(dec, &entries[len(entries)-1])
	})
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, errors.New("not JSON: it ends too early")
	}
	if err != nil {
		return nil, err
	}
	if rest := text[dec.InputOffset():]; len(bytes.TrimRight(rest, " ")) > 0 {
		return nil, errors.New("text after the JSON object")
	}
	return entries, nil
}

// parseObject calls value at each key of the JSON object that comes next, to read
// what belongs to the key. No key may come twice.
func parseObject(dec *json.Decoder, value func(key string) error) error {
	if token, err := dec.Token(); err != nil || token != json.Delim('{') {
		return errors.New("not a JSON object")
	}
	seen := map[string]bool{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return err
		}
		key := token.(string) // the decoder lets nothing else stand here
		if seen[key] {
			return fmt.Errorf("%q appears twice", key)
		}
		seen[key] = true
		if err := value(key); err != nil {
			return fmt.Errorf("%q: %w", key, err)
		}
	}
	_, err := dec.Token()
	return err
}

func parseEntry(dec *json.Decoder, e *header) error {
	err := parseObject(dec, func(key string) error {
		switch key {
		case "dtype":
			return dec.Decode(&e.DType)
		case "shape":
			return dec.Decode(&e.Shape)
		case "data_offsets":
			return dec.Decode(&e.Offsets)
		}
		return errors.New("unknown field")
	})
	switch {
	case err != nil:
		return err
	case e.Shape == nil:
		return errors.New("no shape")
	case len(e.Offsets) != 2:
		return fmt.Errorf("data_offsets %v, want two", e.Offsets)
	}
	return nil
}

// checkLayout checks that the payloads of entries fill exactly payload bytes.
func checkLayout(entries []header, payload uint64) error {
	slices.SortFunc(entries, func(a, b header) int {
		return cmp.Or(cmp.Compare(a.Offsets[0], b.Offsets[0]), cmp.Compare(a.Offsets[1], b.Offsets[1]))
	})
	end := uint64(0)
	for _, e := range entries {
		dtype, err := safetensors.ParseDType(e.DType)
		if err != nil {
			return fmt.Errorf("tensor %q: type %q cannot be read here: convert it to BF16 or F32 with the program that wrote it", e.name, e.DType)
		}
		size, ok := payloadBytes(e.Shape, dtype)
		switch from, to := e.Offsets[0], e.Offsets[1]; {
		case !ok:
			return fmt.Errorf("tensor %q: shape %v is too large", e.name, e.Shape)
		case to < from || to > payload:
			return fmt.Errorf("tensor %q: bytes [%d,%d) of a payload of %d: the file is cut off or damaged", e.name, from, to, payload)
		case to-from != size:
			return fmt.Errorf("tensor %q: %d bytes, but %s of shape %v needs %d", e.name, to-from, e.DType, e.Shape, size)
		case from%dtype.Size() != 0:
			return fmt.Errorf("tensor %q: offset %d is not a multiple of the %d bytes of %s", e.name, from, dtype.Size(), e.DType)
		case from < end:
			return fmt.Errorf("tensor %q: bytes [%d,%d) overlap the tensor before, which ends at %d", e.name, from, to, end)
		case from > end:
			return fmt.Errorf("tensor %q: starts at %d, but the tensor before ends at %d", e.name, from, end)
		}
		end = e.Offsets[1]
	}
	if end != payload {
		return fmt.Errorf("tensors end at byte %d of a payload of %d", end, payload)
	}
	return nil
}

// payloadBytes returns the bytes of a tensor, or false when they do not fit an int.
func payloadBytes(shape []uint64, dtype DType) (uint64, bool) {
	const limit = 1 << 62
	size := dtype.Size()
	for _, n := range shape {
		if n > limit {
			return 0, false // so that every accepted dimension fits an int
		}
		hi, lo := bits.Mul64(size, n)
		if hi != 0 || lo > limit {
			return 0, false
		}
		size = lo
	}
	return size, true
}
