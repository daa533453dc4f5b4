package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"caper/data"
	"caper/model/safetensors"
)

type inspectCommand struct {
	Path     string `arg:"" help:"Tuple file, safetensors file, or model folder." type:"path"`
	Examples int    `help:"Tuples to show." default:"3"`
}

func (c *inspectCommand) Help() string {
	return `Example:
  caper inspect tuples.jsonl
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
	return inspectTuples(ctx, os.Stdout, c.Path, c.Examples)
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

// inspectTuples counts the tuples of a file by source, clause and operator, and
// shows the first few.
func inspectTuples(ctx context.Context, to io.Writer, path string, examples int) error {
	out := bufio.NewWriter(to)
	counts := map[string]map[string]int{"source": {}, "clause": {}, "operator": {}, "root kind": {}}
	total, margins := 0, 0.0
	for t, err := range data.ReadTuples(path) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && total == 0 {
			return fmt.Errorf("not a tuple file, safetensors file or model folder: %w", err)
		} else if err != nil {
			return err
		}
		counts["source"][t.Source]++
		counts["clause"][t.Clause]++
		counts["operator"][t.Operator]++
		counts["root kind"][t.Root.Kind]++
		margins += t.Margin
		if total++; total <= examples {
			showTuple(out, t)
		}
	}
	if total == 0 {
		return fmt.Errorf("%s: no tuples: see what caper annotate said of its rollouts", path)
	}
	fmt.Fprintf(out, "%s, mean margin %.3f\n", counted(total, "tuple"), margins/float64(total))
	for _, name := range []string{"source", "clause", "operator", "root kind"} {
		of := counts[name]
		byCount := slices.SortedFunc(maps.Keys(of), func(a, b string) int { return of[b] - of[a] })
		fmt.Fprintf(out, "by %s:\n", name)
		for _, value := range byCount {
			fmt.Fprintf(out, "  %6d  %s\n", of[value], value)
		}
	}
	return out.Flush()
}

func showTuple(out io.Writer, t data.Tuple) {
	show := func(text string) string {
		quoted, _ := data.Marshal(text) // a string always marshals
		return string(quoted)
	}
	fmt.Fprintf(out, "%s  %s %s  %s\n  prefix    %s\n  chosen    %s\n  rejected  %s   root %s %s\n  clause %d of %d (%s), margin %.3f, %s\n\n",
		t.ID, t.DBID, t.QuestionID, show(t.Question), show(t.Prefix), show(t.Chosen), show(t.Rejected),
		t.Root.Kind, show(t.SQLRejected[t.Root.Start:t.Root.End]), t.ClauseIndex, t.ClauseCount, t.Clause, t.Margin, t.Operator)
}
