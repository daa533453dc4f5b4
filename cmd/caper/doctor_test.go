package main

import (
	"strings"
	"testing"
)

// The doctor has no bad news: it ends well whatever is missing, and tells the same in a
// table and as JSON.
func TestDoctor(t *testing.T) {
	for _, name := range []string{"CAPER_CUDA_DRIVER", "CAPER_NVRTC", "CAPER_CUBLASLT", "CAPER_NCCL", "CAPER_NVTX"} {
		t.Setenv(name, "/nonexistent/library.so")
	}
	r := caper(t, "doctor")
	if r.status != 0 || r.stdout != "" {
		t.Errorf("%+v", r)
	}
	for _, want := range []string{"processor", "driver     missing", "CAPER_CUDA_DRIVER", "NVRTC      missing", "Training runs on the processor here"} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("no %q in\n%s", want, r.stderr)
		}
	}
	r = caper(t, "doctor", "--json")
	if ready, told := oneDocument(t, r)["gpu_ready"]; r.status != 0 || !told || ready != false {
		t.Errorf("%+v", r)
	}
}
