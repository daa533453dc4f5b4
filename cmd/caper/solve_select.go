package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"

	"caper/solve"
)

type solveSelectCommand struct {
	solveFlags `embed:""`
	Judge      string  `help:"Who compares answers beside the vote: none, prm (--model) or server (--server)." default:"none" enum:"none,prm,server"`
	Method     string  `help:"majority, s_maj, s_rm, sum or sum+gate: each is the one before with more." default:"sum+gate" enum:"majority,s_maj,s_rm,sum,sum+gate"`
	Consensus  string  `help:"How shared cells are counted: jaccard or mean." default:"jaccard" enum:"jaccard,mean"`
	Margin     float64 `help:"A lead of less is none, and the structure of queries decides." default:"0.05"`
	MaxJudged  int     `help:"Most classes that a judge sees." default:"5"`
	Explain    bool    `help:"Print pool, classes, scores and what decided, for every question, on stdout."`
}

func (c *solveSelectCommand) Help() string {
	return `Example:
  caper solve select --bench spider --split dev --candidates rollouts.jsonl --judge none --out chosen.jsonl

Gold is not looked at. The file has one line a question: one of its candidates, with its scores and what decided.
caper eval ex judges it.`
}

// Validate checks the flags.
func (c *solveSelectCommand) Validate() error {
	if !(c.Margin >= 0 && c.Margin <= 2) {
		return fmt.Errorf("--margin %v: must be from 0 to 2", c.Margin)
	}
	return cmp.Or(c.check(), checkNumber("--max-judged", c.MaxJudged, 2, 100))
}

func (c *solveSelectCommand) Run(ctx context.Context) error {
	defer collectRarely()()
	bench, err := c.open()
	if err != nil {
		return err
	}
	defer bench.Close()
	pools, err := c.pools(bench)
	if err != nil {
		return err
	}
	o := solve.DefaultOptions()
	o.Method, o.Consensus, o.Margin, o.MaxJudged = solve.Method(c.Method), solve.Consensus(c.Consensus), c.Margin, c.MaxJudged
	out, done := c.output(bench, map[string]string{
		"selector": fmt.Sprintf("%s by %s, margin %v, judge %s of %d", c.Method, c.Consensus, c.Margin, c.Judge, c.MaxJudged),
	}, len(pools))
	defer done()
	examiner := solve.NewExaminer(bench, resultBytes)
	stages := map[solve.Stage]int{}
	var cost solve.Cost
	choose := func(ctx context.Context, pool solve.Pool) (solve.Decision, error) {
		examined, spent, err := examiner.Examine(ctx, pool)
		if err != nil {
			return solve.Decision{}, err
		}
		d, err := solve.Select(ctx, pool.Question, examined, o)
		d.Cost.Add(spent)
		return d, err
	}
	tell := func(d solve.Decision) error {
		stages[d.Stage]++
		cost.Add(d.Cost)
		if !c.Explain {
			return nil
		}
		var text bytes.Buffer
		if err := d.Explain(&text); err != nil {
			return err
		}
		_, err := os.Stdout.Write(text.Bytes())
		return err
	}
	if err := solve.Write(ctx, out, pools, choose, tell); err != nil {
		return err
	}
	done()
	fmt.Fprintf(os.Stderr, "%s in %s: %d by the only answer, %d by score, %d by structure, %d where no candidate ran\n",
		counted(len(pools), "question"), c.Out, stages[solve.OnlyClass], stages[solve.Coarse], stages[solve.Structure], stages[solve.NoConsensus])
	return nil
}
