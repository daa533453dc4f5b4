package cuda

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

func init() {
	parts["survey"] = func() {
		s := Examine()
		text, err := json.Marshal(s)
		if err != nil {
			panic(err)
		}
		fmt.Println(s.Ready(), string(text))
	}
}

// Without anything the survey says how to get each part; with all of it, that training can
// run; with a GPU that is too old, why not.
func TestSurvey(t *testing.T) {
	needMock(t)
	nowhere := filepath.Join(t.TempDir(), "no.so")
	all := func(path string) []string {
		return []string{"CAPER_CUDA_DRIVER=" + path, "CAPER_NVRTC=" + path, "CAPER_CUBLASLT=" + path, "CAPER_NCCL=" + nowhere, "CAPER_NVTX=" + nowhere, "HOME=" + t.TempDir()}
	}
	got := runPart(t, "survey", all(nowhere)...)
	for _, want := range []string{"false {", "install the NVIDIA driver", "pip install nvidia-cuda-nvrtc==13.0.88", "pip install nvidia-cublas", "pip install nvidia-nccl", "pip install nvidia-nvtx", `"gpus":null`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	got = runPart(t, "survey", all(testMock.Path)...)
	for _, want := range []string{"true {", `"version":"CUDA 13.0"`, `"arch":"sm_90a"`, `"version":"13.1.0"`, `"name":"Mock H200"`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
}

func TestReady(t *testing.T) {
	libraries := func(nvrtc, blas string) []Component {
		return []Component{{Name: "NVRTC", Problem: nvrtc}, {Name: "cuBLASLt", Problem: blas}, {Name: "NCCL", Problem: "missing"}}
	}
	gpu, old := GPUState{}, GPUState{Problem: "too old"}
	for _, c := range []struct {
		survey Survey
		want   bool
	}{
		{Survey{GPUs: []GPUState{gpu}, Libraries: libraries("", "")}, true},
		{Survey{GPUs: []GPUState{old, gpu}, Libraries: libraries("", "")}, true},
		{Survey{GPUs: []GPUState{old}, Libraries: libraries("", "")}, false},
		{Survey{Libraries: libraries("", "")}, false},
		{Survey{GPUs: []GPUState{gpu}, Libraries: libraries("missing", "")}, false},
		{Survey{GPUs: []GPUState{gpu}, Libraries: libraries("missing", ""), Cubins: "cubins"}, true},
		{Survey{GPUs: []GPUState{gpu}, Libraries: libraries("", "missing")}, false},
	} {
		if got := c.survey.Ready(); got != c.want {
			t.Errorf("%+v: %v", c.survey, got)
		}
	}
}
