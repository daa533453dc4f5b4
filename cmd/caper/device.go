package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"caper/cuda"
	"caper/engine"
	"caper/model"
)

// deviceFlag chooses where a model runs.
type deviceFlag struct {
	Device string `help:"auto (a GPU if one can be used here), cpu, cuda, or cuda:N for GPU N of caper doctor." default:"auto" placeholder:"DEVICE"`
}

// modelFlags choose where a model is used.
type modelFlags struct {
	Threads    int `help:"Of a model on the processor; 0: one per core." default:"0"`
	deviceFlag `embed:""`
}

func (f *modelFlags) check() error { return checkThreads("--threads", f.Threads) }

// device returns what the flags choose.
func (f *modelFlags) device() (engine.Device, error) {
	if d, err := f.deviceFlag.open(); d != nil || err != nil {
		return d, err
	}
	return engine.CPU(f.Threads), nil
}

// load loads a model for inference.
func (f *modelFlags) load(dir string) (*model.Model, error) {
	if err := notRunFolder(dir); err != nil {
		return nil, err
	}
	device, err := f.device()
	if err != nil {
		return nil, err
	}
	return model.Load(dir, device, model.Frozen)
}

// scorer loads a reward model for scoring.
func (f *modelFlags) scorer(dir string) (*model.Scorer, error) {
	m, err := f.load(dir)
	if err != nil {
		return nil, err
	}
	scorer, err := model.NewScorer(m, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return scorer, nil
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
