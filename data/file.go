package data

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// File is a file on its way: it is written under a temporary name beside its own
// and takes its name on Commit, so that no reader ever sees half of it. Use it as
//
//	f, err := data.Create(path)
//	if err != nil {
//		return err
//	}
//	defer f.Discard()
//	... f.Write or f.WriteLine ...
//	return f.Commit()
type File struct {
	path    string
	f       *os.File
	buffer  *bufio.Writer
	written int64
	forget  func()
	done    bool
}

// Create starts to write the file at path, in a folder that exists. A file of
// that name stays as it is until Commit.
func Create(path string) (*File, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("write %s: not a regular file: choose another name", path)
	}
	forget := Temporary(path + ".tmp")
	f, err := os.Create(path + ".tmp")
	if err != nil {
		forget()
		return nil, cannotCreate(path, err)
	}
	return &File{path: path, f: f, buffer: bufio.NewWriterSize(f, 1<<16), forget: forget}, nil
}

// cannotCreate says of the file at path why the one that stands in for it could not be
// made.
func cannotCreate(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write %s: its folder does not exist: make it first", path)
	}
	var why *fs.PathError
	if errors.As(err, &why) {
		err = why.Err
	}
	return &fs.PathError{Op: "write", Path: path, Err: err}
}

// Write appends bytes.
func (f *File) Write(p []byte) (int, error) {
	n, err := f.buffer.Write(p)
	f.written += int64(n)
	if err != nil {
		return n, fmt.Errorf("write %s: %w", f.path, err)
	}
	return n, nil
}

// WriteLine appends v as one line of JSON.
func (f *File) WriteLine(v any) error {
	text, err := Marshal(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", f.path, err)
	}
	_, err = f.Write(append(text, '\n'))
	return err
}

// Commit checks that all bytes are on disk and gives the file its name.
func (f *File) Commit() error {
	if err := f.commit(); err != nil {
		return fmt.Errorf("write %s: %w", f.path, err)
	}
	return nil
}

func (f *File) commit() error {
	if f.done {
		return os.ErrClosed
	}
	defer f.Discard()
	if err := f.buffer.Flush(); err != nil {
		return err
	}
	if err := f.f.Sync(); err != nil {
		return err
	}
	if info, err := f.f.Stat(); err != nil {
		return err
	} else if info.Size() != f.written {
		return fmt.Errorf("%d bytes written, %d on disk", f.written, info.Size())
	}
	if err := f.f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.f.Name(), f.path); err != nil {
		return err
	}
	f.done = true
	f.forget()
	return syncFolder(filepath.Dir(f.path))
}

// syncFolder makes a rename last through a power cut.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Discard removes what was written, unless Commit has given it its name.
func (f *File) Discard() {
	if f.done {
		return
	}
	f.done = true
	f.f.Close()
	os.Remove(f.f.Name())
	f.forget()
}
