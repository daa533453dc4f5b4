package ablation

import (
	"context"

	"caper/data"
	"caper/eval"
)

// judge gives verdicts on whatever variants have said, each query once.
type judge struct {
	bench   *data.Benchmark
	options eval.ExecutionOptions
	gold    map[key]string
	asked   []data.Rollout
	known   map[judged]eval.Verdict
}

// key tells questions apart; ids alone do not in every benchmark.
type key struct{ id, text string }

type judged struct {
	key
	sql string
}

func keyOf(id data.QuestionID, text string) key { return key{id.String(), text} }

func newJudge(bench *data.Benchmark, split string, o Options) (*judge, error) {
	questions, err := bench.Questions(split)
	if err != nil {
		return nil, err
	}
	j := &judge{
		bench: bench, gold: map[key]string{}, known: map[judged]eval.Verdict{},
		options: eval.ExecutionOptions{Rule: o.Rule, Workers: o.Workers, Schemas: eval.NewSchemas(bench)},
	}
	for _, q := range questions {
		j.gold[keyOf(q.ID, q.Question)] = q.Gold
	}
	return j, nil
}

// ask notes what will be judged.
func (j *judge) ask(a answer) {
	for _, query := range append([]string{a.sql}, a.pool...) {
		k := judged{keyOf(a.question.ID, a.question.Question), query}
		if _, ok := j.known[k]; ok {
			continue
		}
		j.known[k] = ""
		j.asked = append(j.asked, j.rollout(a.question, query))
	}
}

func (j *judge) rollout(q data.Question, query string) data.Rollout {
	return data.Rollout{Dataset: q.Dataset, QuestionID: q.ID, DBID: q.DBID, Question: q.Question, Evidence: q.Evidence,
		Gold: j.gold[keyOf(q.ID, q.Question)], SQL: query}
}

func (j *judge) run(ctx context.Context) error {
	all := func(yield func(data.Rollout, error) bool) {
		for _, r := range j.asked {
			if !yield(r, nil) {
				return
			}
		}
	}
	return eval.Execute(ctx, j.bench, all, j.options, func(v eval.Judged) error {
		j.known[judged{keyOf(v.QuestionID, v.Question), v.SQL}] = v.Verdict
		return nil
	})
}

// row sums up a variant's answers.
func (j *judge) row(v variant, answers []answer) (Row, *eval.Verdicts, error) {
	row := Row{Part: v.part, Variant: v.name}
	verdicts := &eval.Verdicts{Name: v.name, By: j.options.Evaluator(), Dataset: j.bench.Name}
	for _, a := range answers {
		k := keyOf(a.question.ID, a.question.Question)
		verdict := j.known[judged{k, a.sql}]
		if verdict == eval.Correct {
			row.Correct++
		}
		for _, query := range a.pool {
			if j.known[judged{k, query}] == eval.Correct {
				row.Oracle++
				break
			}
		}
		row.Candidates += len(a.pool)
		row.Cost.Add(a.cost)
		if err := verdicts.Add(j.rollout(a.question, a.sql), verdict); err != nil {
			return row, nil, err
		}
	}
	return row, verdicts, nil
}
