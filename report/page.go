// Package report writes what a run found as one HTML file.
//
// The file holds everything it shows: no script, no font, no picture from
// elsewhere, so that it opens offline and can be mailed. Charts are HTML boxes and
// inline SVG drawn with the page's own colours; they follow the reader's light or
// dark theme and the width of the window, and their text is never scaled.
//
// A Page is plain data. Parts that are empty leave no trace on the page.
package report

import (
	"time"

	"caper/annotate"
	"caper/eval"
	"caper/sql"
	"caper/sqlexec"
	"caper/train/ablation"
	"caper/train/prm"
)

// Page is what a report shows.
type Page struct {
	Title string
	// Summary says in a few words what was run. The headline figures are not
	// repeated here: the page makes a sentence of each test itself.
	Summary string
	// Simulated, if not empty, says what was simulated; it is shown as a warning
	// beside the summary.
	Simulated string
	Machine   string
	Date      time.Time
	// Facts are counts worth a glance: databases, questions, rollouts, parameters.
	Facts []Fact
	// Runs are the trainings. The first is the one that the page is about, the
	// others are its ablations.
	Runs []Run
	// Policies are the trainings of policies, compared with the first.
	Policies    []Policy
	Annotations []Annotation
	// Tests are the results of localisation, in the order shown. Those of the
	// first run are shown in full, those of the others beside it.
	Tests []Test
	// Comparisons are tests that several variants took with the same seeds.
	Comparisons []ablation.Comparison
	// Verifications are ways to choose among a policy's samples.
	Verifications []Verification
	Examples      []Example
	Timings       []Timing
	Notes         []string
}

// Fact is a figure with its name, and a remark that may be empty.
type Fact struct{ Name, Value, Note string }

// Run is one training.
type Run struct {
	// Name is what the run is called everywhere on the page, Note what sets it
	// apart from the first.
	Name, Note string
	Config     prm.Config
	// Outcome is nil for a run that is read from its folder, perhaps while it is
	// still going on.
	Outcome *prm.Outcome
	Metrics []prm.Metrics
}

// Annotation is one run of the annotation.
type Annotation struct {
	Name    string
	Summary annotate.Summary
}

// Test is how well one run found the faults of one set of failed queries.
type Test struct {
	// Name is the set's ("unseen databases, known words"), Run a Run's.
	Name, Run string
	// Natural weighs every fault the same, Balanced every clause kind. Either
	// may be nil.
	Natural, Balanced *eval.Localization
}

// Example is a failed query with what a model thought of its clauses.
type Example struct {
	Question, DBID string
	// Origin says where the failure comes from: the operator of the mutation or
	// of the repair, and whether the query was simulated.
	Origin string
	// Clauses are the clauses of the query in their order and, last, its end.
	Clauses []Clause
	// Correct is the gold or the repaired query.
	Correct string
	// Predicted is what the query returned, Expected what it should have.
	Predicted, Expected Answer
}

// Clause is a candidate of localisation: the one with the lowest score is taken to
// be at fault.
type Clause struct {
	Kind   sql.ClauseKind
	Text   string // empty for the end of the query
	Score  float64
	Faulty bool
}

// Clauses returns the candidates of a fault with their scores, as
// eval.ScoreFaults gives them.
func Clauses(f *eval.Fault, scores []float64) []Clause {
	clauses := make([]Clause, len(f.Units))
	for i, text := range f.Units {
		clauses[i] = Clause{Kind: f.Kinds[i], Text: text, Score: scores[i], Faulty: i == f.Faulty}
	}
	return clauses
}

// Answer is what a query returned: a result, or the text of its failure.
type Answer struct {
	Result *sqlexec.Result
	Error  string
}

// AnswerOf makes an Answer of what an execution returned.
func AnswerOf(r *sqlexec.Result, err error) Answer {
	if err != nil {
		return Answer{Error: err.Error()}
	}
	return Answer{Result: r}
}

// Timing says how long one part of the work took.
type Timing struct {
	Name     string
	Duration time.Duration
}
