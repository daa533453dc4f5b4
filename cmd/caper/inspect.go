package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
)

type inspectCommand struct {
	Path      string  `arg:"" help:"Tuple file, safetensors file, or model folder." type:"path"`
	Other     string  `arg:"" optional:"" help:"A second checkpoint, to compare with." type:"path"`
	Shapes    bool    `help:"List tensors without reading their elements."`
	Tolerance float64 `help:"Largest difference of two elements that counts as none; above 0, types may differ, too." default:"0"`
	Examples  int     `help:"Tuples to show, drawn from all." default:"3"`
	Clause    string  `help:"Only tuples of this kind of clause, such as WHERE." placeholder:"KIND"`
	Operator  string  `help:"Only tuples of this operator, such as where.comparison, or of all that begin so (where)." placeholder:"NAME"`
	JSON      bool    `help:"Print everything as JSON on stdout."`
}

func (c *inspectCommand) Help() string {
	return `Example:
  caper inspect tuples.parquet --operator where --examples 10
  caper inspect runs/tiny/model
  caper inspect runs/tiny/model runs/other/model --tolerance 1e-6

Of tensors it tells type, shape, smallest and largest element, mean, standard deviation, and how many are NaN or infinite.
Two checkpoints are compared tensor by tensor; the exit status is 1 where they differ.`
}

// Validate checks the flags.
func (c *inspectCommand) Validate() error {
	if !(c.Tolerance >= 0) {
		return fmt.Errorf("--tolerance %g: must be 0 or more", c.Tolerance)
	}
	return checkNumber("--examples", c.Examples, 0, math.MaxInt32)
}

func (c *inspectCommand) Run(ctx context.Context) error {
	info, err := os.Stat(c.Path)
	switch {
	case err != nil:
		return err
	case c.Other != "":
		return c.compare(ctx)
	case info.IsDir() || filepath.Ext(c.Path) == ".safetensors":
		return c.tensors(ctx)
	}
	return c.tuples(ctx)
}
