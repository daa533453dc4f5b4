// Package safetensors reads and writes model weights in the safetensors format: an
// 8-byte length, a JSON header, and the raw tensors. Files are read through a memory
// map, so that a tensor's bytes are touched once, on their way into the engine's
// storage; they are written as a stream and read back before they take their name.
//
// Parsing is github.com/nlpodyssey/safetensors behind a stricter check of the header
// (header.go); folders of shards go through their index (folder.go).
package safetensors

import (
	"fmt"
	"io"
	"os"

	"github.com/nlpodyssey/safetensors"
	"golang.org/x/sys/unix"
)

// DType is the element type of a stored tensor.
type DType = safetensors.DType

// The element types that this package converts; others can only be listed.
const (
	F16  = safetensors.F16
	BF16 = safetensors.BF16
	F32  = safetensors.F32
	F64  = safetensors.F64
	I64  = safetensors.I64
)

// File is an open safetensors file. Tensors taken from it are valid until Close.
// The file must not be changed while it is open.
type File struct {
	path    string
	tensors safetensors.SafeTensors
	mapped  []byte // nil when the file had to be read into memory
}

// Open maps the file at path and checks its header. Errors name the file and, where
// one is at fault, the tensor.
func Open(path string) (*File, error) {
	data, mapped, err := mapFile(path)
	if err != nil {
		return nil, err
	}
	f := &File{path: path, mapped: mapped}
	if err = checkHeader(data); err == nil {
		f.tensors, err = safetensors.Deserialize(data)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w; get the file again, or save it again with a current safetensors", path, err)
	}
	return f, nil
}

// mapFile returns the content of a file: a memory map where the system grants one,
// else a copy in memory, and then mapped is nil.
func mapFile(path string) (data, mapped []byte, err error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if mapped, err = unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_PRIVATE); err == nil {
		return mapped, mapped, nil
	}
	data, err = io.ReadAll(f)
	return data, nil, err
}

// openRegular opens a regular file, or a link to one, and nothing that could keep its
// reader waiting.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a regular file; name a file of weights, or their folder", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Close unmaps the file.
func (f *File) Close() error {
	mapped := f.mapped
	f.mapped, f.tensors = nil, safetensors.SafeTensors{}
	if mapped == nil {
		return nil
	}
	return unix.Munmap(mapped)
}

// Names returns the names of all tensors, in file order.
func (f *File) Names() []string { return f.tensors.Names() }

// Tensor returns the tensor called name.
func (f *File) Tensor(name string) (Tensor, error) {
	view, ok := f.tensors.Tensor(name)
	if !ok {
		return Tensor{}, fmt.Errorf("%s: no tensor %q", f.path, name)
	}
	shape := make([]int, len(view.Shape()))
	for i, n := range view.Shape() {
		shape[i] = int(n)
	}
	return Tensor{Name: name, File: f.path, DType: view.DType(), Shape: shape, data: view.Data(), mapped: f.mapped != nil}, nil
}
