package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"caper/data"
	"caper/solve"
)

type solveRepairCommand struct {
	solveFlags  `embed:""`
	repairFlags `embed:""`
	serverFlags `embed:""`
}

// repairFlags say what happens to candidates that do not work.
type repairFlags struct {
	Lifecycle string `help:"typed (each mended by what went wrong), unified (a model is asked in the same words), drop (left out) or none." default:"typed" enum:"typed,unified,drop,none"`
	Corrector string `help:"Who is asked where no operator helps: none or server (--server)." default:"none" enum:"none,server"`
	Rounds    int    `help:"How often one candidate may be mended." default:"2"`
	Quorum    int    `help:"Where so many generators agree that there are no rows, that is the answer." default:"3"`
}

func (f *repairFlags) options() solve.RepairOptions {
	o := solve.DefaultRepairOptions()
	o.Lifecycle, o.Rounds, o.Quorum = solve.Lifecycle(f.Lifecycle), f.Rounds, f.Quorum
	return o
}

func (f *repairFlags) check(s *serverFlags) error {
	var err error
	switch {
	case f.Corrector == "server" && s.Server == "":
		err = errors.New("--corrector server: --server is missing: name the address of a model server, such as http://localhost:8000/v1")
	case f.Lifecycle == "unified" && f.Corrector == "none":
		err = errors.New("--lifecycle unified: --corrector is missing: a model does all of it")
	}
	return cmp.Or(err, checkNumber("--rounds", f.Rounds, 0, 10), checkNumber("--quorum", f.Quorum, 1, 1_000_000))
}

func (f *repairFlags) String() string {
	return fmt.Sprintf("%s with %s, %d rounds, quorum %d", f.Lifecycle, f.Corrector, f.Rounds, f.Quorum)
}

// open makes the repairer. The corrector sees prompts of the given writer.
func (f *repairFlags) open(bench *data.Benchmark, prompter *solve.Prompter, s *serverFlags) (*solve.Repairer, error) {
	r := &solve.Repairer{Examiner: solve.NewExaminer(bench, resultBytes), RepairOptions: f.options()}
	if f.Corrector == "none" {
		return r, nil
	}
	server, err := s.open()
	if err != nil {
		return nil, err
	}
	const recovered = 4
	r.Corrector = &solve.Corrector{Server: server, Prompter: prompter, Style: solve.DDL, Samples: recovered, Untyped: f.Lifecycle == "unified"}
	return r, nil
}

func (c *solveRepairCommand) Help() string {
	return `Example:
  caper solve repair --bench spider --split dev --candidates rollouts.jsonl --out repaired.jsonl

Every candidate is a line again, with its state, what filters found before it ran, and what each repair changed. Whatever
takes the place of a query has run.`
}

// Validate checks the flags.
func (c *solveRepairCommand) Validate() error {
	return cmp.Or(c.solveFlags.check(), c.repairFlags.check(&c.serverFlags), c.serverFlags.check())
}

func (c *solveRepairCommand) Run(ctx context.Context) error {
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
	repairer, err := c.repairFlags.open(bench, solve.NewPrompter(bench), &c.serverFlags)
	if err != nil {
		return err
	}
	out, done := c.output(bench, map[string]string{"lifecycle": c.repairFlags.String()}, len(pools))
	defer done()
	counts := repairCounts{states: map[solve.State]int{}}
	if err := solve.Write(ctx, out, pools, repairer.Repair, counts.add); err != nil {
		return err
	}
	done()
	fmt.Fprintf(os.Stderr, "%s of %s in %s: %v\n", counted(counts.candidates, "candidate"), counted(len(pools), "question"), c.Out, &counts)
	return nil
}

// repairCounts sums up what became of candidates.
type repairCounts struct {
	candidates, repaired int
	states               map[solve.State]int
	cost                 solve.Cost
}

func (c *repairCounts) add(r solve.Repaired) error {
	c.cost.Add(r.Cost)
	for _, x := range r.Candidates {
		c.candidates++
		c.states[x.State]++
		if len(x.Repairs) > 0 {
			c.repaired++
		}
	}
	return nil
}

func (c *repairCounts) String() string {
	text := fmt.Sprintf("%d mended", c.repaired)
	for _, s := range []solve.State{solve.Clean, solve.Empty, solve.Degenerate, solve.Failed, solve.Rejected, solve.TimedOut, solve.NotRun} {
		if n := c.states[s]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, s)
		}
	}
	return text + spentOn(c.cost)
}
