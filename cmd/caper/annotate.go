package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"caper/annotate"
	"caper/data"
)

type annotateCommand struct {
	Bench    string `help:"Benchmark folder." required:"" type:"path"`
	Format   string `help:"auto, spider, bird or synsql." default:"auto" enum:"auto,spider,bird,synsql"`
	Split    string `help:"Split of the benchmark." default:"dev"`
	Rollouts files  `help:"Candidate files: ours, official Spider or BIRD predictions." required:"" placeholder:"FILE..."`
	Out      string `help:"Tuple file to write." required:"" type:"path"`

	Granularity      string        `help:"top (clauses of the outermost statement) or nested (each SELECT block has its own)." default:"nested" enum:"top,nested"`
	Inject           int           `help:"Mutants of a correct rollout, at most." default:"4"`
	NoInjection      bool          `help:"No mutants of correct rollouts."`
	NoCounterfactual bool          `help:"No repairs of failing rollouts."`
	NoPropagation    bool          `help:"Ablation: only the clause that holds the root cause, every margin alpha."`
	DependencyEdges  bool          `help:"Carry penalties over dependencies between clauses too."`
	Seed             uint64        `help:"Keys the draw of mutants, together with each rollout's content." default:"1"`
	DB               []string      `help:"Only these databases." placeholder:"ID,..."`
	NotDB            []string      `help:"All databases but these." name:"not-db" placeholder:"ID,..."`
	Timeout          time.Duration `help:"Time limit of one query." default:"5s"`
	Workers          int           `help:"0: one per core." default:"0"`
	Shard            string        `help:"i/n: only the rollouts of questions in shard i, counted from 0, of n." placeholder:"i/n"`
	JSON             bool          `help:"Print the summary as JSON on stdout."`
}

func (c *annotateCommand) Help() string {
	return `Example:
  caper annotate --bench spider --split dev --rollouts predictions.jsonl --out tuples.jsonl

The tuple file loads in TRL's reward trainer as it is (prompt, chosen, rejected, margin).`
}

func (c *annotateCommand) Run(ctx context.Context) error {
	o := c.options()
	shard, shards, err := parseShard(c.Shard)
	if err != nil {
		return usageError{err}
	}
	if err := checkTimeout(c.Timeout); err != nil {
		return err
	}
	bench, err := data.OpenBenchmark(c.Bench, c.Format)
	if err != nil {
		return err
	}
	defer bench.Close()
	bench.Limits.Timeout = c.Timeout
	rollouts := readRollouts(c.Rollouts, bench, c.Split, func(r data.Rollout) bool {
		return shardOf(r, shards) == shard && (len(c.DB) == 0 || slices.Contains(c.DB, r.DBID)) && !slices.Contains(c.NotDB, r.DBID)
	})
	summary, err := annotateTo(ctx, bench, rollouts, o, c.Split, c.Out)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(summary)
	}
	fmt.Fprintf(os.Stderr, "%d rollouts (%d correct, %d failing): %d tuples from %d mutated and %d repaired queries in %s\n",
		summary.Rollouts, summary.Correct, summary.Failing, summary.Tuples, summary.Injected, summary.Repaired, c.Out)
	for _, reason := range slices.Sorted(maps.Keys(summary.Reasons)) {
		fmt.Fprintf(os.Stderr, "  %-14s %d\n", reason, summary.Reasons[reason])
	}
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

// annotateTo annotates rollouts into a tuple file, whole or not at all, with a log
// line every few seconds.
func annotateTo(ctx context.Context, bench *data.Benchmark, rollouts iter.Seq2[data.Rollout, error], o annotate.Options, split, out string) (annotate.Summary, error) {
	o.Split = func(string) string { return split }
	w, err := data.Create(out)
	if err != nil {
		return annotate.Summary{}, err
	}
	defer w.Discard()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	tuples, last := 0, time.Now()
	summary, err := annotate.Run(ctx, bench, rollouts, o, func(t data.Tuple) error {
		if tuples++; time.Since(last) > 5*time.Second {
			last = time.Now()
			log.Info("annotating", "tuples", tuples, "question", t.QuestionID)
		}
		return w.WriteLine(t)
	})
	if err != nil {
		return summary, err
	}
	return summary, w.Commit()
}

// readRollouts chains the candidate files and keeps the candidates that keep names;
// nil keeps all.
func readRollouts(paths []string, bench *data.Benchmark, split string, keep func(data.Rollout) bool) iter.Seq2[data.Rollout, error] {
	return func(yield func(data.Rollout, error) bool) {
		for _, path := range paths {
			for r, err := range data.ReadRollouts(path, bench, split) {
				if err == nil && keep != nil && !keep(r) {
					continue
				}
				if !yield(r, err) || err != nil {
					return
				}
			}
		}
	}
}

// shardOf spreads questions over shards by their content, so that what a shard
// holds does not depend on the order of the file.
func shardOf(r data.Rollout, shards int) int {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s\x00%s\x00%s", r.Dataset, r.DBID, r.QuestionID)
	return int(h.Sum32() % uint32(shards))
}

func parseShard(text string) (shard, shards int, err error) {
	if text == "" {
		return 0, 1, nil
	}
	if n, err := fmt.Sscanf(text, "%d/%d", &shard, &shards); err != nil || n != 2 || shard < 0 || shard >= shards {
		return 0, 0, fmt.Errorf("--shard %s: want i/n with 0 <= i < n", text)
	}
	return shard, shards, nil
}
