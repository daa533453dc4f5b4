package cuda

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// environment is that of the process's start, before the mock's libraries are named in it.
var environment = os.Environ()

// Every kernel text of the repository compiles for every kind of card, and no kernel keeps
// arrays in a thread's memory. Registers are judged by the operators' own tests.
func TestKernelTexts(t *testing.T) {
	got := runPart(t, "kernels", environment...)
	named := slices.ContainsFunc(environment, func(v string) bool { return strings.HasPrefix(v, "CAPER_NVRTC=") })
	if strings.HasPrefix(got, "skip: ") && !named { // who names one wants it used
		t.Skip(got)
	}
	if got != "" {
		t.Error(got)
	}
}

func init() { parts["kernels"] = compileKernelTexts }

func compileKernelTexts() {
	if _, err := loadNVRTC(); err != nil {
		fmt.Println("skip:", err)
		return
	}
	compiler := NewCompiler()
	files, _ := filepath.Glob("../kernels/*/op.cu")
	slots := make(chan struct{}, 2) // NVRTC takes 100 MB and a core for each
	var all sync.WaitGroup
	for _, file := range files {
		for _, arch := range []string{"sm_80", "sm_90a", "sm_100a", "sm_120a"} {
			all.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				compileKernelText(compiler, file, arch)
			})
		}
	}
	all.Wait()
}

// compileKernelText prints what is wrong.
func compileKernelText(compiler *Compiler, file, arch string) {
	text, err := os.ReadFile(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	cubin, err := compiler.Compile(Source{Name: strings.TrimPrefix(file, "../"), Text: string(text)}, arch)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, k := range cubin.Kernels {
		if k.Stack > 0 {
			fmt.Printf("%s for %s: kernel %s keeps %v in a thread's memory: index arrays by constants\n", file, arch, k.Kernel, k.Stack)
		}
	}
}
