package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"caper/data"
	"caper/solve"
)

type solveSelectCommand struct {
	solveFlags  `embed:""`
	selectFlags `embed:""`
	modelFlags  `embed:""`
	serverFlags `embed:""`
	Explain     bool `help:"Print pool, classes, scores and what decided, for every question, on stdout."`
}

// selectFlags say how one candidate is chosen.
type selectFlags struct {
	Judge     string  `help:"Who compares answers beside the vote: none, prm (--model) or server (--server)." default:"none" enum:"none,prm,server"`
	Model     string  `help:"Reward model folder, for the judge prm." type:"path"`
	Method    string  `help:"majority, s_maj, s_rm, sum or sum+gate: each is the one before with more." default:"sum+gate" enum:"majority,s_maj,s_rm,sum,sum+gate"`
	Consensus string  `help:"How shared cells are counted: jaccard or mean." default:"jaccard" enum:"jaccard,mean"`
	Margin    float64 `help:"A lead of less is none, and the structure of queries decides." default:"0.05"`
	MaxJudged int     `help:"Most classes that a judge sees." default:"5"`
}

func (f *selectFlags) check(s *serverFlags) error {
	switch {
	case !(f.Margin >= 0 && f.Margin <= 2):
		return fmt.Errorf("--margin %v: must be from 0 to 2", f.Margin)
	case f.Judge == "prm" && f.Model == "":
		return errors.New("--judge prm: --model is missing: name the folder of a reward model")
	case f.Judge == "server" && s.Server == "":
		return errors.New("--judge server: --server is missing: name the address of a model server, such as http://localhost:8000/v1")
	}
	return checkNumber("--max-judged", f.MaxJudged, 2, 100)
}

// String is what the choice depends on.
func (f *selectFlags) String() string {
	return fmt.Sprintf("%s by %s, margin %v, judge %s %s of %d", f.Method, f.Consensus, f.Margin, f.Judge, f.Model, f.MaxJudged)
}

// options are those of the selector, with its judge opened.
func (f *selectFlags) options(bench *data.Benchmark, m *modelFlags, s *serverFlags) (solve.Options, error) {
	o := solve.DefaultOptions()
	o.Method, o.Consensus, o.Margin, o.MaxJudged = solve.Method(f.Method), solve.Consensus(f.Consensus), f.Margin, f.MaxJudged
	switch f.Judge {
	case "prm":
		scorer, err := m.scorer(f.Model)
		if err != nil {
			return o, err
		}
		o.Judge = solve.NewRewardJudge(scorer, bench.Prompt)
	case "server":
		server, err := s.open()
		if err != nil {
			return o, err
		}
		o.Judge = &solve.ServerJudge{Server: server, Prompt: bench.Prompt}
	}
	return o, nil
}

func (c *solveSelectCommand) Help() string {
	return `Example:
  caper solve select --bench spider --split dev --candidates rollouts.jsonl --judge none --out chosen.jsonl

Gold is not looked at. The file has one line a question: one of its candidates, with its scores and what decided.
caper eval ex judges it.`
}

// Validate checks the flags.
func (c *solveSelectCommand) Validate() error {
	return cmp.Or(c.solveFlags.check(), c.selectFlags.check(&c.serverFlags), c.modelFlags.check(), c.serverFlags.check())
}

func (c *solveSelectCommand) Run(ctx context.Context) error {
	defer collectRarely()()
	bench, err := c.benchFlags.open()
	if err != nil {
		return err
	}
	defer bench.Close()
	pools, err := c.pools(bench)
	if err != nil {
		return err
	}
	o, err := c.options(bench, &c.modelFlags, &c.serverFlags)
	if err != nil {
		return err
	}
	out, done := c.output(bench, map[string]string{"selector": c.selectFlags.String()}, len(pools))
	defer done()
	examiner := solve.NewExaminer(bench, resultBytes)
	counts := decisionCounts{stages: map[solve.Stage]int{}}
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
		counts.add(d)
		return c.explain(d)
	}
	if err := solve.Write(ctx, out, pools, choose, tell); err != nil {
		return err
	}
	done()
	fmt.Fprintf(os.Stderr, "%s in %s: %v\n", counted(len(pools), "question"), c.Out, &counts)
	return nil
}

func (c *solveSelectCommand) explain(d solve.Decision) error {
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

// decisionCounts sums up what decided.
type decisionCounts struct {
	stages map[solve.Stage]int
	cost   solve.Cost
}

func (c *decisionCounts) add(d solve.Decision) {
	c.stages[d.Stage]++
	c.cost.Add(d.Cost)
}

func (c *decisionCounts) String() string {
	text := fmt.Sprintf("%d by the only answer, %d by score, %d by structure, %d where no candidate ran",
		c.stages[solve.OnlyClass], c.stages[solve.Coarse], c.stages[solve.Structure], c.stages[solve.NoConsensus])
	return text + spentOn(c.cost)
}

// spentOn says what models cost, where there were any.
func spentOn(c solve.Cost) string {
	if c.Calls+c.Failed == 0 {
		return ""
	}
	return fmt.Sprintf("; %s of a model, %d without an answer, %d tokens in, %d out", counted(c.Calls, "call"), c.Failed, c.TokensIn, c.TokensOut)
}
