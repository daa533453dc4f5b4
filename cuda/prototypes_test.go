package cuda

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// prototypeCheck compares what driver.h declares with NVIDIA's own header: every call's
// type, every constant, every layout.
const prototypeCheck = `
#include <stddef.h>
#include <stdint.h>
#include <cuda.h>
#define CALL(name, parameters, arguments) \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&name), CUresult (*) parameters), #name);
#define IN_CONTEXT CALL
#include "calls.h"
_Static_assert(__builtin_types_compatible_p(__typeof__(&cuFuncGetParamInfo), CUresult (*)(CUfunction, size_t, size_t *, size_t *)), "cuFuncGetParamInfo");
#define LAYOUT(type, size, alignment) _Static_assert(sizeof(type) == size && _Alignof(type) <= alignment, #type);
LAYOUT(CUlaunchConfig, 56, 8)
LAYOUT(CUlaunchAttribute, 72, 8)
LAYOUT(CUtensorMap, 128, 128)
LAYOUT(CUgraphExecUpdateResultInfo, 24, 8)
_Static_assert(offsetof(CUlaunchConfig, sharedMemBytes) == 24 && offsetof(CUlaunchConfig, attrs) == 40 && offsetof(CUlaunchConfig, numAttrs) == 48, "CUlaunchConfig");
_Static_assert(offsetof(CUlaunchAttribute, value) == 8, "CUlaunchAttribute");
`

// productCheck does the same for cublaslt.h.
const productCheck = `
#include <stddef.h>
#include <stdint.h>
#include <cublasLt.h>
#define cudaDataType_t cudaDataType
#define CALL(name, parameters) _Static_assert(__builtin_types_compatible_p(__typeof__(&name), cublasStatus_t (*) parameters), #name);
CUBLASLT_CALLS(CALL)
_Static_assert(sizeof(cublasLtMatmulHeuristicResult_t) == 96 && offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) == 64 && offsetof(cublasLtMatmulHeuristicResult_t, state) == 72, "result");
_Static_assert(__builtin_types_compatible_p(__typeof__(&cublasLtGetVersion), size_t (*)(void)), "cublasLtGetVersion");
_Static_assert(__builtin_types_compatible_p(__typeof__(&cublasLtGetStatusName), const char *(*)(cublasStatus_t)), "cublasLtGetStatusName");
`

// checkHeader compares declarations with a header of NVIDIA's that a folder beside the
// libraries holds.
func checkHeader(t *testing.T, name, check, remedy string) {
	var header string
	for _, pattern := range folderPatterns() {
		for _, place := range []string{"../include", "../../include"} {
			if found, _ := filepath.Glob(filepath.Join(pattern, place, name)); found != nil {
				header = found[0]
			}
		}
	}
	if header == "" {
		t.Skipf("no %s: pip install %s and name the site-packages folder in CAPER_SITE_PACKAGES", name, remedy)
	}
	cmd := exec.Command("gcc", "-fsyntax-only", "-Wall", "-I", ".", "-I", filepath.Dir(header), "-x", "c", "-")
	cmd.Stdin = strings.NewReader(check)
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "No such file") {
		t.Skipf("%s needs others: pip install %s", header, remedy)
	}
	if err != nil {
		t.Errorf("%s: %v\n%s", header, err, out)
	}
}

func TestPrototypes(t *testing.T) {
	checkHeader(t, "cuda.h", prototypeCheck+constants(t, "driver.h", 40), "nvidia-cuda-runtime==13.0.96 nvidia-cuda-crt==13.0.88")
}

func TestPrototypesOfCublasLt(t *testing.T) {
	text := readFile(t, "cublaslt.h")
	calls := text[strings.Index(text, "#define CUBLASLT_CALLS"):]
	calls = calls[:strings.Index(calls, "\n\n")]
	check := strings.Replace(productCheck, "CUBLASLT_CALLS(CALL)", calls+"\nCUBLASLT_CALLS(CALL)", 1)
	checkHeader(t, "cublasLt.h", check+constants(t, "cublaslt.h", 10), "nvidia-cublas==13.1.0.3 nvidia-cuda-runtime==13.0.96 nvidia-cuda-crt==13.0.88")
}

// constants are assertions of the values that a header of ours gives.
func constants(t *testing.T, name string, least int) string {
	var check strings.Builder
	found := constant.FindAllStringSubmatch(readFile(t, name), -1)
	for _, m := range found {
		fmt.Fprintf(&check, "_Static_assert(%s == %s, \"%s\");\n", m[1], m[2], m[1])
	}
	if len(found) < least {
		t.Fatalf("only %d constants found in %s", len(found), name)
	}
	return check.String()
}
