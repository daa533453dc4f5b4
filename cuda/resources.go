package cuda

import (
	"regexp"
	"strconv"
)

// Resources are what a compiled kernel takes, as ptxas -v reports them.
type Resources struct {
	Kernel      string `json:"kernel"`
	Registers   int    `json:"registers"`    // of a thread
	Shared      Bytes  `json:"shared_bytes"` // static
	Stack       Bytes  `json:"stack_bytes"`  // memory of a thread for arrays that fit in no register
	SpillStores Bytes  `json:"spill_store_bytes"`
	SpillLoads  Bytes  `json:"spill_load_bytes"`
	Barriers    int    `json:"barriers"`
}

var (
	kernelLine = regexp.MustCompile(`(?m)Compiling entry function '([^']+)' for '[^']+'`)
	usages     = []struct {
		pattern *regexp.Regexp
		set     func(*Resources, int)
	}{
		{regexp.MustCompile(`(\d+) bytes stack frame`), func(r *Resources, n int) { r.Stack = Bytes(n) }},
		{regexp.MustCompile(`(\d+) bytes spill stores`), func(r *Resources, n int) { r.SpillStores = Bytes(n) }},
		{regexp.MustCompile(`(\d+) bytes spill loads`), func(r *Resources, n int) { r.SpillLoads = Bytes(n) }},
		{regexp.MustCompile(`Used (\d+) registers`), func(r *Resources, n int) { r.Registers = n }},
		{regexp.MustCompile(`used (\d+) barriers`), func(r *Resources, n int) { r.Barriers = n }},
		{regexp.MustCompile(`(\d+) bytes smem`), func(r *Resources, n int) { r.Shared = Bytes(n) }},
	}
	// serialised matches ptxas's remarks C7500 to C7599: it had to serialise wgmma, which
	// then runs at a fraction of its speed. It is no error and no warning to ptxas.
	serialised = regexp.MustCompile(`(?m)^.*\bC75\d\d\b.*$`)
)

// parseResources reads the usage of every kernel out of a log of ptxas -v: the lines from
// "Compiling entry function" to the next kernel's.
func parseResources(log string) []Resources {
	starts := kernelLine.FindAllStringSubmatchIndex(log, -1)
	list := make([]Resources, len(starts))
	for i, at := range starts {
		end := len(log)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		list[i].Kernel = log[at[2]:at[3]]
		for _, u := range usages {
			if m := u.pattern.FindStringSubmatch(log[at[1]:end]); m != nil {
				n, _ := strconv.Atoi(m[1])
				u.set(&list[i], n)
			}
		}
	}
	return list
}
