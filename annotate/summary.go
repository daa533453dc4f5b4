package annotate

import "math"

// Reason says why a rollout or a mutant gave no tuple.
type Reason string

// Why a rollout gave none.
const (
	Duplicate    Reason = "duplicate"     // the same query for the same question came before
	NoQuery      Reason = "no_query"      // the rollout holds no text
	NoParse      Reason = "no_parse"      // not one SELECT statement, or a mutant that could not be written
	GoldNoParse  Reason = "gold_no_parse" // gold is not one SELECT statement
	GoldError    Reason = "gold_error"    // gold fails on the database
	GoldTimeout  Reason = "gold_timeout"  // gold passes the time limit
	RunOn        Reason = "run_on"        // correct once the text behind the first statement is cut
	NoDivergence Reason = "no_divergence" // the same as gold in every clause, yet wrong
	Unrepaired   Reason = "unrepaired"    // no repair was correct
	NoMutant     Reason = "no_mutant"     // a correct rollout of which no mutant was accepted
)

// Why a mutant was rejected. A failure of the execution is named by its
// sqlexec.Failure.
const (
	SameResult   Reason = "equivalent"    // its result is the original's
	StillCorrect Reason = "still_correct" // it differs from the original, but not from gold
	NoPair       Reason = "no_pair"       // the two units read the same
)

// MarginBins is the number of equal bins that cut margins from 0 to alpha.
const MarginBins = 10

// Summary counts what an annotation run did.
type Summary struct {
	Rollouts int `json:"rollouts"` // read
	// Correct and Failing count the rollouts that were judged, Cut those with
	// text behind the first statement that was cut.
	Correct int `json:"correct"`
	Failing int `json:"failing"`
	Cut     int `json:"cut"`
	// Injected and Repaired count the correct and the failing rollouts that gave
	// tuples.
	Injected int `json:"injected"`
	Repaired int `json:"repaired"`
	// Repairs counts the repaired rollouts by operator: single, first, cascade.
	Repairs map[string]int `json:"repairs"`
	// Of the failing rollouts that one clause alone repairs (single),
	// SingleRestated need gold restated (restate.go) and SingleFirst are those
	// where it is the first divergent clause. In SeveralSingle others, more than
	// one clause would do.
	SingleRestated int `json:"single_restated"`
	SingleFirst    int `json:"single_first"`
	SeveralSingle  int `json:"several_single"`
	// MutantsTried were executed, MutantsAccepted gave tuples. Executions are
	// the queries asked for, those that the cache answered included.
	MutantsTried    int `json:"mutants_tried"`
	MutantsAccepted int `json:"mutants_accepted"`
	Executions      int `json:"executions"`

	Tuples int `json:"tuples"`
	// EnclosingTuples are those of clauses around the faulty one, with a decayed
	// margin; DuplicateTuples were not emitted a second time. InvalidTuples broke
	// the format and were not emitted: more than 0 is a defect of this package.
	EnclosingTuples int            `json:"enclosing_tuples"`
	DuplicateTuples int            `json:"duplicate_tuples"`
	InvalidTuples   int            `json:"invalid_tuples"`
	ByDataset       map[string]int `json:"by_dataset"`
	BySplit         map[string]int `json:"by_split"`
	BySource        map[string]int `json:"by_source"`
	ByClause        map[string]int `json:"by_clause"`
	ByOperator      map[string]int `json:"by_operator"`
	// Reasons counts the rollouts without tuples, RejectedMutants the mutants.
	Reasons         map[Reason]int `json:"reasons"`
	RejectedMutants map[Reason]int `json:"rejected_mutants"`
	// Margins is a histogram of margins for each number of clauses around the
	// unit, 0 for outermost clauses: bin i holds the margins in (i, i+1] tenths
	// of alpha.
	Margins map[int][MarginBins]int `json:"margins_by_depth"`
}

func newSummary() Summary {
	return Summary{
		Repairs:         make(map[string]int),
		ByDataset:       make(map[string]int),
		BySplit:         make(map[string]int),
		BySource:        make(map[string]int),
		ByClause:        make(map[string]int),
		ByOperator:      make(map[string]int),
		Reasons:         make(map[Reason]int),
		RejectedMutants: make(map[Reason]int),
		Margins:         make(map[int][MarginBins]int),
	}
}

// addRollout counts a rollout.
func (s *Summary) addRollout(out *outcome) {
	s.Rollouts++
	switch out.verdict {
	case correct:
		s.Correct++
		if len(out.tuples) > 0 {
			s.Injected++
		}
	case failing:
		s.Failing++
		if len(out.tuples) > 0 {
			s.Repaired++
			s.Repairs[out.tuples[0].Operator]++
		}
		if out.singles > 1 {
			s.SeveralSingle++
		}
		if out.restated {
			s.SingleRestated++
		}
		if out.agrees {
			s.SingleFirst++
		}
	}
	if out.cut {
		s.Cut++
	}
	if out.reason != "" {
		s.Reasons[out.reason]++
	}
	s.MutantsTried += out.tried
	s.MutantsAccepted += out.mutants
	s.Executions += out.runs
	for reason, n := range out.rejected {
		s.RejectedMutants[reason] += n
	}
}

// addTuple counts an emitted tuple.
func (s *Summary) addTuple(t preference, alpha float64) {
	s.Tuples++
	if !t.RootClause {
		s.EnclosingTuples++
	}
	s.ByDataset[t.Dataset]++
	s.BySplit[t.Split]++
	s.BySource[t.Source]++
	s.ByClause[t.Clause]++
	s.ByOperator[t.Operator]++
	bins := s.Margins[t.depth]
	bin := int(math.Ceil(t.Margin/alpha*MarginBins)) - 1
	bins[min(max(bin, 0), MarginBins-1)]++
	s.Margins[t.depth] = bins
}
