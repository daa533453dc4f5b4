package report

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// ThisMachine describes the machine that the program runs on.
func ThisMachine() string {
	machine := fmt.Sprintf("%s/%s, %d cores, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	if name := processor("/proc/cpuinfo"); name != "" {
		machine = name + ", " + machine
	}
	return machine
}

// processor reads the processor's name where the system gives it; elsewhere it is
// left out.
func processor(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
