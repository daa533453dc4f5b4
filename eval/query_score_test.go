package eval

import (
	"math"
	"testing"

	"caper/model"
)

func TestQueryScore(t *testing.T) {
	log := func(x float64) float64 { return -math.Log(1 + math.Exp(-x)) }
	three := model.Scores{Clauses: []float64{2, -1, 0.5}, End: 7}
	for _, k := range []struct {
		scores model.Scores
		by     Aggregate
		want   float64
	}{
		{three, Mean, (log(2) + log(-1) + log(0.5)) / 3},
		{three, Min, log(-1)},
		{three, Last, log(0.5)},
		{three, Sum, log(2) + log(-1) + log(0.5)},
		{model.Scores{End: -3}, Mean, log(-3)},
		{model.Scores{End: -3}, Min, log(-3)},
		{model.Scores{Clauses: []float64{-1000}}, Mean, -1000},
		{model.Scores{Clauses: []float64{1000}}, Sum, 0},
	} {
		if got := QueryScore(k.scores, k.by); math.Abs(got-k.want) > 1e-12 {
			t.Errorf("%s of %v: %v, want %v", k.by, k.scores, got, k.want)
		}
	}
}
