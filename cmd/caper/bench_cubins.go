package main

import (
	"bufio"
	"fmt"
	"os"

	"caper/benchmarks/kernels"
	"caper/cuda"
)

type benchCubinsCommand struct {
	Out    string   `help:"Folder to write the compiled kernels to: named cubins beside the program, or in CAPER_CUBINS, it serves in place of NVRTC." type:"path" placeholder:"DIR"`
	Arch   []string `help:"Architectures; default: sm_80, sm_90a, sm_100a and sm_120a." placeholder:"ARCH,..."`
	Model  string   `help:"Published size whose step is listed." default:"9B"`
	Tokens int      `help:"Tokens of that step." default:"8192"`
}

func (c *benchCubinsCommand) Help() string {
	return `Example:
  caper bench cubins > benchmarks/results/kernels.md
  caper bench cubins --out cubins --arch sm_90a

Compiles every kernel by NVRTC, which needs no card, and prints as Markdown what each takes of one, and what the operators
of a training step have to compute and move at least.`
}

// Validate checks the flags.
func (c *benchCubinsCommand) Validate() error { return checkNumber("--tokens", c.Tokens, 1, 1<<24) }

func (c *benchCubinsCommand) Run() error {
	archs := c.Arch
	if archs == nil {
		archs = kernels.Archs
	}
	cubins, err := kernels.Cubins(c.Out, archs)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	version := ""
	for _, l := range cuda.Examine().Libraries {
		if l.Name == "NVRTC" {
			version = l.Version
		}
	}
	fmt.Fprintf(out, "# Kernels\n\n`caper bench cubins`, NVRTC %s. Dynamic shared memory, which launches choose, comes on top. Nothing spills and no\n"+
		"wgmma is serialised: such kernels do not compile.\n\n", version)
	kernels.WriteResources(out, cubins)
	fmt.Fprintf(out, "\n# A training step of %s, %d tokens, on an H200\n\nThe least time, by its data sheet: 989 TFLOP/s dense bf16, 4.8 TB/s.\n\n", c.Model, c.Tokens)
	if err := kernels.WriteRoofline(out, c.Model, c.Tokens); err != nil {
		return err
	}
	return out.Flush()
}
