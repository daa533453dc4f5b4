package sft

// Metrics is one line of metrics.jsonl. A line is either a step or a validation.
type Metrics struct {
	Step  int     `json:"step"`
	Epoch float64 `json:"epoch"`
	// Of a step. Loss is the mean of -log p over Predicted tokens: those of queries and
	// their ends; GradNorm is taken before clipping.
	Loss      *float64 `json:"loss,omitempty"`
	GradNorm  *float64 `json:"grad_norm,omitempty"`
	LR        *float64 `json:"lr,omitempty"`
	Queries   int      `json:"queries,omitempty"`
	Predicted int      `json:"predicted,omitempty"`
	// Tokens counts packed tokens, Unpacked what separate sequences would hold; Sharing
	// is the second over the first.
	Tokens          int     `json:"tokens,omitempty"`
	Unpacked        int     `json:"tokens_unpacked,omitempty"`
	Sharing         float64 `json:"sharing,omitempty"`
	TokensPerSecond float64 `json:"tokens_per_second,omitempty"`
	// Skipped says that loss or gradient was not finite and nothing was updated.
	Skipped bool `json:"skipped,omitempty"`
	// Of a validation: the execution accuracy of greedy answers to held-out questions, of
	// all, of databases that are trained on, and of databases that are not.
	EX        *float64 `json:"ex,omitempty"`
	EXSeen    *float64 `json:"ex_seen,omitempty"`
	EXUnseen  *float64 `json:"ex_unseen,omitempty"`
	Validated int      `json:"validated,omitempty"`
	Best      bool     `json:"best,omitempty"`
	// Seconds that the validation took.
	Seconds float64 `json:"seconds,omitempty"`
}
