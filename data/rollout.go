package data

// Rollout is one candidate query for one question (design: "rollouts").
type Rollout struct {
	Dataset    string     `json:"dataset"`
	QuestionID QuestionID `json:"question_id"`
	DBID       string     `json:"db_id"`
	Question   string     `json:"question"`
	Evidence   string     `json:"evidence"`
	Gold       string     `json:"gold"`
	SQL        string     `json:"sql"`
	// Source is the generator that wrote SQL, Sample its index there.
	Source string `json:"source"`
	Sample int    `json:"sample"`
	// Extra holds the line's unknown fields, written back unchanged.
	Extra Extra `json:"-"`
}
