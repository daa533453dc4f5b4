package solve

import (
	"context"
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
	// Typed mends each by what went wrong.
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
	// MaxEdit is how far a mended query may be from one that returned nothing, as a tree
	// edit distance per change: 3 is a condition with another operator and literal.
	MaxEdit int
}

// DefaultRepairOptions returns two rounds, a quorum of three, three edits.
func DefaultRepairOptions() RepairOptions {
	return RepairOptions{Lifecycle: Typed, Rounds: 2, Quorum: 3, MaxEdit: 3}
}

// Repairer takes pools through the lifecycle of sirius.md 2.4. It is safe for concurrent
// use.
type Repairer struct {
	*Examiner
	RepairOptions
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
	if r.Lifecycle == Typed && w.db != nil {
		err = r.mendAll(w, out.Candidates)
	}
	if r.Lifecycle == Drop {
		out.drop()
	}
	out.Cost.Executions = w.executions
	out.Cost.since(began)
	return out, err
}

// mendAll mends each statement once, whoever wrote it.
func (r *Repairer) mendAll(w *workbench, candidates []Examined) error {
	emptyIsAnswer := r.agreeOnNothing(candidates)
	done := map[string]Examined{}
	for i := range candidates {
		x := &candidates[i]
		if known, ok := done[x.SQL]; ok {
			known.Candidate.Rollout, known.Style = with(x.Rollout, known.SQL), x.Style
			*x = known
			continue
		}
		text := x.SQL
		if err := r.mend(w, x, emptyIsAnswer); err != nil {
			return err
		}
		done[text] = *x
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
func (r *Repairer) mend(w *workbench, x *Examined, emptyIsAnswer bool) error {
	for range r.Rounds {
		var better *Examined
		var err error
		switch x.State {
		case Rejected, Failed:
			better, err = r.first(w, x, brokenMends(w, x), State.ran)
		case TimedOut:
			better, err = r.first(w, x, slowMends(w, x), State.ran)
		case Empty, Degenerate:
			if !emptyIsAnswer {
				better, err = r.fill(w, x)
			}
		}
		if err != nil || better == nil {
			return err
		}
		*x = *better
	}
	return nil
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
