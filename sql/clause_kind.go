package sql

// ClauseKind names a clause unit as the tuple format writes it.
type ClauseKind string

// The clause units of a statement, in canonical order (caper.md 1.4.1). End is
// the empty unit "the query ends here".
const (
	ClauseWith    ClauseKind = "WITH"
	ClauseSelect  ClauseKind = "SELECT"
	ClauseFrom    ClauseKind = "FROM"
	ClauseWhere   ClauseKind = "WHERE"
	ClauseGroupBy ClauseKind = "GROUP BY"
	ClauseHaving  ClauseKind = "HAVING"
	ClauseWindow  ClauseKind = "WINDOW"
	ClauseSetOp   ClauseKind = "SETOP"
	ClauseOrderBy ClauseKind = "ORDER BY"
	ClauseLimit   ClauseKind = "LIMIT"
	ClauseEnd     ClauseKind = "END"
)

// Clause is one unit of a statement: a kind and the half-open byte span
// [Start, End) it covers, trailing white space included, so that the units of a
// statement partition its text.
type Clause struct {
	Kind       ClauseKind
	Start, End int
}
