package emulator_test

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"caper/cuda/emulator"
)

// wanted is what a comment in faults.cu asks for.
type wanted struct {
	line  int
	races bool // only with the checks for races
	text  *regexp.Regexp
}

func readWanted(t *testing.T) map[string][]wanted {
	text, err := os.ReadFile("testdata/faults.cu")
	if err != nil {
		t.Fatal(err)
	}
	kernel := regexp.MustCompile(`__launch_bounds__\(128\) (\w+)\(`)
	comment := regexp.MustCompile(`// want (\w+): (.*)$`)
	all := map[string][]wanted{}
	name := ""
	for i, line := range strings.Split(string(text), "\n") {
		if m := kernel.FindStringSubmatch(line); m != nil {
			name = m[1]
			all[name] = nil
		}
		if m := comment.FindStringSubmatch(line); m != nil {
			all[name] = append(all[name], wanted{i + 1, m[1] == "races", regexp.MustCompile(m[2])})
		}
	}
	return all
}

// launchFault runs a kernel of faults.cu with memory of its own.
func launchFault(t *testing.T, lib *emulator.Library, name string, seed uint64) error {
	in, values := matrix(t, 16, 64, 1)
	out, sums := alloc[float32](t, 1024)
	clear(sums)
	if len(values) != 1024 {
		t.Fatal("in has 1,024 elements")
	}
	m := tensorMap(t, lib, in, []int{64, 16}, []int{128}, []int{64, 8})
	l := emulator.Launch{Block: [3]int{128}, Shared: 16 << 10, Seed: seed}
	if strings.HasSuffix(name, "blocks") {
		l.Grid[0] = 2
	}
	return kernel(t, lib, name).Launch(l, in, out, m)
}

// Every planted mistake is found at its line, in every order of threads, by the checks
// that are to find it; the right twins run without a report under all of them.
func TestPlantedFaults(t *testing.T) {
	all := readWanted(t)
	everyCheck(t, func(t *testing.T, races bool) {
		lib := build(t, races, "faults.cu")
		for name, want := range all {
			for _, seed := range seeds {
				err := launchFault(t, lib, name, seed)
				if strings.HasPrefix(name, "right_") {
					if err != nil {
						t.Errorf("%s, seed %d: %v", name, seed, err)
					}
					continue
				}
				if len(want) == 0 {
					t.Fatalf("%s wants nothing", name)
				}
				if !slices.ContainsFunc(want, func(w wanted) bool { return races || !w.races }) {
					continue
				}
				checkFault(t, name, seed, err, want)
			}
		}
	})
}

func checkFault(t *testing.T, name string, seed uint64, err error, want []wanted) {
	t.Helper()
	var fault *emulator.Fault
	if !errors.As(err, &fault) {
		t.Errorf("%s, seed %d: not caught: %v", name, seed, err)
		return
	}
	for _, w := range want {
		if fault.Line == w.line && fault.File == "faults.cu" && fault.Kernel == name && w.text.MatchString(fault.Message) {
			return
		}
	}
	t.Errorf("%s, seed %d: %v, want line %d %v", name, seed, err, want[0].line, want[0].text)
}
