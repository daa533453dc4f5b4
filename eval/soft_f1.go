package eval

import (
	"context"
	"iter"
	"slices"

	"caper/data"
	"caper/sqlexec"
)

// SoftF1 is BIRD mini-dev's measure of how much of gold's table a prediction's holds.
// Duplicate rows are dropped, the first kept; row i is compared with row i alone. In
// a pair of rows, of width w on gold's side,
//
//	tp += predicted cells that gold's row has somewhere / w
//	fp += the other predicted cells / w
//	fn += gold's cells that the predicted row has nowhere / w
//
// a gold row without a partner adds 1 to fn, a predicted one 1 to fp, and the result
// is 2pr/(p+r) with p = tp/(tp+fp), r = tp/(tp+fn). Two empty tables give 1.
func SoftF1(gold, pred *sqlexec.Result) float64 {
	g, p := sqlexec.DistinctRows(gold.Rows), sqlexec.DistinctRows(pred.Rows)
	if len(g) == 0 && len(p) == 0 {
		return 1
	}
	tp, fp, fn := 0.0, 0.0, 0.0
	for i := range max(len(g), len(p)) {
		switch {
		case i >= len(p):
			fn++
		case i >= len(g):
			fp++
		default:
			width := float64(len(g[i]))
			found := float64(cellsIn(p[i], g[i]))
			tp += found / width
			fp += (float64(len(p[i])) - found) / width
			fn += (width - float64(cellsIn(g[i], p[i]))) / width
		}
	}
	if tp == 0 {
		return 0
	}
	precision, recall := tp/(tp+fp), tp/(tp+fn)
	return 2 * precision * recall / (precision + recall)
}

// cellsIn counts the cells of a row that another row has somewhere.
func cellsIn(row, other []sqlexec.Value) (n int) {
	for _, v := range row {
		if slices.ContainsFunc(other, func(w sqlexec.Value) bool { return sqlexec.Equal(v, w) }) {
			n++
		}
	}
	return n
}

// Softly is a candidate judged by the rule Bird, with its Soft-F1: 0 where it or gold
// did not run.
type Softly struct {
	Judged
	SoftF1 float64
}

// Line returns the candidate with verdict and soft_f1 among its extra fields.
func (s Softly) Line() data.Rollout {
	return withFields(s.Judged.Line(), map[string]any{"soft_f1": s.SoftF1})
}

// SoftF1Evaluator is what JudgeSoftly judges by.
var SoftF1Evaluator = newEvaluator("softf1", string(Bird), nil)

// JudgeSoftly judges candidates by Soft-F1 and hands them to emit in their order.
func JudgeSoftly(ctx context.Context, databases Databases, rollouts iter.Seq2[data.Rollout, error], workers int,
	emit func(Softly) error) error {
	j := newJudge(databases, ExecutionOptions{Rule: Bird}, SoftF1Evaluator)
	return InOrder(ctx, rollouts, workers, func(ctx context.Context, r data.Rollout) (Softly, error) {
		judged, err := j.judge(ctx, r)
		if err != nil || judged.Verdict != Correct && judged.Verdict != Wrong {
			return Softly{Judged: judged}, err
		}
		gold, pred, err := j.results(ctx, r)
		if err != nil {
			judged.Verdict, judged.Message, err = failure(err)
			return Softly{Judged: judged}, err
		}
		return Softly{judged, SoftF1(gold, pred)}, nil
	}, emit)
}

// results are those of a candidate whose queries both ran.
func (j *judge) results(ctx context.Context, r data.Rollout) (gold, pred *sqlexec.Result, err error) {
	db, err := j.databases.Database(r.DBID)
	if err != nil {
		return nil, nil, err
	}
	goldRecord, predRecord, err := j.run(ctx, db, newTexts(r, j.quirks))
	if err != nil {
		return nil, nil, err
	}
	return goldRecord.Result(), predRecord.Result(), nil
}
