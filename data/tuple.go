package data

// Tuple is one clause-level preference (docs/formats.md). A file of them loads in
// TRL's reward trainer as it is: prompt, chosen, rejected, margin.
type Tuple struct {
	ID         string     `json:"id"`
	Dataset    string     `json:"dataset"`
	QuestionID QuestionID `json:"question_id"`
	DBID       string     `json:"db_id"`
	Question   string     `json:"question"`
	Evidence   string     `json:"evidence"`
	// Split is decided by database, never by question.
	Split  string `json:"split"`
	Prompt string `json:"prompt"`
	// Prefix is, byte for byte, a prefix of both queries; Prefix+Chosen starts
	// SQLChosen and Prefix+Rejected starts SQLRejected.
	Prefix      string `json:"prefix"`
	Chosen      string `json:"chosen"`
	Rejected    string `json:"rejected"`
	SQLChosen   string `json:"sql_chosen"`
	SQLRejected string `json:"sql_rejected"`
	// Clause is the unit's kind; ClauseIndex counts from 0 in SQLRejected,
	// which has ClauseCount units.
	Clause      string `json:"clause"`
	ClauseIndex int    `json:"clause_index"`
	ClauseCount int    `json:"clause_count"`
	// Source is "injection" or "counterfactual". Operator is the mutation
	// ("where.comparison") or, for a counterfactual, "single", "first" or
	// "cascade".
	Source   string `json:"source"`
	Operator string `json:"operator"`
	Root     Root   `json:"root"`
	// Reward is R_k (<= 0), Margin delta_k in (0, alpha] (caper.md 1.4.5-1.4.6).
	Reward float64 `json:"reward"`
	Margin float64 `json:"margin"`
	// EditCost is the cost of the minimum edit script between the two clauses.
	EditCost float64 `json:"edit_cost"`
	// RootClause says that this clause holds v*; false for an enclosing clause
	// with a decayed margin.
	RootClause bool `json:"root_clause"`
	// Cut says that the rollout ran on behind its query, with a comment or a second
	// statement, and that the text there was left out.
	Cut   bool  `json:"cut,omitempty"`
	Extra Extra `json:"-"`
}

// Root is the root-cause node v*: its byte span in SQLRejected, inside the
// rejected clause (zero width where something is missing), and its node kind.
type Root struct {
	Start int    `json:"start"`
	End   int    `json:"end"`
	Kind  string `json:"kind"`
}
