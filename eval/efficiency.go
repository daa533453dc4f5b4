package eval

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"caper/data"
	"caper/sqlexec"
)

// EfficiencyScore says what a correct prediction's speed is worth.
type EfficiencyScore string

const (
	// VES is BIRD's valid efficiency score of 2023: sqrt(t) with t the mean of gold
	// time / prediction time. A query is timed up to its first row, because that
	// script never fetches.
	VES EfficiencyScore = "ves"
	// RVES is the reward-based score of mini-dev: sqrt(reward(t)), with whole
	// results fetched.
	RVES EfficiencyScore = "rves"
)

// EfficiencyOptions say how MeasureEfficiency times queries.
type EfficiencyOptions struct {
	Score   EfficiencyScore
	Repeats int // pairs of runs for each candidate; the official scripts take 100
	Workers int // more than one at a time disturb each other
	Cache   *sqlexec.Cache
}

// Timed is a candidate judged by the rule Bird, with its speed where it is correct.
type Timed struct {
	Judged
	Score EfficiencyScore
	// Ratio is the official mean of gold time / prediction time; Median the median.
	Ratio, Median float64
	// Value is the candidate's share of the official score, MedianValue the same
	// from the median, which one slow run does not move. Both are 0 where the
	// candidate is not correct; 1 is as fast as gold.
	Value, MedianValue float64
}

// Line returns the candidate with verdict, time_ratio, time_ratio_median and the score
// among its extra fields.
func (t Timed) Line() data.Rollout {
	return withFields(t.Judged.Line(), map[string]any{
		"time_ratio": t.Ratio, "time_ratio_median": t.Median, string(t.Score): 100 * t.Value,
	})
}

// MeasureEfficiency times the correct candidates, gold and prediction in turn, and
// hands all to emit in their order.
func MeasureEfficiency(ctx context.Context, databases Databases, rollouts iter.Seq2[data.Rollout, error], o EfficiencyOptions,
	emit func(Timed) error) error {
	j := newJudge(databases, ExecutionOptions{Rule: Bird, Cache: o.Cache}, o.Evaluator())
	return InOrder(ctx, rollouts, o.Workers, func(ctx context.Context, r data.Rollout) (Timed, error) {
		judged, err := j.judge(ctx, r)
		t := Timed{Judged: judged, Score: o.Score}
		if err != nil || judged.Verdict != Correct {
			return t, err
		}
		ratios, err := j.ratios(ctx, r, o)
		var failed *sqlexec.Error
		if errors.As(err, &failed) {
			t.Verdict, t.Message = TimedOut, fmt.Sprintf("one of %d runs: %v", o.Repeats, failed)
			return t, nil
		} else if err != nil {
			t.Verdict, t.Message, err = failure(err)
			return t, err
		}
		t.Ratio, t.Median = meanWithin3Sigma(ratios), median(ratios)
		t.Value, t.MedianValue = o.Score.value(t.Ratio), o.Score.value(t.Median)
		return t, nil
	}, emit)
}

// ratios times gold and prediction in turn.
func (j *judge) ratios(ctx context.Context, r data.Rollout, o EfficiencyOptions) ([]float64, error) {
	db, err := j.databases.Database(r.DBID)
	if err != nil {
		return nil, err
	}
	if o.Score == VES {
		limits := db.Limits()
		limits.Rows = 1
		if db, err = sqlexec.Open(db.Path(), limits); err != nil {
			return nil, err
		}
		defer db.Close()
	}
	run := func(query string) (time.Duration, error) {
		result, err := db.Query(ctx, query)
		if err != nil {
			return 0, err
		}
		return max(result.Elapsed, time.Nanosecond), nil
	}
	ratios, texts := make([]float64, o.Repeats), newTexts(r, j.quirks)
	for i := range ratios {
		pred, err := run(texts.pred)
		if err != nil {
			return nil, err
		}
		gold, err := run(texts.gold)
		if err != nil {
			return nil, err
		}
		ratios[i] = float64(gold) / float64(pred)
	}
	return ratios, nil
}

// meanWithin3Sigma is the mean of those less than three standard deviations from the
// mean of all. Where all are equal none is, and the official scripts give 0.
func meanWithin3Sigma(values []float64) float64 {
	mean, variance := 0.0, 0.0
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		variance += (v - mean) * (v - mean) / float64(len(values))
	}
	sigma := math.Sqrt(variance)
	sum, n := 0.0, 0
	for _, v := range values {
		if v < mean+3*sigma && v > mean-3*sigma {
			sum += v
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// value is a candidate's share of the score, from its time ratio.
func (s EfficiencyScore) value(ratio float64) float64 {
	if s == VES {
		return math.Sqrt(ratio)
	}
	return math.Sqrt(reward(ratio))
}

// reward steps with the ratio of gold time to prediction time.
func reward(ratio float64) float64 {
	switch {
	case ratio == 0:
		return 0
	case ratio >= 2:
		return 1.25
	case ratio >= 1:
		return 1
	case ratio >= 0.5:
		return 0.75
	case ratio >= 0.25:
		return 0.5
	}
	return 0.25
}
