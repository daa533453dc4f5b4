// Package eval measures what the rest of the program produces.
//
// Failure localisation (caper.md 1.4.9): given failed queries whose faulty clause
// is known, how often does a clause reward model give that clause the lowest
// score, and how much more often than simple rules do?
//
//	faults, err := eval.Faults(data.ReadTuples(path)) // fault.go
//	scores, err := eval.ScoreFaults(ctx, scorer, faults, nil)
//	result := eval.Localize(faults, scores, eval.FitBaselines(training), eval.LocalizeOptions{})
//
// Execution accuracy: does a candidate query give the gold result (execution.go)?
// The score of a whole candidate, from those of its clauses, is query_score.go.
package eval
