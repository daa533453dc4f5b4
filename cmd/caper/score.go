package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"caper/data"
	"caper/eval"
	"caper/model"
	"caper/sql"
)

type scoreCommand struct {
	Model      string `help:"Reward model folder." required:"" type:"path"`
	In         string `help:"Candidate file." required:"" type:"path"`
	Out        string `help:"The candidates with clauses, end_score and score." required:"" type:"path"`
	Bench      string `help:"Benchmark folder, for lines without a prompt." type:"path"`
	Format     string `help:"auto, spider, bird or synsql." default:"auto" enum:"auto,spider,bird,synsql"`
	Split      string `help:"Split of the benchmark." default:"dev"`
	Aggregate  string `help:"How a query's score is made of its clauses': mean, min, last or sum." default:"mean" enum:"mean,min,last,sum"`
	modelFlags `embed:""`
}

func (c *scoreCommand) Help() string {
	return `Example:
  caper score --model runs/tiny/model --bench spider --in rollouts.jsonl --out scores.jsonl

The score of a query is the mean (--aggregate) of log sigmoid of its clauses' scores: the higher the better.`
}

// scoredClause is a clause of a scored candidate: its byte span and score.
type scoredClause struct {
	Kind  sql.ClauseKind `json:"kind"`
	Start int            `json:"start"`
	End   int            `json:"end"`
	Score float64        `json:"score"`
}

// Validate checks the flags.
func (c *scoreCommand) Validate() error {
	return cmp.Or(c.modelFlags.check(), checkOutput(c.Out, c.In))
}

func (c *scoreCommand) Run(ctx context.Context) error {
	scorer, err := c.scorer(c.Model)
	if err != nil {
		return err
	}
	var bench *data.Benchmark
	if c.Bench != "" {
		if bench, err = data.OpenBenchmark(c.Bench, c.Format); err != nil {
			return err
		}
		defer bench.Close()
	}
	w, err := data.Create(c.Out)
	if err != nil {
		return err
	}
	defer w.Discard()
	count := 0
	// Consecutive candidates of one prompt are scored together: they share it.
	var group []data.Rollout
	prompt := ""
	flush := func() error {
		if len(group) == 0 {
			return nil
		}
		err := c.writeScores(scorer, prompt, group, w)
		count += len(group)
		group = group[:0]
		return err
	}
	for r, err := range data.ReadRollouts(c.In, bench, c.Split) {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		p, err := promptOf(r, bench)
		if err != nil {
			return fmt.Errorf("%s: question %s: %w", c.In, r.QuestionID, err)
		}
		if p != prompt || len(group) == 64 {
			if err := flush(); err != nil {
				return err
			}
			prompt = p
		}
		group = append(group, r)
	}
	if err := flush(); err != nil {
		return err
	}
	if err := w.Commit(); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s scored in %s%s\n", counted(count, "candidate"), c.Out, saved(scorer.Sharing))
	return nil
}

// promptOf is the line's own prompt, or the benchmark's for its question.
func promptOf(r data.Rollout, bench *data.Benchmark) (string, error) {
	if raw, ok := r.Extra["prompt"]; ok {
		var prompt string
		if err := json.Unmarshal(raw, &prompt); err != nil {
			return "", fmt.Errorf("field \"prompt\": %w", data.PlainJSONError(err))
		}
		return prompt, nil
	}
	if bench == nil {
		return "", fmt.Errorf("no field \"prompt\": give --bench")
	}
	return bench.Prompt(data.Question{
		Dataset: r.Dataset, ID: r.QuestionID, DBID: r.DBID, Question: r.Question, Evidence: r.Evidence,
	})
}

func (c *scoreCommand) writeScores(scorer *model.Scorer, prompt string, group []data.Rollout, w *data.File) error {
	var queries []string
	for _, r := range group {
		queries = append(queries, r.SQL)
	}
	request := eval.ScoreRequest(prompt, queries)
	for i, scores := range scorer.Score([]model.Request{request})[0] {
		r := group[i]
		if r.Extra == nil {
			r.Extra = data.Extra{}
		}
		spans := sql.Clauses(r.SQL)
		clauses := make([]scoredClause, len(spans))
		for k, span := range spans {
			clauses[k] = scoredClause{span.Kind, span.Start, span.End, scores.Clauses[k]}
		}
		total := eval.QueryScore(scores, eval.Aggregate(c.Aggregate))
		for key, value := range map[string]any{"clauses": clauses, "end_score": scores.End, "score": total} {
			raw, err := data.Marshal(value)
			if err != nil {
				return err
			}
			r.Extra[key] = raw
		}
		if err := w.WriteLine(r); err != nil {
			return err
		}
	}
	return nil
}
