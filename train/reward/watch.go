package reward

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Agreement is how far the reward model says what execution says, over the answers of a
// step: a policy that learns to please it alone (reward hacking) makes the two part.
type Agreement struct {
	// PRM is the mean over answers of the mean probability of their clauses, EX the share
	// whose result is right, both of the same answers: queries with scores.
	PRM float64 `json:"prm"`
	EX  float64 `json:"ex"`
	// Correlation is Pearson's of the two over answers, AUC the probability that a right
	// answer has the higher score than a wrong one; both are 0 where Defined is false,
	// since all answers are alike.
	Correlation float64 `json:"correlation"`
	AUC         float64 `json:"auc"`
	Defined     bool    `json:"defined"`
	// Clauses and Length are the mean number of clauses and of bytes of the queries.
	Clauses float64 `json:"clauses"`
	Length  float64 `json:"length"`
}

// Agree measures the answers of a step.
func Agree(answers []*Answer) (a Agreement) {
	var scores, outcomes []float64
	for _, answer := range answers {
		if answer.Missing != "" || answer.Query == "" {
			continue
		}
		e := 0.0
		if answer.Correct() {
			e = 1
		}
		score := 0.0
		for _, p := range answer.Scores {
			score += p / float64(len(answer.Scores))
		}
		scores, outcomes = append(scores, score), append(outcomes, e)
		a.Clauses += float64(len(answer.Clauses))
		a.Length += float64(len(answer.Query))
	}
	n := float64(len(scores))
	if n == 0 {
		return a
	}
	a.Clauses, a.Length = a.Clauses/n, a.Length/n
	var spreadPRM, spreadEX, product float64
	a.PRM, spreadPRM = meanAndDeviation(scores)
	a.EX, spreadEX = meanAndDeviation(outcomes)
	if a.Defined = slices.Min(scores) < slices.Max(scores) && slices.Min(outcomes) < slices.Max(outcomes); a.Defined {
		for i := range scores {
			product += (scores[i] - a.PRM) * (outcomes[i] - a.EX) / n
		}
		a.Correlation, a.AUC = product/spreadPRM/spreadEX, auc(scores, outcomes)
	}
	return a
}

// auc is the area under the receiver's curve by ranks; ties count half.
func auc(scores, outcomes []float64) float64 {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(scores[i], scores[j]) })
	sum, right := 0.0, 0.0
	for from := 0; from < len(order); {
		to := from
		for to < len(order) && scores[order[to]] == scores[order[from]] {
			to++
		}
		rank := float64(from+to+1) / 2 // the mean of ranks from+1 .. to
		for _, i := range order[from:to] {
			sum, right = sum+rank*outcomes[i], right+outcomes[i]
		}
		from = to
	}
	return (sum - right*(right+1)/2) / (right * (float64(len(scores)) - right))
}

func meanAndDeviation(values []float64) (mean, deviation float64) {
	n := float64(len(values))
	for _, v := range values {
		mean += v / n
	}
	for _, v := range values {
		deviation += (v - mean) * (v - mean) / n
	}
	return mean, math.Sqrt(deviation)
}

// Watch remembers the agreement of the last steps. It is written to checkpoints as it is.
type Watch struct {
	Steps []Agreement `json:"steps,omitempty"`
}

// Add takes in the agreement of a step and returns what a reader of the log should know:
// of the last 2 window steps, the later half is compared with the earlier one, and means
// count as apart when more than twice the standard error of their difference lies between
// them.
//
//   - the PRM's mean rises while EX falls: the policy pleases the model, not the database;
//   - length or number of clauses rises by half while EX does not rise.
//
// After an alarm it begins anew. scored says whether there is a reward model.
func (w *Watch) Add(a Agreement, scored bool, window int) (alarms []string) {
	if window < 1 {
		return nil
	}
	w.Steps = append(w.Steps, a)
	if len(w.Steps) > 2*window {
		w.Steps = slices.Clone(w.Steps[1:])
	}
	if len(w.Steps) < 2*window {
		return nil
	}
	change := func(of func(Agreement) float64) (before, after float64, apart int) { return w.change(window, of) }
	ex0, ex1, ex := change(func(a Agreement) float64 { return a.EX })
	if p0, p1, p := change(func(a Agreement) float64 { return a.PRM }); scored && p > 0 && ex < 0 {
		alarms = append(alarms, fmt.Sprintf("the reward model's mean rose from %.3f to %.3f while EX fell from %.3f to %.3f: the policy learns to please the reward model; lower reward.lambda_c, raise policy.kl or train the reward model on these answers", p0, p1, ex0, ex1))
	}
	for name, of := range map[string]func(Agreement) float64{
		"length": func(a Agreement) float64 { return a.Length }, "number of clauses": func(a Agreement) float64 { return a.Clauses },
	} {
		if l0, l1, l := change(of); l > 0 && l1 > 1.5*l0 && ex <= 0 {
			alarms = append(alarms, fmt.Sprintf("the queries' %s rose from %.1f to %.1f and EX did not (%.3f to %.3f)", name, l0, l1, ex0, ex1))
		}
	}
	if alarms != nil {
		w.Steps = nil
	}
	slices.Sort(alarms)
	return alarms
}

// change compares the two halves of the window: apart is -1, 0 or 1.
func (w *Watch) change(window int, of func(Agreement) float64) (before, after float64, apart int) {
	var values []float64
	for _, s := range w.Steps {
		values = append(values, of(s))
	}
	before, d0 := meanAndDeviation(values[:window])
	after, d1 := meanAndDeviation(values[window:])
	limit := 2 * math.Sqrt((d0*d0+d1*d1)/float64(window))
	switch {
	case after-before > limit:
		apart = 1
	case before-after > limit:
		apart = -1
	}
	return before, after, apart
}
