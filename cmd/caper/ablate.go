package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"caper/data"
	"caper/report"
	"caper/solve"
	"caper/train/ablation"
	"caper/train/run"
	"caper/train/settings"
)

type ablateCommand struct {
	Matrix       string         `help:"TOML file, or one of the binary's: prm (what each part of the Clause-PRM is worth), grpo (policies by sparse, token and clause rewards) or advantage (how rewards become advantages)." required:"" placeholder:"FILE"`
	Bench        string         `help:"Benchmark folder." required:"" type:"path"`
	Format       string         `help:"auto, spider, bird or synsql." default:"auto" enum:"auto,spider,bird,synsql"`
	Split        string         `help:"Split of the training candidates." default:"train"`
	Rollouts     files          `help:"Candidates that reward models train on." placeholder:"FILE..."`
	TestSplit    string         `help:"Split of the test candidates; default: --split." placeholder:"SPLIT"`
	TestRollouts files          `help:"Candidates to test on; default: --rollouts." placeholder:"FILE..."`
	TestDB       []string       `help:"Databases that are kept for the test." name:"test-db" placeholder:"ID,..."`
	Timeout      *time.Duration `help:"Time limit of one query; default: 5s." placeholder:"DURATION"`
	Out          string         `help:"Folder of the study; what is done there is kept." required:"" type:"path"`
	Threads      int            `help:"0: one per core." default:"0"`
	JSON         bool           `help:"Print the comparisons as JSON on stdout."`
	Overrides    []string       `arg:"" optional:"" help:"section.key=value, over the matrix, for all variants."`
	deviceFlag   `embed:""`
}

func (c *ablateCommand) Help() string {
	return `Example:
  caper ablate --matrix prm --bench out/demo/bench --rollouts out/demo/bench/rollouts/train.jsonl \
      --test-split test --test-rollouts out/demo/bench/rollouts/test.jsonl --out out/ablation
  caper ablate --matrix prm --bench spider --split dev --rollouts predictions.jsonl --test-db car_1,world_1 --out out/spider
  caper ablate --matrix grpo --bench out/demo/bench --out out/rewards model.path=runs/sft/model reward.model=runs/prm/model

Every variant is trained with every seed and compared with the first variant, seed by seed: reward models on the same failures, policies by their greedy answers to
the same questions and by the vote of 8. Policies are compared with the one that they start from, too. The study's folder holds table.md,
report.html and every run. The same command goes on where it was stopped, and does only what is new when variants or seeds were added.`
}

// Validate checks the flags.
func (c *ablateCommand) Validate() error {
	if c.Timeout != nil {
		if err := checkTimeout(*c.Timeout); err != nil {
			return err
		}
	}
	return cmp.Or(checkThreads("--threads", c.Threads), checkRereadable("--rollouts", c.Rollouts...), checkRereadable("--test-rollouts", c.TestRollouts...))
}

// checkKind checks that the flags are those of the matrix' kind.
func (c *ablateCommand) checkKind(kind ablation.Kind) error {
	given := len(c.Rollouts) > 0 || len(c.TestRollouts) > 0 || len(c.TestDB) > 0 || c.TestSplit != "" || c.Timeout != nil
	switch {
	case kind == ablation.Policies && given:
		return errors.New("--rollouts, --test-rollouts, --test-split, --test-db and --timeout are for reward models: policies answer the questions of the matrix' splits")
	case kind == ablation.RewardModels && len(c.Rollouts) == 0:
		return errors.New("--rollouts is missing: name the candidates that reward models train on")
	case kind == ablation.RewardModels && len(c.TestDB) == 0 && cmp.Or(c.TestSplit, c.Split) == c.Split:
		return errors.New("--test-split or --test-db: the test needs databases that training does not see")
	}
	return nil
}

func (c *ablateCommand) Run(ctx context.Context) error {
	matrix, err := ablation.LoadMatrix(c.Matrix)
	if err != nil {
		return usageError{err}
	}
	if err := c.checkKind(matrix.Kind); err != nil {
		return usageError{err}
	}
	matrix.Overrides = append(matrix.Overrides, c.Overrides...)
	device, err := c.open()
	if err != nil {
		return err
	}
	bench, err := data.OpenBenchmark(c.Bench, c.Format)
	if err != nil {
		return err
	}
	defer bench.Close()
	if c.Timeout != nil {
		bench.Limits.Timeout = *c.Timeout
	}
	progress, log, done := run.NewProgress(os.Stderr)
	defer done()
	study := ablation.Study{
		Matrix: matrix, Dir: c.Out, Bench: bench, Device: device, Threads: c.Threads, Log: log, Progress: progress, Extract: solve.ExtractSQL,
		Train: c.candidates(bench, c.Split, c.Rollouts, false),
		Test:  c.candidates(bench, cmp.Or(c.TestSplit, c.Split), c.testRollouts(), true),
	}
	all, err := study.Run(ctx)
	if errors.As(err, new(*settings.Error)) {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	return c.tell(matrix, all)
}

func (c *ablateCommand) savesWhenInterrupted() {}

func (c *ablateCommand) testRollouts() []string {
	if len(c.TestRollouts) > 0 {
		return c.TestRollouts
	}
	return c.Rollouts
}

// candidates are those of one side. Where databases are named for the test, they are
// its only ones, and training sees all but them.
func (c *ablateCommand) candidates(bench *data.Benchmark, split string, paths []string, test bool) ablation.Candidates {
	var keep func(data.Rollout) bool
	if len(c.TestDB) > 0 {
		keep = func(r data.Rollout) bool { return slices.Contains(c.TestDB, r.DBID) == test }
	}
	return ablation.Candidates{Split: split, Rollouts: readRollouts(paths, bench, split, keep)}
}

// tell writes the table and the page.
func (c *ablateCommand) tell(m ablation.Matrix, all []ablation.Comparison) error {
	table, err := data.Create(filepath.Join(c.Out, "table.md"))
	if err != nil {
		return err
	}
	defer table.Discard()
	if err := ablation.WriteMarkdown(table, all); err != nil {
		return err
	}
	if err := table.Commit(); err != nil {
		return err
	}
	page := report.StudyPage(filepath.Base(c.Out), m, all)
	page.Date = time.Now()
	path := filepath.Join(c.Out, "report.html")
	if err := report.Write(path, page); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(all)
	}
	if err := ablation.WriteText(os.Stderr, all); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "table: %s\nreport: %s\n", filepath.Join(c.Out, "table.md"), path)
	return nil
}
