package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"caper/model/lora"
	"caper/model/safetensors"
)

// checkpoint is a safetensors file or a folder of them, open.
type checkpoint interface {
	safetensors.Tensors
	io.Closer
}

func openCheckpoint(path string) (checkpoint, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		return safetensors.Open(path)
	case lora.IsFolder(path):
		return safetensors.Open(filepath.Join(path, lora.WeightsName))
	}
	if err := notRunFolder(path); err != nil {
		return nil, err
	}
	return safetensors.OpenFolder(path)
}

// bytesOf is the size of all tensors.
func bytesOf(c checkpoint) (total int) {
	for _, name := range c.Names() {
		if t, err := c.Tensor(name); err == nil { // else whoever reads it tells
			total += t.Bytes()
		}
	}
	return total
}

// tensorReport is a tensor as it is listed.
type tensorReport struct {
	Name  string             `json:"name"`
	DType string             `json:"dtype"`
	Shape []int              `json:"shape"`
	Stats *safetensors.Stats `json:"stats,omitempty"`
}

// tensors lists what is in a checkpoint.
func (c *inspectCommand) tensors(ctx context.Context) error {
	from, err := openCheckpoint(c.Path)
	if err != nil {
		return err
	}
	defer from.Close()
	var all struct {
		Tensors  []tensorReport `json:"tensors"`
		Elements int            `json:"elements"`
		Bytes    int            `json:"bytes"`
	}
	reading, end := newProgress(os.Stderr, work{"reading", "read", true}, bytesOf(from))
	defer end()
	for _, name := range from.Names() {
		if err := ctx.Err(); err != nil {
			return err
		}
		t, err := from.Tensor(name)
		if err != nil {
			return err
		}
		r := tensorReport{Name: name, DType: t.DType.String(), Shape: t.Shape}
		if !c.Shapes {
			stats, err := t.Stats()
			if err != nil {
				return err
			}
			r.Stats = &stats
		}
		all.Tensors = append(all.Tensors, r)
		all.Elements += t.Len()
		all.Bytes += t.Bytes()
		reading(all.Bytes)
	}
	end()
	if c.JSON {
		return printJSON(all)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	if !c.Shapes {
		fmt.Fprintln(w, "tensor\ttype\tshape\tmin\tmax\tmean\tstd\tNaN\tinf")
	}
	for _, r := range all.Tensors {
		fmt.Fprintf(w, "%s\t%s\t%v", r.Name, r.DType, r.Shape)
		if s := r.Stats; s != nil {
			fmt.Fprintf(w, "\t%.4g\t%.4g\t%.3g\t%.3g\t%d\t%d", s.Min, s.Max, s.Mean, s.Deviation, s.NaN, s.Inf)
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err = fmt.Printf("%s, %s, %s\n", counted(len(all.Tensors), "tensor"), counted(all.Elements, "element"), counted(all.Bytes, "byte"))
	return err
}

// compare tells in what two checkpoints differ, and fails when they do.
func (c *inspectCommand) compare(ctx context.Context) error {
	a, err := openCheckpoint(c.Path)
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := openCheckpoint(c.Other)
	if err != nil {
		return err
	}
	defer b.Close()
	progress, end := newProgress(os.Stderr, work{"comparing", "compared", true}, bytesOf(a)+bytesOf(b))
	all, err := safetensors.Compare(ctx, a, b, progress)
	end()
	if err != nil {
		return err
	}
	differing := []safetensors.Difference{}
	for _, d := range all {
		near := d.MaxAbs <= c.Tolerance && (d.Reason == "values" || d.Reason == "dtype") && c.Tolerance > 0
		if d.Reason != "" && !near {
			differing = append(differing, d)
		}
	}
	if c.JSON {
		err = printJSON(map[string]any{"tensors": len(all), "differences": differing})
	} else {
		for _, d := range differing {
			if _, err = fmt.Printf("%s: %s\n", d.Name, d); err != nil {
				break
			}
		}
	}
	if err == nil && len(differing) > 0 {
		err = fmt.Errorf("%s and %s differ in %d of %s", c.Path, c.Other, len(differing), counted(len(all), "tensor"))
	}
	if err == nil {
		fmt.Fprintf(os.Stderr, "%s, none differs\n", counted(len(all), "tensor"))
	}
	return err
}
