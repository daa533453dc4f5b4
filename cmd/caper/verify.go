package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"

	"caper/data"
	"caper/eval"
)

type verifyCommand struct {
	benchFlags `embed:""`
	Candidates files  `help:"Candidate files, several samples a question." required:"" placeholder:"FILE..."`
	Model      string `help:"Reward model folder; without it only the vote is measured." type:"path"`
	Rule       string `help:"spider, test-suite, bird or strict; default: the benchmark's own." placeholder:"RULE"`
	Aggregate  string `help:"How a query's score is made of its clauses': mean, min, last or sum." default:"mean" enum:"mean,min,last,sum"`
	modelFlags `embed:""`
	JSON       bool `help:"Print the result as JSON on stdout."`
}

func (c *verifyCommand) Help() string {
	return `Example:
  caper verify --bench spider --split dev --candidates samples.jsonl --model runs/prm/model --json

Of each question's candidates, in the order of their lines, one is chosen: the first (ex_at_1), by majority of results (mv), by the Clause-PRM's score (prm),
by both (prm_vote). oracle is right where any candidate is. Each is compared with the majority vote by McNemar's exact test.`
}

// Validate checks the flags.
func (c *verifyCommand) Validate() error {
	if c.Rule != "" {
		if _, err := eval.ParseRule(c.Rule); err != nil {
			return fmt.Errorf("--%w", err)
		}
	}
	return cmp.Or(c.benchFlags.check(), c.modelFlags.check(), checkRereadable("--candidates", c.Candidates...))
}

func (c *verifyCommand) Run(ctx context.Context) error {
	defer overlapWaits()()
	bench, err := c.open()
	if err != nil {
		return err
	}
	defer bench.Close()
	pools, err := c.pools(ctx, bench)
	if err != nil {
		return err
	}
	var scorer eval.Scorer
	if c.Model != "" {
		if scorer, err = c.scorer(c.Model); err != nil {
			return err
		}
	}
	o := eval.VerificationOptions{Aggregate: eval.Aggregate(c.Aggregate), Resamples: 1000, Seed: 1}
	o.Rule, o.Workers = eval.Rule(cmp.Or(c.Rule, string(bench.Rule()))), cmp.Or(c.Workers, runtime.NumCPU())
	o.Schemas = eval.NewSchemas(bench)
	v, err := eval.Verify(ctx, bench, pools, scorer, o)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(v)
	}
	return c.tell(v)
}

// pools gathers the candidates of each question, in the order of their first lines.
func (c *verifyCommand) pools(ctx context.Context, bench *data.Benchmark) ([]eval.Pool, error) {
	all, err := c.candidates(ctx, bench, c.Candidates)
	if err != nil {
		return nil, err
	}
	var pools []eval.Pool
	index := map[string]int{}
	for r, err := range all {
		if err != nil {
			return nil, err
		}
		key := r.DBID + "\x00" + r.QuestionID.String()
		i, known := index[key]
		if !known {
			i, index[key] = len(pools), len(pools)
			prompt, err := promptOf(r, bench)
			if err != nil {
				return nil, fmt.Errorf("%s: question %s: %w", strings.Join(c.Candidates, ", "), r.QuestionID, err)
			}
			pools = append(pools, eval.Pool{Prompt: prompt})
		}
		pools[i].Candidates = append(pools[i].Candidates, r)
	}
	return pools, nil
}

func (c *verifyCommand) tell(v eval.Verification) error {
	w := tabwriter.NewWriter(os.Stderr, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s, %s\tEX\t95 %%\tright\tonly this\tonly the vote\tMcNemar p\t\n", counted(v.Questions, "question"), counted(v.Candidates, "candidate"))
	for _, row := range []struct {
		name string
		eval.Choice
	}{{"first sample", v.First}, {"majority", v.Majority}, {"prm", v.PRM}, {"prm + vote", v.PRMVote}, {"oracle", v.Oracle}} {
		if c.Model == "" && strings.HasPrefix(row.name, "prm") {
			continue
		}
		fmt.Fprintf(w, "%s\t%.1f\t%.1f-%.1f\t%d\t%d\t%d\t%.3g\t\n", row.name, 100*row.Accuracy, 100*row.Interval[0], 100*row.Interval[1],
			row.Correct, row.OnlyThis, row.OnlyVote, row.P)
	}
	if v.GoldProblems > 0 {
		fmt.Fprintf(w, "%s left out: gold did not run\n", counted(v.GoldProblems, "question"))
	}
	return w.Flush()
}
