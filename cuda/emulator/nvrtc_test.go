package emulator_test

import (
	"errors"
	"os"
	"testing"

	"caper/cuda"
)

// The texts that run here compile for cards too: without spills or serialised products,
// for each architecture that has what they use.
func TestTextsCompileForCards(t *testing.T) {
	all := []string{"sm_80", "sm_90a", "sm_100a", "sm_120a"}
	compiler := cuda.NewCompiler()
	for _, c := range []struct {
		file  string
		archs []string
	}{{"reduction.cu", all}, {"gemm_mma.cu", all}, {"gemm_wgmma.cu", []string{"sm_90a"}}, {"primitives.cu", all}} {
		for _, arch := range c.archs {
			t.Run(c.file+" "+arch, func(t *testing.T) {
				t.Parallel()
				s := source(t, c.file)
				cubin, err := compiler.Compile(cuda.Source{Name: s.Name, Text: s.Text}, arch)
				if missing := (*cuda.NotFoundError)(nil); errors.As(err, &missing) && os.Getenv("CAPER_NVRTC") == "" {
					t.Skip(err)
				}
				if err != nil {
					t.Fatal(err)
				}
				for _, k := range cubin.Kernels {
					t.Logf("%+v", k)
				}
			})
		}
	}
}
