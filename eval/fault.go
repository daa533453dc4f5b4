package eval

import (
	"fmt"
	"iter"

	"caper/data"
	"caper/sql"
)

// Fault is a failed query whose faulty clause is known. Its candidates are the
// clauses of the query and, last, its end, which is at fault when a clause is
// missing there: K clauses give K+1 candidates.
type Fault struct {
	// Tuple is the id of the tuple that the fault comes from.
	Tuple string
	// Question identifies the question; faults of one question are resampled
	// together, since they are anything but independent.
	Question string
	Prompt   string // the model input before the query
	Wording  string // the question and its evidence
	// Units are the texts of the candidates, the end's being empty, Kinds their
	// kinds. A clause that is missing in the middle of the query is looked for
	// at the unit that stands in its place, and counts under that unit's kind.
	Units []string
	Kinds []sql.ClauseKind
	// Faulty is the candidate at fault.
	Faulty int
	// Source and Operator are those of the tuple.
	Source, Operator string
}

// Kind returns the kind of the candidate at fault.
func (f *Fault) Kind() sql.ClauseKind { return f.Kinds[f.Faulty] }

// Clauses returns K, the number of clauses of the query.
func (f *Fault) Clauses() int { return len(f.Units) - 1 }

// Faults reads the faults out of tuples: one from each tuple whose clause holds
// the root cause. Tuples of enclosing clauses are passed over.
func Faults(tuples iter.Seq2[data.Tuple, error]) ([]Fault, error) {
	var faults []Fault
	for t, err := range tuples {
		if err != nil {
			return nil, err
		}
		if !t.RootClause {
			continue
		}
		f, err := newFault(&t)
		if err != nil {
			return nil, err
		}
		faults = append(faults, f)
	}
	return faults, nil
}

func newFault(t *data.Tuple) (Fault, error) {
	f := Fault{
		Tuple:    t.ID,
		Question: t.Dataset + "\x00" + t.DBID + "\x00" + t.QuestionID.String(),
		Prompt:   t.Prompt,
		Wording:  t.Question + "\n" + t.Evidence,
		Faulty:   t.ClauseIndex,
		Source:   t.Source,
		Operator: t.Operator,
	}
	clauses := sql.Clauses(t.SQLRejected)
	if len(clauses) != t.ClauseCount || t.ClauseIndex < 0 || t.ClauseIndex > t.ClauseCount {
		return Fault{}, fmt.Errorf("tuple %s: clause_index %d of clause_count %d, but sql_rejected has %d outermost clauses: the tuple was not written for this query; annotate again",
			t.ID, t.ClauseIndex, t.ClauseCount, len(clauses))
	}
	for _, c := range clauses {
		f.Units = append(f.Units, t.SQLRejected[c.Start:c.End])
		f.Kinds = append(f.Kinds, c.Kind)
	}
	f.Units = append(f.Units, "")
	f.Kinds = append(f.Kinds, sql.ClauseEnd)
	return f, nil
}
