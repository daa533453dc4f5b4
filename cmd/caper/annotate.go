package main

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"log/slog"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"caper/annotate"
	"caper/data"
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
	JSON             bool   `help:"Print the summary as JSON on stdout."`
}

func (c *annotateCommand) Help() string {
	return `Example:
  caper annotate --bench spider --split dev --rollouts predictions.jsonl --out tuples.jsonl

The tuple file loads in TRL's reward trainer as it is (prompt, chosen, rejected, margin).`
}

// Validate checks the flags.
func (c *annotateCommand) Validate() error {
	_, _, err := parseShard(c.Shard)
	return cmp.Or(c.benchFlags.check(), checkNumber("--inject", c.Inject, 0, 1000), err)
}

func (c *annotateCommand) Run(ctx context.Context) error {
	bench, err := c.open()
	if err != nil {
		return err
	}
	defer bench.Close()
	rollouts, err := c.candidates(ctx, bench, c.Rollouts)
	if err != nil {
		return err
	}
	summary, err := annotateTo(ctx, bench, c.ofShard(rollouts), c.options(), c.Split, c.Out)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(summary)
	}
	fmt.Fprintf(os.Stderr, "%s (%d correct, %d failing): %s from %d mutated and %d repaired queries in %s\n",
		counted(summary.Rollouts, "rollout"), summary.Correct, summary.Failing,
		counted(summary.Tuples, "tuple"), summary.Injected, summary.Repaired, c.Out)
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

// ofShard keeps the rollouts of the questions in the shard.
func (c *annotateCommand) ofShard(rollouts iter.Seq2[data.Rollout, error]) iter.Seq2[data.Rollout, error] {
	shard, shards, _ := parseShard(c.Shard) // checked by Validate
	return func(yield func(data.Rollout, error) bool) {
		for r, err := range rollouts {
			if (err != nil || shardOf(r, shards) == shard) && !yield(r, err) {
				return
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
	i, n, _ := strings.Cut(text, "/")
	shard, err = strconv.Atoi(i)
	shards, errN := strconv.Atoi(n)
	if err != nil || errN != nil || shard < 0 || shard >= shards || shards > math.MaxInt32 {
		return 0, 0, fmt.Errorf("--shard %s: want i/n with 0 <= i < n", text)
	}
	return shard, shards, nil
}
