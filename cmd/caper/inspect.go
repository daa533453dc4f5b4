package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"text/tabwriter"

	"caper/model/safetensors"
)

type inspectCommand struct {
	Path     string `arg:"" help:"Tuple file, safetensors file, or model folder." type:"path"`
	Examples int    `help:"Tuples to show, drawn from all." default:"3"`
	Clause   string `help:"Only tuples of this kind of clause, such as WHERE." placeholder:"KIND"`
	Operator string `help:"Only tuples of this operator, such as where.comparison, or of all that begin so (where)." placeholder:"NAME"`
	JSON     bool   `help:"Print the statistics of tuples as JSON on stdout."`
}

func (c *inspectCommand) Help() string {
	return `Example:
  caper inspect tuples.parquet --operator where --examples 10
  caper inspect runs/tiny/model`
}

// Validate checks the flags.
func (c *inspectCommand) Validate() error {
	return checkNumber("--examples", c.Examples, 0, math.MaxInt32)
}

func (c *inspectCommand) Run(ctx context.Context) error {
	info, err := os.Stat(c.Path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		if err := notRunFolder(c.Path); err != nil {
			return err
		}
		folder, err := safetensors.OpenFolder(c.Path)
		if err != nil {
			return err
		}
		defer folder.Close()
		return listTensors(folder)
	case filepath.Ext(c.Path) == ".safetensors":
		file, err := safetensors.Open(c.Path)
		if err != nil {
			return err
		}
		defer file.Close()
		return listTensors(file)
	}
	return c.tuples(ctx)
}

// tensors is a safetensors file or a folder of them.
type tensors interface {
	Names() []string
	Tensor(name string) (safetensors.Tensor, error)
}

func listTensors(from tensors) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	elements := 0
	for _, name := range from.Names() {
		t, err := from.Tensor(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t%s\t%v\n", name, t.DType, t.Shape)
		elements += t.Len()
	}
	fmt.Fprintf(w, "%s\t\t%s\n", counted(len(from.Names()), "tensor"), counted(elements, "element"))
	return w.Flush()
}
