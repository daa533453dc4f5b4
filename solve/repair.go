package solve

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"caper/data"
	"caper/sql"
)

// Lifecycle is what happens to candidates that do not work (sirius.md 2.6).
type Lifecycle string

const (
	// Keep leaves them as they are; Drop leaves them out.
	Keep Lifecycle = "none"
	Drop Lifecycle = "drop"
	// Unified asks a model to correct it, in the same words whatever went wrong.
	Unified Lifecycle = "unified"
	// Typed mends each by what went wrong, without a model first.
	Typed Lifecycle = "typed"
)

// RepairOptions of a Repairer; DefaultRepairOptions has the values of sirius.md.
type RepairOptions struct {
	Lifecycle Lifecycle
	// Rounds is how often one candidate may be mended.
	Rounds int
	// Quorum: where so many provenance groups or more ran and all of them return nothing,
	// nothing is the answer, and the cascade for empty results does not run.
	Quorum int
	// Patience is how many limits of one query the mending of a candidate may take.
	Patience int
	// MaxEdit is how far a mended query may be from one that returned nothing, as a tree
	// edit distance per change: 3 is a condition with another operator and literal.
	MaxEdit int
}

// DefaultRepairOptions returns two rounds, a quorum of three, a patience of four limits,
// three edits.
func DefaultRepairOptions() RepairOptions {
	return RepairOptions{Lifecycle: Typed, Rounds: 2, Quorum: 3, Patience: 4, MaxEdit: 3}
}

// Repairer takes pools through the lifecycle of sirius.md 2.4. It is safe for concurrent
// use.
type Repairer struct {
	*Examiner
	RepairOptions
	// Corrector is asked where no operator helps; nil: nobody is.
	Corrector *Corrector
}

// Repaired is a pool behind its repairs.
type Repaired struct {
	Question   data.Question
	Candidates []Examined
	Findings   [][]Finding // of the candidates' own queries
	Cost       Cost
}

// Repair screens and runs the candidates of a pool and mends those that do not work.
// Whatever it puts in the place of a query has run.
func (r *Repairer) Repair(ctx context.Context, pool Pool) (Repaired, error) {
	began := time.Now()
	out := Repaired{Question: pool.Question, Candidates: make([]Examined, len(pool.Candidates)), Findings: make([][]Finding, len(pool.Candidates))}
	w, err := r.open(ctx, pool.Question.DBID)
	if err != nil {
		return out, err
	}
	first := map[string]int{} // of equal statements
	for i, c := range pool.Candidates {
		x := &out.Candidates[i]
		*x = w.read(c)
		out.Findings[i] = x.Screen(w.schema)
		if j, known := first[x.statement]; known && x.tree != nil {
			out.Findings[i] = append(out.Findings[i], Finding{Code: Duplicate, Message: "the query of " + out.Candidates[j].origin()})
		} else {
			first[x.statement] = i
		}
		if f := out.Findings[i]; len(f) > 0 && f[0].Code.rejects() {
			x.State, x.Message = Rejected, f[0].Message
		}
	}
	if err := w.runAll(out.Candidates); err != nil {
		return out, err
	}
	if (r.Lifecycle == Typed || r.Lifecycle == Unified) && w.db != nil {
		if err := r.mendAll(w, &out); err != nil {
			return out, err
		}
		if err := r.restart(w, &out); err != nil {
			return out, err
		}
	}
	if r.Lifecycle == Drop {
		out.drop()
	}
	out.compact()
	out.Cost.Executions += w.executions
	out.Cost.Milliseconds = 0
	out.Cost.since(began)
	return out, nil
}

// mendAll mends each statement once, whoever wrote it.
func (r *Repairer) mendAll(w *workbench, p *Repaired) error {
	emptyIsAnswer := r.agreeOnNothing(p.Candidates)
	done := map[string]Examined{}
	for i := range p.Candidates {
		x := &p.Candidates[i]
		if known, ok := done[x.SQL]; ok {
			known.Candidate.Rollout, known.Style = with(x.Rollout, known.SQL), x.Style
			*x = known
			continue
		}
		text := x.SQL
		if err := r.mend(w, p, x, emptyIsAnswer); err != nil {
			return err
		}
		done[text] = *x
	}
	return nil
}

// enough is how many clean candidates a pool needs: with fewer there is nothing to
// compare.
const enough = 2

// restart lets the corrector write new candidates where a pool has collapsed. They go
// through the same lifecycle, once.
func (r *Repairer) restart(w *workbench, p *Repaired) error {
	clean := 0
	for i := range p.Candidates {
		if p.Candidates[i].State == Clean {
			clean++
		}
	}
	if r.Corrector == nil || clean >= enough || r.agreeOnNothing(p.Candidates) {
		return nil
	}
	candidates, cost, err := r.Corrector.Recover(w.ctx, p.Question, p.Candidates)
	p.Cost.Add(cost)
	if err != nil {
		return err
	}
	for _, c := range candidates {
		x := w.read(c)
		findings := x.Screen(w.schema)
		if len(findings) > 0 && findings[0].Code.rejects() {
			x.State, x.Message = Rejected, findings[0].Message
		} else if err := w.run(&x); err != nil {
			return err
		}
		if err := r.mend(w, p, &x, false); err != nil {
			return err
		}
		p.Candidates, p.Findings = append(p.Candidates, x), append(p.Findings, findings)
	}
	return nil
}

// with is a rollout with another query.
func with(r data.Rollout, query string) data.Rollout {
	r.SQL = query
	return r
}

// agreeOnNothing reports that enough groups ran, and all return nothing.
func (r *Repairer) agreeOnNothing(candidates []Examined) bool {
	groups := map[string]bool{}
	for i := range candidates {
		switch x := &candidates[i]; x.State {
		case Empty, Degenerate:
			groups[x.Group()] = true
		case Clean:
			return false
		}
	}
	return len(groups) >= r.Quorum
}

// mend takes one candidate through the rounds.
func (r *Repairer) mend(w *workbench, p *Repaired, x *Examined, emptyIsAnswer bool) error {
	w.until = time.Now().Add(time.Duration(r.Patience) * w.db.Limits().Timeout)
	for range r.Rounds {
		if w.isLate() || x.State == Clean || x.State == NotRun || (x.State == Empty || x.State == Degenerate) && emptyIsAnswer {
			return nil
		}
		var better *Examined
		var err error
		if r.Lifecycle == Typed {
			better, err = r.operate(w, x)
		}
		if err == nil && better == nil && r.Corrector != nil {
			better, err = r.correct(w, p, x)
		}
		if err != nil || better == nil {
			return err
		}
		*x = *better
	}
	return nil
}

// operate mends without a model.
func (r *Repairer) operate(w *workbench, x *Examined) (*Examined, error) {
	switch x.State {
	case Rejected, Failed:
		return r.first(w, x, brokenMends(w, x), State.ran)
	case TimedOut:
		return r.first(w, x, slowMends(w, x), State.ran)
	}
	return r.fill(w, x)
}

// correct asks the corrector, and takes what runs; in the place of nothing, what
// returns something.
func (r *Repairer) correct(w *workbench, p *Repaired, x *Examined) (*Examined, error) {
	facts, err := w.diagnose(x)
	if err != nil {
		return nil, err
	}
	query, cost, err := r.Corrector.Correct(w.ctx, p.Question, x, facts)
	p.Cost.Add(cost)
	if err != nil || query == "" || query == x.SQL {
		return nil, err
	}
	wanted := State.ran
	if x.State.ran() {
		wanted = func(s State) bool { return s == Clean }
	}
	return r.first(w, x, []mend{{query, "model", ""}}, wanted)
}

// diagnose says what filters found, and of a query that returns nothing which literals
// their columns do not have, with some that they have.
func (w *workbench) diagnose(x *Examined) (facts []string, err error) {
	for _, f := range x.Screen(w.schema) {
		facts = append(facts, f.Message)
	}
	if x.tree == nil || w.schema == nil || !x.State.ran() {
		return facts, nil
	}
	c := &cascade{Examined: x, workbench: w}
	if err := c.look(); err != nil {
		return nil, err
	}
	const samples = 5
	for i, p := range c.predicates {
		if !c.absent[i] {
			continue
		}
		values, err := c.values(p.table.Name, p.base.Name)
		if err != nil {
			return nil, err
		}
		var some []string
		for _, v := range values.texts[:min(len(values.texts), samples)] {
			some = append(some, cellText(v))
		}
		facts = append(facts, fmt.Sprintf("no row has %s %s %s; values are %s", columnName(p.column), p.operator, p.sql(), strings.Join(some, ", ")))
	}
	return facts, nil
}

// brokenMends are proposals for a query that does not run.
func brokenMends(w *workbench, x *Examined) []mend {
	if x.tree == nil {
		return cutTail(x)
	}
	if w.schema == nil {
		return nil
	}
	mends := mendNames(x, w.schema, x.Screen(w.schema))
	for i, m := range mends { // what columns there are is known once the tables are
		y := w.read(candidateOf(m.sql))
		for _, more := range mendNames(&y, w.schema, y.Screen(w.schema)) {
			mends[i] = mend{more.sql, m.by, m.note + ", " + more.note}
		}
	}
	return mends
}

// slowMends are proposals for a query that runs out of time.
func slowMends(w *workbench, x *Examined) []mend {
	if x.tree == nil || w.schema == nil {
		return nil
	}
	var all []mend
	if !w.hasCollations() {
		all = rewriteSlow(x)
	}
	return append(all, addKeys(x, w.schema)...)
}

// hasCollations reports that a table declares how texts compare.
func (w *workbench) hasCollations() bool {
	result, err := w.query("SELECT 1 FROM sqlite_schema WHERE sql LIKE '%collate%' LIMIT 1")
	return err != nil || len(result.Rows) > 0
}

// first runs proposals until one comes to a state that is wanted.
func (r *Repairer) first(w *workbench, x *Examined, proposals []mend, wanted func(State) bool) (*Examined, error) {
	for _, m := range proposals {
		if w.isLate() {
			break
		}
		y, err := w.proposed(x, m)
		if err != nil {
			return nil, err
		}
		if wanted(y.State) {
			return y, nil
		}
	}
	return nil, nil
}

// proposed runs a proposal.
func (w *workbench) proposed(x *Examined, m mend) (*Examined, error) {
	c := x.Candidate
	c.SQL = m.sql
	c.Repairs = append(c.Repairs[:len(c.Repairs):len(c.Repairs)], Repair{Of: x.SQL, State: x.State, Message: x.Message, By: m.by, Note: m.note})
	y := w.read(c)
	return &y, w.run(&y)
}

// fill goes down the cascade for a query that returns nothing.
func (r *Repairer) fill(w *workbench, x *Examined) (*Examined, error) {
	if x.tree == nil || w.schema == nil {
		return nil, nil
	}
	c := &cascade{Examined: x, workbench: w}
	if err := c.look(); err != nil {
		return nil, err
	}
	for _, step := range steps {
		proposals, err := step(c)
		if err != nil {
			return nil, err
		}
		for _, m := range proposals {
			if w.isLate() {
				return nil, nil
			}
			y, err := w.proposed(x, m)
			if err != nil {
				return nil, err
			}
			if y.State == Clean && r.isNear(x, y, m) {
				return y, nil
			}
		}
	}
	return nil, nil
}

// isNear reports that a mended query says nearly what the query said.
func (r *Repairer) isNear(x, y *Examined, m mend) bool {
	distance, _ := sql.Distance(x.tree, y.tree)
	return y.tree != nil && distance > 0 && distance <= r.MaxEdit*(1+strings.Count(m.note, "; "))
}

// compact keeps one of the candidates that a repair has made the same: a query and a
// copy of it that was mended before are one attempt of one generator.
func (p *Repaired) compact() {
	var candidates []Examined
	var findings [][]Finding
	for i := range p.Candidates {
		x := &p.Candidates[i]
		if !slices.ContainsFunc(candidates, func(y Examined) bool { return x.compare(&y.Candidate) == 0 }) {
			candidates, findings = append(candidates, *x), append(findings, p.Findings[i])
		}
	}
	p.Candidates, p.Findings = candidates, findings
}

// drop leaves out candidates whose result is none.
func (p *Repaired) drop() {
	var candidates []Examined
	var findings [][]Finding
	for i, x := range p.Candidates {
		if x.State == Clean {
			candidates, findings = append(candidates, x), append(findings, p.Findings[i])
		}
	}
	if len(candidates) > 0 {
		p.Candidates, p.Findings = candidates, findings
	}
}

// Lines are the candidates, as the file of repaired candidates holds them: with their
// state, their repairs, what the filters found, and on the first what the pool cost.
func (p Repaired) Lines() ([]data.Rollout, error) {
	lines := make([]data.Rollout, len(p.Candidates))
	for i := range p.Candidates {
		x := &p.Candidates[i]
		fields := map[string]any{"state": x.State}
		if x.Message != "" {
			fields["message"] = x.Message
		}
		if len(p.Findings[i]) > 0 {
			fields["findings"] = p.Findings[i]
		}
		if i == 0 {
			fields["cost"] = p.Cost
		}
		var err error
		if lines[i], err = x.line(fields); err != nil {
			return nil, err
		}
	}
	return lines, nil
}
