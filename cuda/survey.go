package cuda

// #include "cublaslt.h"
// static size_t blas_version_number(void) { return caper_cublaslt.cublasLtGetVersion(); }
import "C"

import (
	"errors"
	"fmt"
	"strings"

	"caper/cuda/dialect"
)

// Survey is what a machine has of what GPUs need. It is about what is there: to make one
// is no error, whatever is missing.
type Survey struct {
	Driver    Component   `json:"driver"`
	GPUs      []GPUState  `json:"gpus"`
	Libraries []Component `json:"libraries"`
	Cubins    string      `json:"cubins,omitempty"` // folder of compiled kernels, if there is one
	Cache     string      `json:"cache,omitempty"`  // where kernels are kept that were compiled here
}

// Component is a library.
type Component struct {
	Name    string `json:"name"`
	Needed  string `json:"needed_for"`
	Path    string `json:"path,omitempty"`
	Version string `json:"version,omitempty"`
	Problem string `json:"problem,omitempty"` // why it is of no use, and what to do
}

// GPUState is a GPU.
type GPUState struct {
	Info
	Arch    string `json:"arch"`
	Problem string `json:"problem,omitempty"`
}

// Ready reports that training can run on a GPU here.
func (s Survey) Ready() bool {
	compiled := s.Cubins != ""
	for _, l := range s.Libraries {
		compiled = compiled || l.Name == "NVRTC" && l.Problem == ""
		if l.Name == "cuBLASLt" && l.Problem != "" {
			return false
		}
	}
	for _, g := range s.GPUs {
		if g.Problem == "" {
			return compiled
		}
	}
	return false
}

// Examine looks for the driver, GPUs and libraries, and compiles a line for the first GPU.
func Examine() Survey {
	compiler := NewCompiler()
	s := Survey{Driver: examineDriver(), Cubins: compiler.Cubins, Cache: compiler.Cache}
	arch := "sm_90a"
	if s.Driver.Problem == "" {
		list, err := Devices()
		if err != nil {
			s.Driver.Problem = err.Error()
		} else if len(list) == 0 {
			s.Driver.Problem = "the driver sees no GPU: check CUDA_VISIBLE_DEVICES"
		}
		for _, info := range list {
			s.GPUs = append(s.GPUs, GPUState{Info: info, Arch: info.Arch(), Problem: problem(info.usable())})
			arch = s.GPUs[0].Arch
		}
	}
	s.Libraries = []Component{examineNVRTC(arch), examineCublasLt(), examineNCCL(), examineNVTX()}
	return s
}

func examineDriver() Component {
	c := Component{Name: "driver", Needed: "everything on a GPU"}
	lib, err := loadDriver()
	if err == nil {
		c.Path = lib.path
		var v Version
		if v, err = initDriver(); v != (Version{}) {
			c.Version = "CUDA " + v.String()
		}
	}
	c.Problem = problem(err)
	return c
}

func examineNVRTC(arch string) Component {
	c := Component{Name: "NVRTC", Needed: "compiling kernels"}
	n, err := loadNVRTC()
	if err == nil {
		c.Path, c.Version = n.library.path, n.version.String()
		trial := &Compiler{headers: []dialect.Header{}}
		_, err = trial.Compile(Source{Name: "trial", Text: `extern "C" __global__ void trial(float* x) { *x = erff(*x); }`}, arch)
	}
	c.Problem = problem(err)
	return c
}

func examineCublasLt() Component {
	c := Component{Name: "cuBLASLt", Needed: "matrix products"}
	lib, err := loadCublasLt()
	if err == nil {
		n := int(C.blas_version_number())
		c.Path, c.Version = lib.path, fmt.Sprintf("%d.%d.%d", n/10000, n/100%100, n%100)
	}
	c.Problem = problem(err)
	return c
}

func examineNCCL() Component {
	path, version, err := ncclVersion()
	return Component{Name: "NCCL", Needed: "several GPUs", Path: path, Version: version, Problem: problem(err)}
}

func examineNVTX() Component {
	c := Component{Name: "NVTX", Needed: "names in profiles; optional"}
	lib, err := nvtxLibrary.open()
	if err == nil {
		c.Path = lib.path
	}
	c.Problem = problem(err)
	return c
}

// problem is an error as the survey shows it: what is missing without the long list of
// places, which are in the manual.
func problem(err error) string {
	var missing *NotFoundError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &missing):
		return missing.short()
	}
	return err.Error()
}

// short is the message of what is simply not installed; where a file was there and did
// not load, the loader's reason counts.
func (e *NotFoundError) short() string {
	for _, place := range e.Looked {
		if strings.Contains(place, " (") {
			return "not usable: " + place + "; " + e.Remedy
		}
	}
	return "not found: " + e.Remedy + ", or name it in " + e.Variable
}
