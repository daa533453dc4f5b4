package main

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"

	"caper/annotate"
	"caper/data"
)

type trajectoriesCommand struct {
	benchFlags `embed:""`
	In         string `help:"Trajectory file, JSON Lines." required:"" placeholder:"FILE" type:"path"`
	Out        string `help:"Label file to write." required:"" type:"path"`
	JSON       bool   `help:"Print the summary as JSON on stdout."`
}

func (c *trajectoriesCommand) Help() string {
	return `Example:
  caper trajectories --bench spider --split dev --in runs.jsonl --out labels.jsonl

Each turn's query is executed again, whatever the file says of it: correct, mendable (repairing one clause makes it
correct) or lost. A trajectory that ends lost is labelled with the turn from which on it was.`
}

// Validate checks the flags.
func (c *trajectoriesCommand) Validate() error {
	return cmp.Or(c.benchFlags.check(), checkOutput(c.Out, c.In))
}

func (c *trajectoriesCommand) Run(ctx context.Context) error {
	bench, err := c.open()
	if err != nil {
		return err
	}
	defer bench.Close()
	trajectories, err := c.trajectories(bench)
	if err != nil {
		return err
	}
	w, err := data.Create(c.Out)
	if err != nil {
		return err
	}
	defer w.Discard()
	summary, err := annotate.LabelTrajectories(ctx, bench, trajectories, annotate.DefaultOptions(), func(l annotate.TrajectoryLabel) error {
		return w.WriteLine(l.Line())
	})
	if err != nil {
		return err
	}
	if err := w.Commit(); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(summary)
	}
	fmt.Fprintf(os.Stderr, "%s: %d correct, %d mendable, %d lost, %d without a query, in %s\n", counted(summary.Trajectories, "run"),
		summary.Outcomes[annotate.Solved], summary.Outcomes[annotate.Mendable], summary.Outcomes[annotate.Lost],
		summary.Outcomes[annotate.NoQueryYet], c.Out)
	for _, reason := range slices.Sorted(maps.Keys(summary.Reasons)) {
		fmt.Fprintf(os.Stderr, "  not judged, %s  %d\n", reason, summary.Reasons[reason])
	}
	for _, turn := range slices.Sorted(maps.Keys(summary.LostTurns)) {
		fmt.Fprintf(os.Stderr, "  lost from turn %d on  %d\n", turn, summary.LostTurns[turn])
	}
	return nil
}

// trajectories streams the trajectories that the flags keep, after one look at the
// whole file: a broken line, or a database that is not there, ends the command
// before it begins.
func (c *trajectoriesCommand) trajectories(bench *data.Benchmark) (iter.Seq2[data.Trajectory, error], error) {
	if err := c.checkDatabases(bench); err != nil {
		return nil, err
	}
	kept := func(yield func(data.Trajectory, error) bool) {
		for t, err := range data.ReadTrajectories(c.In, bench, c.Split) {
			if (err != nil || c.keeps(t.DBID)) && !yield(t, err) {
				return
			}
		}
	}
	needed := map[string]bool{}
	for t, err := range kept {
		if err != nil {
			return nil, err
		}
		needed[t.DBID] = true
	}
	if len(needed) == 0 {
		return nil, fmt.Errorf("%s: no trajectories: give a file with some, or keep more databases with --db and --not-db", c.In)
	}
	if err := bench.CheckDatabases(slices.Sorted(maps.Keys(needed))); err != nil {
		return nil, fmt.Errorf("%w (--not-db or --db leave a database out)", err)
	}
	return kept, nil
}
