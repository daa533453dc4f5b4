package solve

import (
	"caper/data"
)

// Lines is the candidate taken, as the file of chosen queries holds it: with its scores,
// what decided, and what it cost.
func (d Decision) Lines() ([]data.Rollout, error) {
	x := &d.Candidates[d.Chosen]
	fields := map[string]any{"state": x.State, "stage": d.Stage, "margin": d.Margin, "candidates": len(d.Candidates), "cost": d.Cost}
	for _, c := range d.Classes {
		for _, i := range c.Members {
			if i == d.Chosen {
				fields["votes"], fields["s_maj"], fields["s_rm"], fields["score"] = c.Votes, c.Consensus, c.Reward, c.Score
			}
		}
	}
	if x.Message != "" {
		fields["message"] = x.Message
	}
	line, err := x.line(fields)
	return []data.Rollout{line}, err
}
