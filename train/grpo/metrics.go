package grpo

import (
	"math"

	"caper/train/policy"
	"caper/train/reward"
)

// Metrics is one line of metrics.jsonl: a step or a validation.
type Metrics struct {
	Step  int     `json:"step"`
	Epoch float64 `json:"epoch"`

	// Of a step. Groups learned from; those without a signal, which were left out; those
	// without any reward.
	Groups   int `json:"groups,omitempty"`
	NoSignal int `json:"groups_without_signal,omitempty"`
	Empty    int `json:"groups_without_reward,omitempty"`
	// Batches is how often questions were drawn (dynamic sampling), Samples what came.
	Batches int `json:"batches,omitempty"`
	Samples int `json:"samples,omitempty"`
	// Lost counts samples that never came and Missing those without a reward, by reason.
	Lost    map[string]int `json:"lost,omitempty"`
	Missing map[string]int `json:"missing,omitempty"`
	// Outcomes counts samples by verdict, Histogram groups by how many of their samples
	// are right.
	Outcomes  map[string]int `json:"outcomes,omitempty"`
	Histogram map[int]int    `json:"group_outcomes,omitempty"`
	// EX is the share of right samples among those with a reward.
	EX *float64 `json:"ex,omitempty"`
	// Reward is the mean over samples of G_1, Kinds the mean probability that the reward
	// model gives clauses of each kind.
	Reward *float64           `json:"reward,omitempty"`
	Kinds  map[string]float64 `json:"clause_scores,omitempty"`
	// Spread is the deviation of advantages over tokens, Largest the largest by value.
	Spread  *float64 `json:"advantage_std,omitempty"`
	Largest *float64 `json:"advantage_max,omitempty"`
	// Agreement of reward model and execution.
	Agreement *reward.Agreement `json:"agreement,omitempty"`
	Alarms    []string          `json:"alarms,omitempty"`

	Loss     *float64 `json:"loss,omitempty"`
	GradNorm *float64 `json:"grad_norm,omitempty"`
	LR       *float64 `json:"lr,omitempty"`
	// Entropy is estimated by the sampled tokens, in nats; EntropyWeight is the gated
	// bonus; KL is k3 to the reference; Clipped the share of tokens past a bound, in the
	// last pass; SamplerKL is k3 from what the tokens were drawn from to the policy as the
	// trainer computes it.
	Entropy       *float64 `json:"entropy,omitempty"`
	EntropyWeight *float64 `json:"entropy_weight,omitempty"`
	KL            *float64 `json:"kl,omitempty"`
	Clipped       *float64 `json:"clip_share,omitempty"`
	SamplerKL     *float64 `json:"sampler_trainer_kl,omitempty"`
	// Length is the mean number of tokens of a sample, Truncated the share that was cut
	// off. Tokens are those of the packed trees, Unpacked what separate sequences hold.
	Length    *float64 `json:"length,omitempty"`
	Truncated *float64 `json:"truncated,omitempty"`
	Tokens    int      `json:"tokens,omitempty"`
	Unpacked  int      `json:"tokens_unpacked,omitempty"`
	// Seconds of a step's phases and of all; Waited is the share that it waited for
	// execution and scores.
	Seconds         map[string]float64 `json:"seconds,omitempty"`
	Waited          *float64           `json:"waited,omitempty"`
	SampledPerSec   float64            `json:"sampled_tokens_per_second,omitempty"`
	TokensPerSecond float64            `json:"tokens_per_second,omitempty"`
	Skipped         bool               `json:"skipped,omitempty"` // not finite: nothing was updated

	// Of a validation: execution accuracy of greedy answers.
	ValidationEX *float64 `json:"validation_ex,omitempty"`
	Validated    int      `json:"validated,omitempty"`
	Best         bool     `json:"best,omitempty"`
}

// describe fills in what the groups of a step tell.
func (m *Metrics) describe(groups []*group, o policy.Options, length func(g *group, i int) (tokens int, cut bool)) (answers []*reward.Answer) {
	m.Lost, m.Missing, m.Outcomes, m.Histogram = map[string]int{}, map[string]int{}, map[string]int{}, map[int]int{}
	m.Kinds = map[string]float64{}
	var total, ex, tokens, cut, square, count, largest float64
	clauses := map[string]int{}
	rewarded := 0
	for _, g := range groups {
		for reason, n := range g.lost {
			m.Lost[reason] += n
		}
		right := 0
		for i, a := range g.answers {
			n, truncated := length(g, i)
			tokens += float64(n)
			if truncated {
				cut++
			}
			if a.Missing != "" {
				m.Missing[a.Missing]++
				continue
			}
			m.Outcomes[string(a.Verdict)]++
			if a.Correct() {
				right++
			}
			for k, p := range a.Scores {
				kind := string(a.Clauses[k].Kind)
				m.Kinds[kind] += p
				clauses[kind]++
			}
		}
		for _, s := range g.rewarded {
			total += o.Returns(o.Rewards(s))[0]
		}
		for _, advantages := range g.advantages {
			for _, a := range advantages {
				square, count, largest = square+float64(a)*float64(a), count+1, max(largest, math.Abs(float64(a)))
			}
		}
		m.Samples += len(g.answers)
		rewarded += len(g.rewarded)
		ex += float64(right)
		m.Histogram[right]++
		switch {
		case len(g.rewarded) == 0:
			m.Empty++
		case g.advantages == nil:
			m.NoSignal++
		default:
			m.Groups++
		}
		answers = append(answers, g.answers...)
	}
	for kind, n := range clauses {
		m.Kinds[kind] /= float64(n)
	}
	share := func(sum float64, n int) *float64 {
		if n == 0 {
			return nil
		}
		sum /= float64(n)
		return &sum
	}
	m.EX, m.Reward = share(ex, rewarded), share(total, rewarded)
	m.Length, m.Truncated = share(tokens, m.Samples), share(cut, m.Samples)
	if count > 0 {
		spread := math.Sqrt(square / count)
		m.Spread, m.Largest = &spread, &largest
	}
	return answers
}
