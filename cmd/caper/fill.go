package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"caper/data"
	"caper/data/fill"
)

type fillCommand struct {
	Dir       string `arg:"" help:"Benchmark folder; it is only read." type:"path"`
	Format    string `help:"auto, spider, bird or synsql." default:"auto" enum:"auto,spider,bird,synsql"`
	Split     string `help:"Split whose questions and databases are taken." default:"train"`
	Databases string `help:"Folder of ID/ID.sqlite for databases that DIR lacks; DIR/database_schema_only without it." type:"path" placeholder:"FOLDER"`
	Out       string `help:"Folder to write; must not exist yet or be empty." required:"" type:"path"`
	Rows      int    `help:"Rows of each empty table, before those that queries need besides." default:"40"`
	Seed      uint64 `help:"The same seed gives the same bytes." default:"1"`
	JSON      bool   `help:"Print the counts as JSON on stdout."`
}

func (c *fillCommand) Help() string {
	return `Example:
  caper sample fill spider --out out/filled
  caper annotate --bench out/filled --split train --rollouts out/filled/rollouts/train.jsonl --out train.jsonl

Copies a benchmark whose databases are empty and puts rows into them, so that gold queries return rows. Keys hold.
rollouts/SPLIT.jsonl holds the gold queries as candidates, for annotate to mutate.`
}

// Validate checks the flags.
func (c *fillCommand) Validate() error { return checkNumber("--rows", c.Rows, 1, fill.MaxRows) }

func (c *fillCommand) Run(ctx context.Context) error {
	bench, err := data.OpenBenchmark(c.Dir, c.Format)
	if err != nil {
		return err
	}
	defer bench.Close()
	s, err := fill.Write(ctx, bench, c.Out, fill.Options{Seed: c.Seed, Rows: c.Rows, Split: c.Split, Databases: c.Databases})
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(s)
	}
	fmt.Fprintf(os.Stderr, "%s in %s, %s put in, %d databases left as they are\n",
		counted(s.Databases, "database"), c.Out, counted(s.Rows, "row"), s.Unchanged)
	fmt.Fprintf(os.Stderr, "%s: gold returns rows for %d (%.1f %%), and more than NULL or 0 for %d; it fails for %d\n",
		counted(s.Questions, "question"), s.Returning, 100*float64(s.Returning)/float64(max(s.Questions, 1)), s.Informative, s.GoldErrors)
	for _, refused := range s.Refused {
		fmt.Fprintln(os.Stderr, "  "+refused)
	}
	fmt.Fprintf(os.Stderr, "gold as candidates for annotate: %s\n", filepath.Join(c.Out, "rollouts", c.Split+".jsonl"))
	return nil
}
