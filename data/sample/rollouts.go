package sample

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"caper/data"
)

// RolloutOptions sets how many candidates the simulated writers give.
type RolloutOptions struct {
	Seed uint64
	// Splits to write; all when empty.
	Splits []string
	// Samples of each writer for each question.
	Samples int
}

// DefaultRolloutOptions is what `caper demo` uses.
func DefaultRolloutOptions() RolloutOptions { return RolloutOptions{Seed: 1, Samples: 1} }

// RolloutSummary counts what WriteRollouts wrote.
type RolloutSummary struct {
	// Rollouts by split.
	Rollouts map[string]int `json:"rollouts"`
	// Faults by name; "none", "syntax" and "timeout" count rollouts without a
	// fault, with broken text, and without an end.
	Faults map[string]int `json:"faults"`
}

// simulated is one writer. Its rollouts are no model's: the word "simulated" in
// the name says so wherever they are used.
type simulated struct {
	name      string
	faultRate float64
}

var writers = []simulated{{"simulated-a", 0.40}, {"simulated-b", 0.50}, {"simulated-c", 0.62}}

// Shares of all candidates that are no SQL and that never end.
const (
	syntaxShare  = 0.01
	timeoutShare = 0.0003
)

// RolloutPath is where WriteRollouts puts a split's candidates.
func RolloutPath(dir, split string) string { return filepath.Join(dir, "rollouts", split+".jsonl") }

// WriteRollouts writes simulated candidates for the questions of a benchmark
// that Write wrote to dir. A candidate depends on the seed, its question, its
// writer and its sample index only. It stops when ctx ends.
func WriteRollouts(ctx context.Context, dir string, o RolloutOptions) (RolloutSummary, error) {
	summary := RolloutSummary{map[string]int{}, map[string]int{}}
	if o.Samples < 1 {
		return summary, fmt.Errorf("simulated rollouts: %d samples a writer: need at least one", o.Samples)
	}
	schemas, err := readSchemas(dir)
	if err != nil {
		return summary, fmt.Errorf("simulated rollouts: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "rollouts"), 0o755); err != nil {
		return summary, fmt.Errorf("simulated rollouts: %w", err)
	}
	splits := o.Splits
	if len(splits) == 0 {
		splits = Splits
	}
	for _, split := range splits {
		questions, err := readSplit(dir, split)
		if err != nil {
			return summary, fmt.Errorf("simulated rollouts: %w", err)
		}
		var rollouts []data.Rollout
		for i, q := range questions {
			if err := ctx.Err(); err != nil {
				return summary, err
			}
			s := schemas[q.question.DBID]
			if s == nil {
				return summary, fmt.Errorf("simulated rollouts: %s: question %d: no database %s in tables.json", splitPath(dir, split), i, q.question.DBID)
			}
			rollouts = append(rollouts, o.rollouts(s, q, i, &summary)...)
		}
		summary.Rollouts[split] = len(rollouts)
		if err := data.WriteRollouts(RolloutPath(dir, split), slices.Values(rollouts)); err != nil {
			return summary, fmt.Errorf("simulated rollouts: %w", err)
		}
	}
	return summary, nil
}

// rollouts writes all candidates of one question.
func (o RolloutOptions) rollouts(s *schema, q planned, index int, summary *RolloutSummary) []data.Rollout {
	var all []data.Rollout
	for _, w := range writers {
		for sample := range o.Samples {
			r := randomFor(o.Seed, "rollout", s.id, q.question.Question, w.name, fmt.Sprint(sample))
			text, faults := w.write(r, s, q.plan)
			for _, name := range faults {
				summary.Faults[name]++
			}
			all = append(all, data.Rollout{
				Dataset:    "sample",
				QuestionID: data.IndexID(index),
				DBID:       s.id,
				Question:   q.question.Question,
				Gold:       q.question.Query,
				SQL:        text,
				Source:     w.name,
				Sample:     sample,
			})
		}
	}
	return all
}

// write returns a candidate's text and the names of its faults.
func (w simulated) write(r *rand.Rand, s *schema, p plan) (text string, faults []string) {
	q := p.Query.Clone()
	switch draw := r.Float64(); {
	case draw < timeoutShare:
		return endless(r, q), []string{"timeout"}
	case draw < timeoutShare+syntaxShare:
		return broken(r, q.SQL(p.Style)), []string{"syntax"}
	case draw < timeoutShare+syntaxShare+w.faultRate:
		f := &faulter{r, s}
		for range pick(r, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3) {
			var name string
			q, name = f.inject(q)
			faults = append(faults, name)
		}
	default:
		faults = []string{"none"}
	}
	if chance(r, 0.06) {
		rewrite(r, q)
	}
	return q.SQL(restyle(r, p.Style)), faults
}

// broken spoils the text so that it is no SQL any more: a truncated answer, a
// doubled comma, a lost keyword.
func broken(r *rand.Rand, text string) string {
	switch r.IntN(3) {
	case 0:
		return text[:strings.LastIndexByte(text, ' ')] + " ("
	case 1:
		return strings.Replace(text, "SELECT ", "SELECT , ", 1)
	default:
		return strings.Replace(text, " FROM ", " ", 1)
	}
}

// endless is a query that no time limit is long enough for.
func endless(r *rand.Rand, q *Query) string {
	if chance(r, 0.5) {
		return "WITH RECURSIVE step(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM step) SELECT count(*) FROM step"
	}
	copies := make([]string, 8)
	for i := range copies {
		copies[i] = fmt.Sprintf("%s AS T%d", q.Subject, i+1)
	}
	return "SELECT count(*) FROM " + strings.Join(copies, " JOIN ")
}
