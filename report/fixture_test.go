package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"caper/annotate"
	"caper/eval"
	"caper/sql"
	"caper/sqlexec"
	"caper/train/prm"
)

// fullPage is a page with every part, made of drawn data.
func fullPage() Page {
	p := Page{
		Title:     "Clause-PRM on the sample benchmark",
		Summary:   "Sampled queries were executed, their faults found and turned into preferences, and a reward model was trained on them.",
		Simulated: "The queries come from a seeded noisy writer, not from a model.",
		Machine:   "Some Processor, linux/amd64, 2 cores, go1.26",
		Date:      time.Date(2025, 3, 4, 5, 6, 0, 0, time.UTC),
		Facts:     []Fact{{"databases", "90", ""}, {"questions", "4,200", "in English"}, {"parameters", "1.6 million", ""}},
		Timings:   []Timing{{"sample benchmark", 4200 * time.Millisecond}, {"annotation", 31 * time.Second}, {"training, default", 142 * time.Second}},
		Notes:     []string{"Everything was computed on the CPU."},
	}
	for i, name := range []string{"default", "no-propagation", "margin-none"} {
		run := Run{Name: name, Config: prm.Defaults(), Metrics: drawnMetrics(uint64(i))}
		if i > 0 {
			run.Note = "without " + name
			run.Config.Loss.Margin = "none"
		}
		run.Outcome = &prm.Outcome{Steps: 300, Pairs: 19123, Questions: 2800, TooLong: 3, Elapsed: 142 * time.Second}
		p.Runs = append(p.Runs, run)
		for j, test := range []string{"unseen databases, known words", "unseen databases, new words"} {
			natural := drawnLocalization(uint64(10*i+j), 2.5-0.5*float64(i)-float64(j), false)
			balanced := drawnLocalization(uint64(10*i+j), 2.5-0.5*float64(i)-float64(j), true)
			p.Tests = append(p.Tests, Test{test, name, &natural, &balanced})
		}
	}
	p.Annotations = []Annotation{{"training databases", drawnSummary()}, {"unseen databases", drawnSummary()}}
	for i := range 20 {
		p.Examples = append(p.Examples, drawnExample(i))
	}
	return p
}

func drawnMetrics(seed uint64) []prm.Metrics {
	r := rand.New(rand.NewPCG(seed, 1))
	var lines []prm.Metrics
	best := 0.0
	for step := 1; step <= 300; step++ {
		trend := math.Exp(-float64(step) / 80)
		loss, accuracy := 0.2+0.5*trend+0.05*r.NormFloat64(), min(1, 0.93-0.4*trend+0.04*r.NormFloat64())
		lines = append(lines, prm.Metrics{Step: step, Loss: &loss, Accuracy: &accuracy, Tokens: 8000, Unpacked: 31000, TokensPerSecond: 9000 + 500*r.NormFloat64()})
		if step%50 == 0 {
			top1 := 0.85 - 0.4*trend + 0.02*r.NormFloat64()
			mrr := top1 + 0.08
			lines = append(lines, prm.Metrics{Step: step, Top1: &top1, MRR: &mrr, Validated: 256, Best: top1 > best})
			best = max(best, top1)
		}
	}
	return lines
}

// drawnLocalization localises drawn faults with a scorer of some skill and two
// rules of none.
func drawnLocalization(seed uint64, skill float64, balanced bool) eval.Localization {
	r := rand.New(rand.NewPCG(seed, 2))
	kinds := []sql.ClauseKind{sql.ClauseSelect, sql.ClauseFrom, sql.ClauseWhere, sql.ClauseGroupBy, sql.ClauseOrderBy, sql.ClauseLimit}
	var faults []eval.Fault
	var scores [][]float64
	for i := range 300 {
		f := eval.Fault{Question: fmt.Sprint(i / 2), Source: "injection", Operator: "where.literal"}
		if r.IntN(3) == 0 {
			f.Source, f.Operator = "counterfactual", []string{"single", "first"}[r.IntN(2)]
		}
		for _, kind := range kinds[:2+r.IntN(5)] {
			f.Units, f.Kinds = append(f.Units, string(kind)+" something"), append(f.Kinds, kind)
		}
		f.Units, f.Kinds = append(f.Units, ""), append(f.Kinds, sql.ClauseEnd)
		f.Faulty = r.IntN(len(f.Kinds))
		s := make([]float64, len(f.Kinds))
		for j := range s {
			s[j] = r.NormFloat64()
		}
		s[f.Faulty] -= skill
		faults, scores = append(faults, f), append(scores, s)
	}
	return eval.Localize(faults, scores, eval.FitBaselines(faults[:50]), eval.LocalizeOptions{Balanced: balanced, Resamples: 100})
}

func drawnSummary() annotate.Summary {
	return annotate.Summary{
		Rollouts: 12600, Correct: 6800, Failing: 5100, Injected: 6500, Repaired: 4900, MutantsTried: 31000, MutantsAccepted: 19000,
		Executions: 88000, Tuples: 24000, EnclosingTuples: 812,
		ByClause:        map[string]int{"SELECT": 7000, "FROM": 4100, "WHERE": 9000, "GROUP BY": 900, "ORDER BY": 1400, "LIMIT": 300, "END": 200},
		ByOperator:      map[string]int{"where.comparison": 2100, "where.literal": 1900, "select.column": 2500, "from.table": 900, "single": 2400, "first": 300, "cascade": 90},
		Reasons:         map[annotate.Reason]int{annotate.Duplicate: 2200, annotate.Unrepaired: 33, annotate.NoMutant: 210, annotate.NoParse: 130},
		RejectedMutants: map[annotate.Reason]int{annotate.SameResult: 7000, annotate.StillCorrect: 12, annotate.Reason(sqlexec.NoSuchName): 40},
		Margins:         map[int][annotate.MarginBins]int{0: {9: 23188, 4: 12}, 1: {7: 500, 8: 101}, 2: {3: 190, 5: 21}},
	}
}

func drawnExample(i int) Example {
	r := rand.New(rand.NewPCG(uint64(i), 3))
	e := Example{
		Question: fmt.Sprintf("Which gardens opened after 1990, have more than %d visitors and lie in the north?", 100*i),
		DBID:     "garden_visits", Origin: "simulated rollout, single",
		Clauses: []Clause{
			{Kind: sql.ClauseSelect, Text: "SELECT T1.name, count(*) "},
			{Kind: sql.ClauseFrom, Text: "FROM garden AS T1 JOIN visit AS T2 ON T1.garden_id = T2.garden_id "},
			{Kind: sql.ClauseWhere, Text: "WHERE T1.opened > 1990 AND T2.visitors >= 100 AND T1.region = 'South' "},
			{Kind: sql.ClauseGroupBy, Text: "GROUP BY T1.garden_id"},
			{Kind: sql.ClauseEnd},
		},
		Correct:   "SELECT T1.name, count(*) FROM garden AS T1 JOIN visit AS T2 ON T1.garden_id = T2.garden_id WHERE T1.opened > 1990 AND T2.visitors > 100 AND T1.region = 'North' GROUP BY T1.garden_id",
		Predicted: Answer{Result: &sqlexec.Result{Columns: []string{"name", "count(*)"}, Rows: [][]sqlexec.Value{{"Łazienki", int64(3)}, {nil, int64(1)}}}},
		Expected:  Answer{Result: &sqlexec.Result{Columns: []string{"name", "count(*)"}, Truncated: true}},
	}
	for j := range e.Clauses {
		e.Clauses[j].Score = 1.5 + r.NormFloat64()
	}
	faulty := &e.Clauses[r.IntN(len(e.Clauses))]
	faulty.Faulty, faulty.Score = true, faulty.Score-3
	for row := range 1000 {
		e.Expected.Result.Rows = append(e.Expected.Result.Rows, []sqlexec.Value{fmt.Sprintf("Garden of row %d with quite a long name that goes on and on and on", row), 2.5 * float64(row)})
	}
	if i == 4 {
		e.Predicted = Answer{Error: "no_such_name: no such column: T1.opened"}
	}
	return e
}
