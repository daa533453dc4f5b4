// Package sqlexec runs untrusted SELECT queries on SQLite files and compares their
// results.
//
// A Database (database.go) is a file opened read-only. Each query goes to a worker
// process (worker.go, worker.c), which can be killed, and runs there on a session
// (session.c) that admits nothing but reading, under limits of time, memory, length
// and result size. Whatever it does is a Result or a typed Error. A Cache (cache.go)
// runs equal queries once. A Rule (rule.go) says whether a prediction's result is as
// good as gold's.
package sqlexec

import "time"

// Value is one cell: nil, int64, float64, string or []byte, as SQLite stored it.
type Value any

// Result is the outcome of a query that ran to its end.
type Result struct {
	Columns []string
	Rows    [][]Value
	// Truncated says that the row limit cut the result.
	Truncated bool
	Elapsed   time.Duration
}

// Failure classifies why a query gave no Result.
type Failure string

const (
	// Syntax: SQLite's grammar rejects the text.
	Syntax Failure = "syntax"
	// NoSuchName: an unknown or ambiguous table, column or function.
	NoSuchName Failure = "no_such_name"
	// NotSelect: not exactly one read-only SELECT, VALUES or WITH statement.
	NotSelect Failure = "not_select"
	// Timeout: the query passed its time limit.
	Timeout Failure = "timeout"
	// Memory: the query passed its memory, length or nesting limit.
	Memory Failure = "memory"
	// Runtime: any other error of the engine while it prepared or ran the query.
	Runtime Failure = "error"
)

// Error is a query's typed failure. Message is the engine's own text.
type Error struct {
	Failure Failure
	Message string
}

func (e *Error) Error() string { return string(e.Failure) + ": " + e.Message }
