// Package exactmatch is Spider's exact set match: two queries are the same when
// their clauses are, each taken as a set of parts, whatever their literals.
//
// The official evaluator (evaluation.py and process_sql.py of taoyds/spider and
// taoyds/test-suite-sql-eval) reads a query with a small parser of its own, which
// knows the queries of Spider and little else. Its verdict depends on what that
// parser misses as much as on what it sees, so this package follows it to the
// letter, and names every departure from a plain comparison (Quirk) so that it can
// be left out.
//
//	script := exactmatch.Spider                    // script.go
//	gold, err := script.Parse(schema, goldSQL)     // tokens.go, parse.go
//	pred, err := script.Parse(schema, predSQL)
//	score := exactmatch.Compare(gold, pred, schema, script.Quirks()) // compare.go
//	level := gold.Hardness()                       // hardness.go
//
// The table that the official script prints is Report (report.go).
package exactmatch
