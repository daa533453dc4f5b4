package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"caper/data"
	"caper/report"
)

// tuples shows what is in a tuple file.
func (c *inspectCommand) tuples(ctx context.Context) error {
	counts, read := report.NewTuples(c.Examples), 0
	for t, err := range data.ReadTuples(c.Path) {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && read == 0:
			return fmt.Errorf("not a tuple file, safetensors file or model folder: %w", err)
		case err != nil:
			return err
		}
		if read++; c.wants(t) {
			counts.Add(t)
		}
	}
	switch {
	case read == 0:
		return fmt.Errorf("%s: no tuples: see what caper annotate said of its rollouts", c.Path)
	case counts.Tuples == 0:
		return fmt.Errorf("%s: none of %s is of --clause %q and --operator %q: leave one out to see which there are",
			c.Path, counted(read, "tuple"), c.Clause, c.Operator)
	}
	counts.Finish()
	if c.JSON {
		return printJSON(counts)
	}
	return counts.Write(os.Stdout, hasColour(os.Stdout))
}

func (c *inspectCommand) wants(t data.Tuple) bool {
	return (c.Clause == "" || strings.EqualFold(t.Clause, c.Clause)) &&
		(c.Operator == "" || t.Operator == c.Operator || strings.HasPrefix(t.Operator, c.Operator+"."))
}

// hasColour reports whether a file is a terminal whose user has not asked to be
// spared colours (no-color.org).
func hasColour(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
