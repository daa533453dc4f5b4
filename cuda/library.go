package cuda

// #cgo CFLAGS: -O2 -std=gnu11
// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "library.h"
import "C"

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"
)

// library describes a shared library: what it is called and where it may be.
//
// It is looked for in this order, and the first that loads is used:
//  1. the file, or the folder, that the environment variable names; when this is set
//     and does not hold the library, nothing else is tried;
//  2. the soname, as the system's loader finds it (LD_LIBRARY_PATH, ld.so.cache);
//  3. the toolkit: lib64 under CUDA_HOME, CUDA_PATH and /usr/local/cuda;
//  4. Python packages: nvidia/*/lib under the site-packages folder that
//     CAPER_SITE_PACKAGES names, that of VIRTUAL_ENV, and that of the python3 on PATH.
type library struct {
	name     string   // for people
	variable string   // of the environment
	sonames  []string // best first
	system   bool     // comes with the driver: steps 3 and 4 are left out
	purpose  string   // what works only with it
	remedy   string   // how to get it
}

// sharedLibrary is a library that has been opened. It stays open until the process ends.
type sharedLibrary struct {
	handle unsafe.Pointer
	path   string
}

// NotFoundError tells that a library could not be opened.
type NotFoundError struct {
	Library  string   // "the CUDA driver (libcuda.so.1)"
	Looked   []string // where it was looked for, and what the loader said if there was a file
	Purpose  string   // what needs it
	Remedy   string
	Variable string // environment variable that names it
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("%s not found, which %s; looked at %s; %s, or name it in %s",
		e.Library, e.Purpose, strings.Join(e.Looked, ", "), e.Remedy, e.Variable)
}

// open loads the library from the first place that has it.
func (l library) open() (*sharedLibrary, error) {
	missing := &NotFoundError{Library: l.name, Purpose: l.purpose, Remedy: l.remedy, Variable: l.variable}
	for _, path := range l.candidates() {
		lib, reason := load(path)
		if lib != nil {
			return lib, nil
		}
		missing.Looked = append(missing.Looked, looked(path, reason))
	}
	if os.Getenv(l.variable) == "" && !l.system {
		missing.Looked = append(missing.Looked, folderPatterns()...)
	}
	return nil, missing
}

// candidates lists what to hand to the loader, in the order of the type's comment.
// Beyond sonames only files that are there.
func (l library) candidates() []string {
	if named := os.Getenv(l.variable); named != "" {
		info, err := os.Stat(named)
		if err != nil || !info.IsDir() {
			return []string{named}
		}
		var paths []string
		for _, soname := range l.sonames {
			paths = append(paths, filepath.Join(named, soname))
		}
		return paths
	}
	paths := slices.Clone(l.sonames)
	if l.system {
		return paths
	}
	for _, soname := range l.sonames {
		for _, pattern := range folderPatterns() {
			found, _ := filepath.Glob(filepath.Join(pattern, soname))
			paths = append(paths, found...)
		}
	}
	return paths
}

// folderPatterns are the folders of steps 3 and 4.
func folderPatterns() []string {
	var patterns []string
	for _, toolkit := range []string{os.Getenv("CUDA_HOME"), os.Getenv("CUDA_PATH"), "/usr/local/cuda"} {
		if toolkit != "" {
			patterns = append(patterns, filepath.Join(toolkit, "lib64"))
		}
	}
	packages := []string{os.Getenv("CAPER_SITE_PACKAGES")}
	if env := os.Getenv("VIRTUAL_ENV"); env != "" {
		packages = append(packages, filepath.Join(env, "lib/python3*/site-packages"))
	}
	if python, err := exec.LookPath("python3"); err == nil {
		prefix := filepath.Dir(filepath.Dir(python))
		packages = append(packages, filepath.Join(prefix, "lib/python3*/site-packages"),
			filepath.Join(prefix, "lib/python3*/dist-packages"))
	}
	for _, folder := range packages {
		if folder != "" {
			patterns = append(patterns, filepath.Join(folder, "nvidia/*/lib"))
		}
	}
	return patterns
}

// looked names a place that had nothing. The loader's reason matters when a file was
// there: it is of another machine, or lacks something itself.
func looked(path, reason string) string {
	if strings.Contains(reason, "No such file") {
		return path
	}
	return fmt.Sprintf("%s (%s)", path, reason)
}

// load opens one file or soname, or says why it cannot.
func load(path string) (*sharedLibrary, string) {
	text := C.CString(path)
	defer C.free(unsafe.Pointer(text))
	var reason [512]C.char
	handle := C.caper_library_open(text, &reason[0], C.size_t(len(reason)))
	if handle == nil {
		return nil, C.GoString(&reason[0])
	}
	lib := &sharedLibrary{handle: handle, path: path}
	if full := C.caper_library_path(handle); full != nil {
		lib.path = C.GoString(full)
	}
	return lib, ""
}

// symbol returns the address of a function, nil if the library has none of this name.
func (l *sharedLibrary) symbol(name string) unsafe.Pointer {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	return C.caper_library_symbol(l.handle, text)
}
