package eval

import (
	"math"
	"slices"

	"caper/model"
	"caper/sql"
)

// Aggregate says how the scores of a query's clauses become one score of the query
// (caper.md 1.4.10).
type Aggregate string

const (
	Mean Aggregate = "mean" // of all clauses
	Min  Aggregate = "min"  // the worst clause
	Last Aggregate = "last" // the last clause, at which the model has read them all
	Sum  Aggregate = "sum"  // the joint probability that every clause is right
)

// QueryScore returns S(y), which ranks candidates for one question: with s_k the
// scores of the clauses,
//
//	S(y) = mean_k log sigmoid(s_k)
//
// or another aggregate in the mean's place. It is below 0; the higher the better. A
// query without clauses has nothing but its end to be judged by.
func QueryScore(scores model.Scores, by Aggregate) float64 {
	if len(scores.Clauses) == 0 {
		return logSigmoid(scores.End)
	}
	logs := make([]float64, len(scores.Clauses))
	sum := 0.0
	for k, s := range scores.Clauses {
		logs[k] = logSigmoid(s)
		sum += logs[k]
	}
	switch by {
	case Min:
		return slices.Min(logs)
	case Last:
		return logs[len(logs)-1]
	case Sum:
		return sum
	}
	return sum / float64(len(logs))
}

// ScoreRequest asks for the scores of whole queries behind a prompt, each cut into its
// clauses.
func ScoreRequest(prompt string, queries []string) model.Request {
	request := model.Request{Prompt: prompt}
	for _, query := range queries {
		var units []string
		for _, c := range sql.Clauses(query) {
			units = append(units, query[c.Start:c.End])
		}
		request.Queries = append(request.Queries, units)
	}
	return request
}

// logSigmoid is log(1 / (1 + exp(-x))) without overflow.
func logSigmoid(x float64) float64 { return math.Min(x, 0) - math.Log1p(math.Exp(-math.Abs(x))) }
