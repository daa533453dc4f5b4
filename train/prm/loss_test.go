package prm

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"caper/data"
	"caper/engine"
	"caper/model"
	"caper/sql"
)

// spread gives a fresh model scores far apart: with its own, all losses are log 2.
func spread(r *prm) {
	for i := range r.run.Model.Score.F32 {
		r.run.Model.Score.F32[i] *= 100
	}
}

// scorePairs scores the clauses of tuples one query at a time, with nothing
// packed: [chosen, rejected] for each tuple.
func scorePairs(t *testing.T, m *model.Model, tuples []data.Tuple) [][2]float64 {
	t.Helper()
	scorer, err := model.NewScorer(m, 1)
	if err != nil {
		t.Fatal(err)
	}
	score := func(prompt string, units []string, clause string) float64 {
		if clause != "" {
			units = append(units[:len(units):len(units)], clause)
		}
		s := scorer.Score([]model.Request{{Prompt: prompt, Queries: [][]string{units}}})[0][0]
		if clause == "" {
			return s.End
		}
		return s.Clauses[len(units)-1]
	}
	scores := make([][2]float64, len(tuples))
	for i, tuple := range tuples {
		var units []string
		for _, c := range sql.Clauses(tuple.SQLRejected)[:tuple.ClauseIndex] {
			units = append(units, tuple.SQLRejected[c.Start:c.End])
		}
		scores[i] = [2]float64{score(tuple.Prompt, units, tuple.Chosen), score(tuple.Prompt, units, tuple.Rejected)}
	}
	return scores
}

// expectedLoss is the objective of caper.md 1.4.7, and the share of pairs in the
// right order.
func expectedLoss(tuples []data.Tuple, scores [][2]float64, c Loss) (loss, accuracy float64) {
	sum, weights, centre := 0.0, 0.0, 0.0
	for i, t := range tuples {
		delta := t.Margin
		if c.Severity { // 75th percentile of the edit costs 0.5 1 1 2 3 4, four times
			delta *= min(1, max(0.25, t.EditCost/3))
		}
		weight, offset := 1.0, 0.0
		switch c.Margin {
		case "weight":
			weight = delta / c.Alpha
		case "offset":
			offset = c.Offset * delta
		case "both":
			weight, offset = delta/c.Alpha, c.Offset*delta
		}
		chosen, rejected := scores[i][0], scores[i][1]
		sum += weight * math.Log1p(math.Exp(-(chosen - rejected - offset)))
		weights += weight
		centre += (chosen + rejected) * (chosen + rejected)
		if chosen > rejected {
			accuracy++
		}
	}
	n := float64(len(tuples))
	return sum/weights + c.Center*centre/n, accuracy / n
}

// The loss of a packed step is that of its pairs computed one by one, in every
// form of the objective. Tolerance: float32 scores of size 10.
func TestPackedLossIsThatOfThePairs(t *testing.T) {
	tuples := smallTuples()
	for _, margin := range []string{"weight", "offset", "both", "none"} {
		for _, severity := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/severity=%v", margin, severity), func(t *testing.T) {
				c := smallConfig(t, "loss.margin="+margin, fmt.Sprintf("loss.severity=%v", severity), "loss.offset=2", "loss.alpha=0.5",
					"loss.center=0.01", "train.batch_pairs=1000", "train.holdout_databases=0")
				r := opened(t, c)
				spread(r)
				want, accuracy := expectedLoss(tuples, scorePairs(t, r.run.Model, tuples), c.Loss)
				m, err := r.step(r.take())
				if err != nil {
					t.Fatal(err)
				}
				if m.Pairs != len(tuples) || math.Abs(*m.Loss-want) > 1e-5*want || *m.Accuracy != accuracy {
					t.Errorf("loss %v, accuracy %v of %d pairs; one by one %v and %v of %d", *m.Loss, *m.Accuracy, m.Pairs, want, accuracy, len(tuples))
				}
			})
		}
	}
}

// The divergence term is the same preference at the first token in which the two
// queries differ, read off separate sequences here.
func TestDivergenceTerm(t *testing.T) {
	tuples := smallTuples()
	c := smallConfig(t, "loss.divergence=0.4", "loss.margin=both", "loss.center=0.02", "train.batch_pairs=1000", "train.holdout_databases=0")
	r := opened(t, c)
	spread(r)
	clauses, accuracy := expectedLoss(tuples, scorePairs(t, r.run.Model, tuples), c.Loss)
	centreOnly := c.Loss
	centreOnly.Center /= c.Loss.Divergence // the term of the centre is not scaled
	parting, _ := expectedLoss(tuples, scorePartings(r), centreOnly)
	want := clauses + c.Loss.Divergence*parting
	m, err := r.step(r.take())
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(*m.Loss-want) > 1e-5*want || *m.Accuracy != accuracy {
		t.Errorf("loss %v, accuracy %v; one by one %v and %v", *m.Loss, *m.Accuracy, want, accuracy)
	}
}

// scorePartings scores the first token that is not the same in a pair's two
// sequences, for the pairs in the order of the tuples.
func scorePartings(r *prm) [][2]float64 {
	var scores [][2]float64
	score := func(tokens []int32) float64 {
		var tree engine.Tree
		tree.AddSegment(-1, tokens)
		return r.run.Model.Scores(engine.NewTape(r.run.Device), &tree, []int32{int32(len(tokens) - 1)}).At(0, 0)
	}
	for _, q := range r.data.questions {
		for _, p := range q.pairs {
			n := 0
			for p.chosen[n] == p.rejected[n] {
				n++
			}
			scores = append(scores, [2]float64{score(slices.Concat(q.prompt, p.chosen[:n+1])), score(slices.Concat(q.prompt, p.rejected[:n+1]))})
		}
	}
	return scores
}

// gradientOf returns all gradients that one question's pairs add when the step's
// weights sum to 1.
func gradientOf(r *prm, q question) []float64 {
	for _, p := range r.run.Model.Params() {
		p.ZeroGrad()
	}
	r.batch.lay([]*question{&q}, 1<<20)
	r.batch.pack(r.config.Loss)
	r.microBatch(sums{weight: 1, pairs: 1, questions: 1})
	var all []float64
	for _, p := range r.run.Model.Params() {
		for _, g := range p.Grad.F32 {
			all = append(all, float64(g))
		}
	}
	return all
}

// relativeError is |got - want| / |want|.
func relativeError(got, want []float64) float64 {
	difference, size := 0.0, 0.0
	for i := range want {
		difference += (got[i] - want[i]) * (got[i] - want[i])
		size += want[i] * want[i]
	}
	return math.Sqrt(difference / size)
}

func scaled(x []float64, factor float64) []float64 {
	y := make([]float64, len(x))
	for i := range x {
		y[i] = factor * x[i]
	}
	return y
}

// delta enters as the form of the objective says: the gradient is proportional to
// it in "weight", moves along the sigmoid in "offset", and ignores it in "none".
func TestGradientAsAFunctionOfTheMargin(t *testing.T) {
	for _, margin := range []string{"weight", "offset", "both", "none"} {
		r := opened(t, smallConfig(t, "loss.margin="+margin, "loss.center=0"))
		spread(r)
		q := r.data.questions[0]
		q.pairs = q.pairs[:1]
		at := func(delta float64) []float64 {
			q.pairs[0].margin = delta
			return gradientOf(r, q)
		}
		scores := rowScores(r, q)
		slope := func(delta float64) float64 { return 1 / (1 + math.Exp(scores[0]-scores[1]-delta)) }
		unit := at(1)
		for _, delta := range []float64{0.05, 0.3, 0.7} {
			want := map[string]float64{
				"weight": delta, "none": 1, "offset": slope(delta) / slope(1), "both": delta * slope(delta) / slope(1),
			}[margin]
			if e := relativeError(at(delta), scaled(unit, want)); !(e < 1e-5) {
				t.Errorf("%s, delta %v: relative error %v", margin, delta, e)
			}
		}
	}
}

// rowScores returns the scores of a question's first pair.
func rowScores(r *prm, q question) [2]float64 {
	r.batch.lay([]*question{&q}, 1<<20)
	r.batch.pack(r.config.Loss)
	tape := engine.NewTape(r.run.Device)
	scores := r.run.Model.Scores(tape, &r.batch.packer.Tree, r.batch.rows[:2])
	return [2]float64{scores.At(0, 0), scores.At(1, 0)}
}

// However a step is cut into micro-batches, loss and gradient are the same but for
// rounding; so are those of pairs that share nothing.
func TestMicroBatchesChangeNothing(t *testing.T) {
	step := func(tokens int, apart bool) (float64, []float64) {
		r := opened(t, smallConfig(t, "train.batch_pairs=1000", "loss.contrast=0.5", "loss.divergence=0.5", "loss.language_model=0.3", fmt.Sprintf("train.micro_batch_tokens=%d", tokens)))
		spread(r)
		batch := r.take()
		if apart {
			batch = onePairEach(batch)
		}
		trees := 0
		for r.batch.lay(batch, tokens); r.batch.pack(r.config.Loss); trees++ {
		}
		if parts := len(r.batch.parts); (tokens == 1) != (trees == parts) || (tokens == 1<<20) != (trees == 1) {
			t.Fatalf("%d tokens: %d micro-batches of %d parts", tokens, trees, parts)
		}
		r.config.Train.GradClip = 1e-30 // the step then hardly moves the weights
		m, err := r.step(batch)
		if err != nil {
			t.Fatal(err)
		}
		var gradients []float64
		for _, p := range r.run.Model.Params() {
			for _, g := range p.Grad.F32 {
				gradients = append(gradients, float64(g))
			}
		}
		return *m.Loss, gradients
	}
	loss, gradients := step(1<<20, false)
	for _, tokens := range []int{1, 150, 400} {
		l, g := step(tokens, false)
		if math.Abs(l-loss) > 1e-5*loss || !(relativeError(g, gradients) < 1e-5) {
			t.Errorf("%d tokens: loss %v, at once %v; gradients differ by %v", tokens, l, loss, relativeError(g, gradients))
		}
	}
	if l, g := step(1, true); math.Abs(l-loss) > 1e-5*loss || !(relativeError(g, gradients) < 1e-5) {
		t.Errorf("pairs apart: loss %v, packed %v; gradients differ by %v", l, loss, relativeError(g, gradients))
	}
}

// onePairEach takes every pair for a question of its own.
func onePairEach(batch []*question) []*question {
	var apart []*question
	for _, q := range batch {
		for i := range q.pairs {
			one := *q
			one.pairs = slices.Clone(q.pairs[i : i+1])
			one.assignPredictions()
			apart = append(apart, &one)
		}
	}
	return apart
}
