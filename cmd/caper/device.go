package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"caper/cuda"
	"caper/engine"
)

// deviceFlag chooses where a model runs.
type deviceFlag struct {
	Device string `help:"auto (a GPU if one can be used here), cpu, cuda, or cuda:N for GPU N of caper doctor." default:"auto" placeholder:"DEVICE"`
}

// open returns the GPU that the flag chooses, or nil for the processor.
func (f deviceFlag) open() (engine.Device, error) {
	kind, number, numbered := strings.Cut(f.Device, ":")
	ordinal := 0
	if numbered {
		var err error
		if ordinal, err = strconv.Atoi(number); err != nil || ordinal < 0 {
			return nil, f.mistake()
		}
	}
	switch {
	case f.Device == "cpu":
		return nil, nil
	case f.Device == "auto":
		return f.auto(), nil
	case kind == "cuda":
		gpu, err := engine.CUDA(ordinal)
		if err != nil {
			return nil, fmt.Errorf("--device %s: %w", f.Device, err)
		}
		return gpu, nil
	}
	return nil, f.mistake()
}

func (f deviceFlag) mistake() error {
	return usageError{fmt.Errorf("--device %s: want auto, cpu, cuda or cuda:N", f.Device)}
}

// auto returns the first GPU. Where there is one that cannot be used, it says so.
func (f deviceFlag) auto() engine.Device {
	if list, err := cuda.Devices(); err != nil || len(list) == 0 {
		return nil
	}
	if !cuda.Examine().Ready() {
		fmt.Fprintln(os.Stderr, "there is a GPU, but it cannot be used (see caper doctor): running on the processor")
		return nil
	}
	gpu, err := engine.CUDA(0)
	if err != nil {
		fmt.Fprintf(os.Stderr, "running on the processor: %v\n", err)
		return nil
	}
	return gpu
}
