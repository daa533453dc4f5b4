package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"caper/data"
	"caper/data/sample"
	"caper/eval"
	"caper/report"
)

// exampleCount is the number of failed queries shown in the report.
const exampleCount = 20

// describe notes what the benchmark holds.
func (d *demo) describe(bench sample.Summary, rollouts sample.RolloutSummary) {
	p := &d.page
	p.Title = "caper: the faulty clause, found without labels"
	if d.size.note != "" {
		p.Notes = append(p.Notes, d.size.note)
	}
	p.Summary = "Databases, questions and sampled SQL were turned into clause-level preference tuples by mutating correct queries " +
		"and repairing failed ones, each decision by executing queries. A small Clause-PRM was trained on them from scratch, " +
		"and then looked for the faulty clause of failed queries on databases that it had never seen. A small policy learned to write SQL from gold, " +
		"its own failures taught the reward model more, and rewards of clauses and of results alone took the policy further from the same start."
	p.Simulated = "The candidate queries that faults are localised in come from simulated writers that fail the way models fail; no language model wrote them. " +
		"Those of the policies are their own. The databases, the executions and the results are real."
	p.Machine = report.ThisMachine()
	total, questions := 0, 0
	for _, n := range rollouts.Rollouts {
		total += n
	}
	for _, n := range bench.Questions {
		questions += n
	}
	p.Facts = []report.Fact{
		{Name: "databases", Value: report.Thousands(bench.Databases), Note: report.Thousands(bench.Rows) + " rows in all"},
		{Name: "questions", Value: report.Thousands(questions), Note: "with gold SQL"},
		{Name: "simulated candidate queries", Value: report.Thousands(total)},
	}
}

// examples puts failed queries with their scores and results on the page: spread
// evenly over the faults, so that every kind and both outcomes occur.
func (d *demo) examples(ctx context.Context, faults []eval.Fault, scores [][]float64) error {
	tuples := map[string]data.Tuple{}
	for t, err := range data.ReadTuples(d.tuples(sample.Test, true)) {
		if err != nil {
			return err
		}
		tuples[t.ID] = t
	}
	count := min(exampleCount, len(faults))
	for i := range count {
		n := i * len(faults) / count
		t := tuples[faults[n].Tuple]
		db, err := d.bench.Database(t.DBID)
		if err != nil {
			return err
		}
		answer := func(query string) report.Answer { return report.AnswerOf(db.Query(ctx, query)) }
		d.page.Examples = append(d.page.Examples, report.Example{
			Question: t.Question, DBID: t.DBID,
			Origin:    origin(t),
			Clauses:   report.Clauses(&faults[n], scores[n]),
			Correct:   t.SQLChosen,
			Predicted: answer(t.SQLRejected), Expected: answer(t.SQLChosen),
		})
	}
	return nil
}

// origin says where a failed query comes from, for readers who know no operators.
func origin(t data.Tuple) string {
	if t.Source == "injection" {
		return "a correct simulated query with one change (" + t.Operator + ")"
	}
	return "a simulated query that failed, its fault found by repair (" + t.Operator + ")"
}

// report writes the page.
func (d *demo) report() error {
	d.page.Date = time.Now()
	out := d.path("report.html")
	if err := report.Write(out, d.page); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "model: %s\npolicies: %s\nreport: %s\n", d.rewardModel(), d.path("policy"), out)
	return nil
}
