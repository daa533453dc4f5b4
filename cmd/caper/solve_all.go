package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

type solveAllCommand struct {
	benchFlags     `embed:""`
	generatorFlags `embed:""`
	repairFlags    `embed:""`
	selectFlags    `embed:""`
	modelFlags     `embed:""`
	serverFlags    `embed:""`
	Candidates     files  `help:"Files with more candidates." placeholder:"FILE..."`
	Out            string `help:"Folder for candidates.jsonl, repaired.jsonl and chosen.jsonl." required:"" type:"path"`
	Resume         bool   `help:"Go on where a stopped run to the same folder left off: stages that are done are not run again."`
}

func (c *solveAllCommand) Help() string {
	return `Example:
  caper solve all --bench spider --split dev --candidates a.jsonl b.jsonl --out runs/solved
  caper solve --bench spider --split dev --server http://localhost:8000/v1 --server-model qwen \
    --generator server:style=ddl,n=8,temperature=0.7 --corrector server --judge server --max-calls 50000 --out runs/solved

The same as caper solve candidates, repair and select, one after the other.`
}

// Validate checks the flags.
func (c *solveAllCommand) Validate() error {
	var err error
	if len(c.Generator) == 0 && len(c.Candidates) == 0 {
		err = errors.New("--generator is missing: say who writes candidates, or give --candidates")
	}
	return cmp.Or(err, c.benchFlags.check(), c.generatorFlags.check(c.Split, &c.serverFlags), c.repairFlags.check(&c.serverFlags),
		c.selectFlags.check(&c.serverFlags), c.modelFlags.check(), c.serverFlags.check())
}

func (c *solveAllCommand) Run(ctx context.Context) error {
	if err := os.MkdirAll(c.Out, 0o777); err != nil {
		return err
	}
	at := func(name string) string { return filepath.Join(c.Out, name) }
	if !c.Resume {
		for _, name := range stageFiles {
			if _, err := os.Stat(at(name)); err == nil {
				return fmt.Errorf("%s is there already: name another folder, or go on with --resume", at(name))
			}
		}
	}
	stage := func(i int) solveFlags { // reads what the one before it wrote
		return solveFlags{poolFlags{c.benchFlags, files{at(stageFiles[i-1])}, at(stageFiles[i])}, c.Resume}
	}
	stages := []interface{ Run(context.Context) error }{
		&solveCandidatesCommand{c.benchFlags, c.generatorFlags, c.modelFlags, c.serverFlags, c.Candidates, at(stageFiles[0]), c.Resume},
		&solveRepairCommand{stage(1), c.repairFlags, c.serverFlags},
		&solveSelectCommand{solveFlags: stage(2), selectFlags: c.selectFlags, modelFlags: c.modelFlags, serverFlags: c.serverFlags},
	}
	for i, stage := range stages {
		if _, err := os.Stat(at(stageFiles[i])); err == nil {
			fmt.Fprintf(os.Stderr, "%s is there from an earlier run\n", at(stageFiles[i]))
			continue
		}
		if err := stage.Run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// stageFiles are what the stages write.
var stageFiles = []string{"candidates.jsonl", "repaired.jsonl", "chosen.jsonl"}
