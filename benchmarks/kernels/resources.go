package kernels

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"caper/cuda"
	"caper/engine"
	"caper/train/plan"
)

// Archs are the architectures that kernels are compiled for: cards from A100 to RTX 50.
var Archs = []string{"sm_80", "sm_90a", "sm_100a", "sm_120a"}

// Cubins compiles all kernels of the program by NVRTC, and writes them to a folder where one
// is named.
func Cubins(folder string, archs []string) ([]*cuda.Cubin, error) {
	compiler := cuda.NewCompiler()
	compiler.Cubins = "" // those of an older program may lie there
	sources := engine.KernelSources()
	all, errs := make([]*cuda.Cubin, len(sources)*len(archs)), make([]error, len(sources)*len(archs))
	slots := make(chan struct{}, runtime.NumCPU())
	var running sync.WaitGroup
	for i := range all {
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			source, arch := sources[i/len(archs)], archs[i%len(archs)]
			if folder != "" {
				all[i], errs[i] = compiler.WriteCubin(folder, source, arch)
			} else {
				all[i], errs[i] = compiler.Compile(source, arch)
			}
		})
	}
	running.Wait()
	return all, errors.Join(errs...)
}

var (
	bounds    = regexp.MustCompile(`__launch_bounds__\((\w+)(?: \* (\d+))?[^)]*\)\s*(\w+)\(`)
	constants = regexp.MustCompile(`constexpr int (\w+) = (\d+)`)
)

// blockSizes is how many threads blocks have at most, by kernel.
func blockSizes(sources []cuda.Source) map[string]int {
	sizes := map[string]int{}
	for _, source := range sources {
		values := map[string]string{}
		for _, m := range constants.FindAllStringSubmatch(source.Text, -1) {
			values[m[1]] = m[2]
		}
		for _, m := range bounds.FindAllStringSubmatch(source.Text, -1) {
			size, _ := strconv.Atoi(cmp.Or(values[m[1]], m[1]))
			times, _ := strconv.Atoi(cmp.Or(m[2], "1"))
			sizes[m[3]] = size * times
		}
	}
	return sizes
}

// WriteResources writes what each kernel takes as Markdown, with how many of a multiprocessor's
// 64 warps its registers let run at once, in whole blocks.
func WriteResources(to io.Writer, cubins []*cuda.Cubin) {
	const registersOfSM, warpsOfSM = 65536, 64
	threads := blockSizes(engine.KernelSources())
	fmt.Fprintln(to, "| kernel | text | architecture | registers | threads a block | warps of 64 that registers allow | static shared memory | spilled |")
	fmt.Fprintln(to, "|---|---|---|---|---|---|---|---|")
	for _, c := range cubins {
		for _, k := range c.Kernels {
			rounded := (max(k.Registers, 1) + 7) / 8 * 8 // as registers are given out
			warps := max(threads[k.Kernel]/32, 1)
			fmt.Fprintf(to, "| %s | %s | %s | %d | %d | %d | %v | %v |\n", k.Kernel, c.Name, c.Arch, k.Registers, threads[k.Kernel],
				min(warpsOfSM, registersOfSM/(32*rounded))/warps*warps, k.Shared, k.SpillStores)
		}
	}
}

// H200's dense bf16 operations and bytes a second, by its data sheet.
const (
	peakFLOPs = 989e12
	peakBytes = 4.8e12
)

// WriteRoofline writes the work of a training step of a published model as Markdown: what
// each operator has to compute and move, and the least time that takes on an H200.
func WriteRoofline(to io.Writer, name string, tokens int) error {
	config, err := plan.Named(name)
	if err != nil {
		return err
	}
	sums := &operators{}
	for _, reward := range []bool{false, true} { // for the heads of both
		config.Reward = reward
		walk, err := plan.Step(config, plan.Batch{Sequences: 1, Length: tokens}, nil, engine.KeepAll)
		if err != nil {
			return err
		}
		for _, l := range walk.Launches {
			if !reward || l.Operator == "scorehead" {
				sums.list = merge(sums.list, Operator{Name: l.Operator, Phase: l.Phase, Launches: 1, FLOPs: l.FLOPs, Bytes: l.Bytes})
			}
		}
	}
	for i := range sums.list {
		o := &sums.list[i]
		o.Seconds = max(o.FLOPs/peakFLOPs, o.Bytes/peakBytes)
	}
	slices.SortStableFunc(sums.list, func(a, b Operator) int { return cmp.Compare(b.Seconds, a.Seconds) })
	fmt.Fprintln(to, "| operator | phase | launches | GFLOP | GB | least ms | bound by |")
	fmt.Fprintln(to, "|---|---|---|---|---|---|---|")
	for _, o := range sums.list {
		bound := "memory"
		if o.FLOPs/peakFLOPs > o.Bytes/peakBytes {
			bound = "products"
		}
		fmt.Fprintf(to, "| %s | %s | %d | %.1f | %.3f | %.3f | %s |\n", o.Name, o.Phase, o.Launches, o.FLOPs/1e9, o.Bytes/1e9, 1e3*o.Seconds, bound)
	}
	return nil
}
