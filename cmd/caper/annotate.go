package main

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"caper/annotate"
	"caper/data"
	"caper/report"
	"caper/sqlexec"
)

type annotateCommand struct {
	benchFlags `embed:""`
	Rollouts   files  `help:"Candidate files: ours, official Spider or BIRD predictions." required:"" placeholder:"FILE..."`
	Out        string `help:"Tuple file to write." required:"" type:"path"`

	Granularity      string `help:"top (clauses of the outermost statement), nested (each SELECT block has its own) or predicate (items, joins, conjuncts and keys too)." default:"nested" enum:"top,nested,predicate"`
	Inject           int    `help:"Mutants of a correct rollout, at most." default:"4"`
	NoInjection      bool   `help:"No mutants of correct rollouts."`
	NoCounterfactual bool   `help:"No repairs of failing rollouts."`
	NoPropagation    bool   `help:"Ablation: only the clause that holds the root cause, every margin alpha."`
	DependencyEdges  bool   `help:"Carry penalties over dependencies between clauses too."`
	Seed             uint64 `help:"Keys the draw of mutants, together with each rollout's content." default:"1"`
	Shard            string `help:"i/n: only the rollouts of questions in shard i, counted from 0, of n." placeholder:"i/n"`

	Resume    bool   `help:"Go on where a stopped run to the same file left off."`
	Cache     string `help:"Folder that keeps the results of queries for later runs, and for other processes." placeholder:"DIR" type:"path"`
	CacheSize size   `help:"Most bytes in that folder: a number, or with KiB, MiB, GiB." default:"1GiB"`
	Summary   string `help:"Write the summary to a file as JSON." placeholder:"FILE" type:"path"`
	JSON      bool   `help:"Print the summary as JSON on stdout."`
}

func (c *annotateCommand) Help() string {
	return `Example:
  caper annotate --bench spider --split dev --rollouts predictions.jsonl --out tuples.jsonl
  caper annotate ... --shard 2/8 --resume --cache /tmp/results --out part-2.parquet

A name that ends in .parquet is written as Parquet, any other as JSON Lines. The tuple file loads in TRL's reward trainer as it is (prompt, chosen, rejected, margin).`
}

// Validate checks the flags.
func (c *annotateCommand) Validate() error {
	_, err := annotate.ParseShard(c.Shard)
	if err != nil {
		err = fmt.Errorf("--%w", err)
	}
	return cmp.Or(c.benchFlags.check(), checkNumber("--inject", c.Inject, 0, 1000), err,
		checkRereadable("--rollouts", c.Rollouts...), checkOutput(c.Out, c.Rollouts...))
}

func (c *annotateCommand) Run(ctx context.Context) error {
	defer overlapWaits()()
	bench, err := c.open()
	if err != nil {
		return err
	}
	defer bench.Close()
	rollouts, err := c.candidates(ctx, bench, c.Rollouts)
	if err != nil {
		return err
	}
	var told *data.File // the summary; that it can be written is known before the work
	if c.Summary != "" {
		if told, err = data.Create(c.Summary); err != nil {
			return err
		}
		defer told.Discard()
	}
	out := annotate.Output{Path: c.Out, Resume: c.Resume}
	if c.Cache != "" {
		if out.Results, err = sqlexec.OpenDiskCache(c.Cache, int64(c.CacheSize)); err != nil {
			return err
		}
		defer out.Results.Close()
	}
	shard, _ := annotate.ParseShard(c.Shard) // checked by Validate
	summary, err := annotateTo(ctx, bench, shard.Of(rollouts), c.options(), c.Split, out)
	if err != nil {
		return err
	}
	return c.tell(summary, told)
}

// overlapWaits lets more threads run than there are cores, until the function it
// returns is called: one that waits for a worker process counts as running.
func overlapWaits() (restore func()) {
	if os.Getenv("GOMAXPROCS") != "" {
		return func() {}
	}
	cores := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(cores + (cores+1)/2)
	return func() { runtime.GOMAXPROCS(cores) }
}

// collectRarely suits the garbage collector to annotation, which keeps little of the
// much that it makes, until the function it returns is called: a training keeps more
// than the limit set here. Whoever sets GOGC knows better.
func collectRarely() (restore func()) {
	const percent, most = 800, 800 << 20
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	oldPercent, oldLimit := debug.SetGCPercent(percent), debug.SetMemoryLimit(most)
	return func() {
		debug.SetGCPercent(oldPercent)
		debug.SetMemoryLimit(oldLimit)
	}
}

// tell writes the summary to wherever it is wanted; file may be nil.
func (c *annotateCommand) tell(s annotate.Summary, file *data.File) error {
	if file != nil {
		if err := encodeJSON(file, s); err != nil {
			return err
		}
		if err := file.Commit(); err != nil {
			return err
		}
	}
	if c.JSON {
		return printJSON(s)
	}
	report.WriteSummary(os.Stderr, s) // the tuples are there, whether or not somebody reads it
	return nil
}

func (c *annotateCommand) options() annotate.Options {
	o := annotate.DefaultOptions()
	o.Granularity = annotate.Granularity(c.Granularity)
	o.Inject = c.Inject
	o.Injection, o.Counterfactual = !c.NoInjection, !c.NoCounterfactual
	o.Propagation = !c.NoPropagation
	o.DependencyEdges = c.DependencyEdges
	o.Seed = c.Seed
	if c.Workers > 0 {
		o.Workers = c.Workers
	}
	return o
}

// annotateTo annotates rollouts into a tuple file, with a log line every few
// seconds.
func annotateTo(ctx context.Context, bench *data.Benchmark, rollouts iter.Seq2[data.Rollout, error], o annotate.Options, split string,
	out annotate.Output) (annotate.Summary, error) {
	defer collectRarely()()
	o.Split = func(string) string { return split }
	out.Settings = map[string]string{"split": split}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	began, last, before := time.Now(), time.Now(), -1
	out.Progress = func(s *annotate.Summary) {
		if before < 0 {
			before = s.Rollouts - 1 // done by the run that this one goes on with
		}
		if time.Since(last) > 5*time.Second {
			last = time.Now()
			log.Info("annotating", "rollouts", s.Rollouts, "tuples", s.Tuples,
				"rollouts_per_second", int(float64(s.Rollouts-before)/time.Since(began).Seconds()))
		}
	}
	summary, err := annotate.Write(ctx, bench, rollouts, o, out)
	if out.Results != nil {
		if kept := out.Results.Stats(); kept.Err != nil {
			log.Warn("results are no longer kept", "reason", kept.Err)
		}
	}
	return summary, err
}
