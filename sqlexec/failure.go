package sqlexec

// #include "session.h"
// #include "sqlite_api.h"
import "C"

import (
	"errors"
	"fmt"
	"strings"
)

// checkText refuses what SQLite would read only in part.
func checkText(query string) error {
	if i := strings.IndexByte(query, 0); i >= 0 {
		return &Error{Syntax, fmt.Sprintf("NUL byte at offset %d", i)}
	}
	if len(query) > C.MAX_SQL_BYTES {
		return &Error{Memory, fmt.Sprintf("the text has %d bytes; the limit is %d", len(query), C.MAX_SQL_BYTES)}
	}
	return nil
}

func (o *outcome) done() bool { return o.reply.end == C.OUTCOME_DONE }

// failure turns the outcome of a query that did not run to its end into an error.
func (o *outcome) failure(l Limits) error {
	switch o.reply.end {
	case C.OUTCOME_TIMEOUT:
		return timeout(l)
	case C.OUTCOME_RESULT_TOO_LARGE:
		return &Error{Memory, fmt.Sprintf("the result is larger than %d bytes", l.Bytes)}
	case C.OUTCOME_DENIED:
		return &Error{NotSelect, o.message}
	case C.OUTCOME_EMPTY:
		return &Error{NotSelect, "no statement in the text"}
	case C.OUTCOME_NOT_SELECT:
		return &Error{NotSelect, "not a SELECT, VALUES or WITH statement"}
	case C.OUTCOME_SECOND_STATEMENT:
		return &Error{NotSelect, "text after the first statement"}
	case C.OUTCOME_PARAMETERS:
		return &Error{Runtime, "the query has bind parameters, and there is nothing to bind"}
	}
	if o.reply.code&0xff == C.SQLITE_NOMEM || o.reply.code == C.SQLITE_IOERR_NOMEM {
		return &Error{Memory, "out of memory"}
	}
	if fileIsAtFault(o.reply.code) {
		return errors.New(o.message)
	}
	return &Error{classify(o.reply.code, o.message), o.message}
}

func timeout(l Limits) error {
	if l.Instructions > 0 {
		return &Error{Timeout, fmt.Sprintf("not done after %v or %d instructions", l.Timeout, l.Instructions)}
	}
	return &Error{Timeout, fmt.Sprintf("not done after %v", l.Timeout)}
}

// fileIsAtFault tells errors of the database file from errors of the query.
func fileIsAtFault(code C.int32_t) bool {
	switch code & 0xff {
	case C.SQLITE_IOERR, C.SQLITE_CORRUPT, C.SQLITE_CANTOPEN, C.SQLITE_NOTADB:
		return true
	}
	return false
}

// classify sorts SQLite's errors. Its code for most of them is the same, so the
// message decides.
func classify(code C.int32_t, message string) Failure {
	switch {
	case code&0xff == C.SQLITE_TOOBIG:
		return Memory
	case startsWith(message, "too many ", "Expression tree is too large", "Recursion limit", "at most ", "VIEWs and/or subqueries nested too deep",
		"LIKE or GLOB pattern too complex"):
		return Memory
	case startsWith(message, "unsafe use of "), strings.HasSuffix(message, " may not be modified"), strings.HasSuffix(message, " because it is a view"):
		return NotSelect
	case startsWith(message, "no such ", "ambiguous column name", "unknown function", "unknown database"):
		return NoSuchName
	case strings.Contains(message, "syntax error"), startsWith(message, "incomplete input", "unrecognized token"):
		return Syntax
	}
	return Runtime
}

func startsWith(text string, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(text, p) {
			return true
		}
	}
	return false
}
