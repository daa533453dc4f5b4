package run

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/pprof"

	"caper/data"
	"caper/engine"
)

// The files of a profile.
const (
	traceName     = "trace.json"    // every operator a row: open it at ui.perfetto.dev
	operatorsName = "operators.txt" // sums by operator
	cpuName       = "cpu.pprof"     // for go tool pprof, as is the next
	memoryName    = "memory.pprof"  // what the Go side holds at the end
)

// watch returns dev with its launches measured where a folder for a profile is named.
func watch(dev engine.Device, folder string) (engine.Device, *engine.Profile) {
	if folder == "" {
		return dev, nil
	}
	p := engine.NewProfile()
	return engine.Observed(dev, p), p
}

// profiled runs the loop, measured where Options ask for it.
func (r *Run) profiled(loop func() (string, error)) (stopped string, err error) {
	dir := r.options.Profile
	if dir == "" {
		return loop()
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	cpu, err := data.Create(filepath.Join(dir, cpuName))
	if err != nil {
		return "", err
	}
	defer cpu.Discard()
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return "", fmt.Errorf("%s: %w", dir, err)
	}
	stopped, err = loop()
	pprof.StopCPUProfile()
	return stopped, cmp.Or(err, cpu.Commit(),
		writeProfile(dir, traceName, r.operators.WriteTrace),
		writeProfile(dir, operatorsName, r.operators.WriteTable),
		writeProfile(dir, memoryName, pprof.WriteHeapProfile))
}

func writeProfile(dir, name string, content func(io.Writer) error) error {
	f, err := data.Create(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	defer f.Discard()
	if err := content(f); err != nil {
		return err
	}
	return f.Commit()
}
