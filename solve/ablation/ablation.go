// Package ablation measures what each part of the solving pipeline is worth: one part
// at a time is changed or left out, and compared with the whole on the same questions
// (sirius.md 2.6).
package ablation

import (
	"context"
	"fmt"
	"io"
	"slices"

	"caper/data"
	"caper/eval"
	"caper/solve"
)

// Options of a study.
type Options struct {
	Rule    eval.Rule
	Workers int
	Repair  *solve.Repairer // of the whole
	Select  solve.Options   // of the whole
	// Specialist are the sources of one half of the pool; with none the pool is not
	// varied.
	Specialist []string
	// Progress is told how many questions are answered, of all variants; it may be nil.
	Progress func(done int)
}

// Row is what became of a variant. B of the comparison is the variant, A the whole.
type Row struct {
	Part    string `json:"part"` // pool, lifecycle or selector
	Variant string `json:"variant"`
	Correct int    `json:"correct"`
	// Oracle counts the questions with a right candidate in the pool.
	Oracle     int                   `json:"oracle"`
	Candidates int                   `json:"candidates"`
	Comparison eval.PairedComparison `json:"comparison"`
	Cost       solve.Cost            `json:"cost"` // of all questions
}

// variant is the whole with one part changed.
type variant struct {
	part, name string
	pool       func([]solve.Candidate) []solve.Candidate // nil: all
	repair     solve.Repairer
	choose     solve.Options
}

// variants lists the whole first.
func (o *Options) variants() []variant {
	whole := variant{part: "whole", name: fmt.Sprintf("%s, %s", o.Repair.Lifecycle, o.Select.Method), repair: *o.Repair, choose: o.Select}
	all := []variant{whole}
	if len(o.Specialist) > 0 {
		for _, name := range []string{"sp", "ge", "sp+ge"} {
			v := whole
			v.part, v.name, v.pool = "pool, at equal k", name, func(c []solve.Candidate) []solve.Candidate { return o.half(c, name) }
			all = append(all, v)
		}
	}
	for _, l := range []solve.Lifecycle{solve.Keep, solve.Drop, solve.Unified, solve.Typed} {
		if l == o.Repair.Lifecycle || l == solve.Unified && o.Repair.Corrector == nil {
			continue
		}
		v := whole
		v.part, v.name, v.repair.Lifecycle = "lifecycle", string(l), l
		if l == solve.Unified {
			corrector := *o.Repair.Corrector
			corrector.Untyped = true
			v.repair.Corrector = &corrector
		}
		all = append(all, v)
	}
	for _, m := range []solve.Method{solve.Majority, solve.ByConsensus, solve.ByReward, solve.BySum, solve.Gated} {
		if m == o.Select.Method || o.Select.Judge == nil && (m == solve.ByReward || m == solve.BySum) {
			continue
		}
		v := whole
		v.part, v.name, v.choose.Method = "selector", string(m), m
		all = append(all, v)
	}
	return all
}

// half takes k of the specialist's candidates, k of the others', or half of each, where k
// is the smaller number of the two.
func (o *Options) half(all []solve.Candidate, which string) []solve.Candidate {
	var sp, ge []solve.Candidate
	for _, c := range all {
		if slices.Contains(o.Specialist, c.Source) {
			sp = append(sp, c)
		} else {
			ge = append(ge, c)
		}
	}
	k := min(len(sp), len(ge))
	switch which {
	case "sp":
		return sp[:k]
	case "ge":
		return ge[:k]
	}
	return slices.Concat(sp[:(k+1)/2], ge[:k/2])
}

// Study answers the questions of the pools by every variant, and judges what came of it.
// Gold is the benchmark's; no variant sees it.
func Study(ctx context.Context, bench *data.Benchmark, split string, pools []solve.Pool, o Options) ([]Row, error) {
	j, err := newJudge(bench, split, o)
	if err != nil {
		return nil, err
	}
	variants := o.variants()
	answered := make([][]answer, len(variants))
	done := 0
	for i, v := range variants {
		emit := func(a answer) error {
			answered[i] = append(answered[i], a)
			j.ask(a)
			done++
			if o.Progress != nil {
				o.Progress(done)
			}
			return nil
		}
		if err := eval.InOrder(ctx, eval.Each(pools), o.Workers, v.answer, emit); err != nil {
			return nil, fmt.Errorf("variant %s: %w", v.name, err)
		}
	}
	if err := j.run(ctx); err != nil {
		return nil, err
	}
	var rows []Row
	var whole *eval.Verdicts
	for i, v := range variants {
		row, verdicts, err := j.row(v, answered[i])
		if err != nil {
			return nil, err
		}
		if whole == nil {
			whole = verdicts
		}
		const resamples, seed = 1000, 1
		if row.Comparison, err = eval.CompareVerdicts(whole, verdicts, resamples, seed); err != nil {
			return nil, fmt.Errorf("variant %s: %w", v.name, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// answer is what a variant says to a question: a query, out of some.
type answer struct {
	question data.Question
	sql      string // "" where the pool is empty
	pool     []string
	cost     solve.Cost
}

func (v *variant) answer(ctx context.Context, p solve.Pool) (answer, error) {
	a := answer{question: p.Question}
	if v.pool != nil {
		p = solve.NewPool(p.Question, v.pool(p.Candidates))
	}
	if len(p.Candidates) == 0 {
		return a, nil
	}
	repaired, err := v.repair.Repair(ctx, p)
	if err != nil {
		return a, err
	}
	d, err := solve.Select(ctx, p.Question, repaired.Candidates, v.choose)
	if err != nil {
		return a, err
	}
	a.cost = repaired.Cost
	a.cost.Add(d.Cost)
	a.sql = d.Candidates[d.Chosen].SQL
	for _, x := range d.Candidates {
		a.pool = append(a.pool, x.SQL)
	}
	return a, nil
}

// Markdown writes the rows as a table.
func Markdown(w io.Writer, rows []Row) error {
	_, err := fmt.Fprint(w, "| part | variant | correct | share | any right | only it, only the whole | McNemar p | queries run | model calls | tokens in, out |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		if err != nil {
			return err
		}
		n := max(r.Comparison.Questions, 1)
		_, err = fmt.Fprintf(w, "| %s | %s | %d | %.2f %% | %d | %d, %d | %.3g | %.1f | %.1f | %d, %d |\n", r.Part, r.Variant, r.Correct,
			100*float64(r.Correct)/float64(n), r.Oracle, r.Comparison.OnlyB, r.Comparison.OnlyA, r.Comparison.P,
			float64(r.Cost.Executions)/float64(n), float64(r.Cost.Calls)/float64(n), r.Cost.TokensIn, r.Cost.TokensOut)
	}
	return err
}
