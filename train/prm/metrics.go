package prm

// Metrics is one line of metrics.jsonl. A line is either a step or a validation.
type Metrics struct {
	Step  int     `json:"step"`
	Epoch float64 `json:"epoch"`
	// Of a step. Loss is the whole objective; Accuracy the share of pairs whose
	// chosen clause scores higher; GradNorm is taken before clipping.
	Loss     *float64 `json:"loss,omitempty"`
	Accuracy *float64 `json:"accuracy,omitempty"`
	GradNorm *float64 `json:"grad_norm,omitempty"`
	LR       *float64 `json:"lr,omitempty"`
	Pairs    int      `json:"pairs,omitempty"`
	// Tokens counts packed tokens, Unpacked what separate sequences would hold; Sharing
	// is the second over the first.
	Tokens          int     `json:"tokens,omitempty"`
	Unpacked        int     `json:"tokens_unpacked,omitempty"`
	Sharing         float64 `json:"sharing,omitempty"`
	TokensPerSecond float64 `json:"tokens_per_second,omitempty"`
	// Skipped says that loss or gradient was not finite and nothing was updated.
	Skipped bool `json:"skipped,omitempty"`
	// Of a validation: localisation on held-out databases.
	Top1      *float64 `json:"top1,omitempty"`
	MRR       *float64 `json:"mrr,omitempty"`
	Validated int      `json:"validated,omitempty"`
	Best      bool     `json:"best,omitempty"`
}
