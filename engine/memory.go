package engine

import (
	"math"
	"os"
	"strconv"
	"strings"
)

// MachineMemory returns the bytes of memory that the process can have, as Linux tells
// it; as good as endless where nothing does.
func MachineMemory() int {
	least := math.MaxInt / 2
	for _, source := range []struct {
		path, key string
		unit      int
	}{
		{"/proc/meminfo", "MemTotal:", 1 << 10},
		{"/sys/fs/cgroup/memory.max", "", 1},                   // of a container, version 2 of control groups
		{"/sys/fs/cgroup/memory/memory.limit_in_bytes", "", 1}, // version 1
	} {
		text, err := os.ReadFile(source.path)
		if err != nil {
			continue
		}
		_, after, ok := strings.Cut(string(text), source.key)
		words := strings.Fields(after)
		if !ok || len(words) == 0 {
			continue
		}
		if n, err := strconv.Atoi(words[0]); err == nil && n > 0 && n < least/source.unit { // else "max"
			least = n * source.unit
		}
	}
	return least
}
