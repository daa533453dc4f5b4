package main

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"text/tabwriter"

	"caper/cuda"
	"caper/engine"
)

type doctorCommand struct {
	JSON bool `help:"Print JSON on stdout."`
}

func (c *doctorCommand) Help() string {
	return `Example:
  caper doctor

Tells what of this machine caper can use: processor, GPUs, NVIDIA's libraries with their paths and versions, and for
what is missing how to get it. Missing parts are no failure: everything but the GPU backend works without them.`
}

func (c *doctorCommand) Run() error {
	report := struct {
		CPU     string      `json:"cpu"`
		Threads int         `json:"threads"`
		CUDA    cuda.Survey `json:"cuda"`
		Ready   bool        `json:"gpu_ready"`
	}{engine.CPU(1).Name(), runtime.NumCPU(), cuda.Examine(), false}
	report.Ready = report.CUDA.Ready()
	if c.JSON {
		return printJSON(report)
	}
	w := tabwriter.NewWriter(os.Stderr, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "processor\t%s\t%s\n", report.CPU, counted(report.Threads, "thread"))
	printComponent(w, report.CUDA.Driver)
	for _, g := range report.CUDA.GPUs {
		fmt.Fprintf(w, "GPU %d\t%s\tcompute capability %d.%d, %v, %d multiprocessors\n", g.Ordinal, g.Name, g.Major, g.Minor, g.Memory, g.SMs)
		if g.Problem != "" {
			fmt.Fprintf(w, "\t\t%s\n", g.Problem)
		}
	}
	for _, l := range report.CUDA.Libraries {
		printComponent(w, l)
	}
	fmt.Fprintf(w, "kernels\tcompiled ones kept in\t%s\n", cmp.Or(report.CUDA.Cache, "no folder: name one in CAPER_CACHE"))
	if report.CUDA.Cubins != "" {
		fmt.Fprintf(w, "\tcompiled before in\t%s\n", report.CUDA.Cubins)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if report.Ready {
		fmt.Fprintln(os.Stderr, "Training can run on a GPU here.")
	} else {
		fmt.Fprintln(os.Stderr, "Training runs on the processor here; for a GPU, see to what is missing above.")
	}
	return nil
}

func printComponent(w *tabwriter.Writer, c cuda.Component) {
	if c.Problem == "" {
		fmt.Fprintf(w, "%s\t%s\t%s\n", c.Name, cmp.Or(c.Version, "found"), c.Path)
		return
	}
	fmt.Fprintf(w, "%s\t%s\tfor %s: %s\n", c.Name, cmp.Or(c.Version, "missing"), c.Needed, c.Problem)
}
