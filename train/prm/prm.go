// Package prm trains the Clause-PRM of caper.md 1.4.7 on preference tuples.
package prm

import (
	"context"
	"slices"
	"time"

	"caper/engine"
	"caper/eval"
	"caper/kernels/logprob"
	"caper/kernels/marginloss"
	"caper/model"
	"caper/train/run"
)

// Outcome is what a finished run reports.
type Outcome struct {
	ModelDir  string `json:"model"`
	Steps     int    `json:"steps"`
	Pairs     int    `json:"pairs"`
	Questions int    `json:"questions"`
	TooLong   int    `json:"too_long"`
	Skipped   int    `json:"skipped_steps"`
	// Of the best validation; left out when there was none.
	BestTop1 float64       `json:"best_top1,omitempty"`
	BestStep int           `json:"best_step,omitempty"`
	Stopped  string        `json:"stopped,omitempty"`
	Elapsed  time.Duration `json:"elapsed_ns"`
}

// prm is a training under way.
type prm struct {
	run    *run.Run
	config Config
	state  state
	data   *dataset
	faults []eval.Fault // held out, for validation
	passes *run.Passes  // over the questions

	// What a step works with; its memory is kept, so that in the long run a step
	// allocates nothing.
	questions []*question
	batch     batch
	pairs     []marginloss.Pair
	results   []results // of the step's micro-batches
	measured  measured
	line      Metrics
	shown     []run.Figure
}

// state is a run's, with where its steps are in the tuples.
type state struct {
	run.State
	run.Position
}

// Train trains a Clause-PRM and returns where its best model lies.
func Train(ctx context.Context, c Config, o run.Options) (Outcome, error) {
	started := time.Now()
	r, err := open(ctx, c, o)
	if err != nil {
		return Outcome{}, run.BeforeFirstStep(ctx, err)
	}
	defer r.run.Close()
	stopped, err := r.run.Loop(ctx, r)
	if err != nil {
		return Outcome{}, err
	}
	s := r.state
	return Outcome{
		ModelDir: r.run.ModelDir(), Steps: s.Step, Pairs: r.data.pairs, Questions: len(r.data.questions),
		TooLong: r.data.tooLong, Skipped: s.Skipped, BestTop1: max(0, s.Best), BestStep: s.BestStep,
		Stopped: stopped, Elapsed: time.Since(started),
	}, nil
}

// open prepares a run: data, model, optimiser, and the run folder.
func open(ctx context.Context, c Config, o run.Options) (*prm, error) {
	r := &prm{config: c}
	if err := r.config.check(); err != nil {
		return nil, err
	}
	if err := r.config.checkData(); err != nil {
		return nil, err
	}
	var err error
	if r.run, err = run.Open(r.config.sections(), &r.state, o); err != nil {
		return nil, err
	}
	tuples, err := readTuples(ctx, r.config.Train.Tuples)
	if err != nil {
		return nil, err
	}
	training, heldOut, err := holdOut(tuples, c.Train.HoldoutDatabases, c.Train.Seed)
	if err != nil {
		return nil, r.config.mistake("train.holdout_databases", "%w", err)
	}
	m := c.Model
	err = r.run.Start(texts(training), model.Config{Reward: m.Head == headScalar, ClauseToken: m.ClauseToken, EndToken: m.EndToken}, r.makeReward)
	if err != nil {
		return nil, err
	}
	layout, err := r.run.Model.Layout()
	if err != nil {
		return nil, r.config.mistake("model.clause_token", "%w: let it and model.end_token name added tokens of the model's tokenizer, such as <|fim_pad|> and <|im_end|> of Qwen3.5", err)
	}
	if r.data, err = encode(training, layout, r.config); err != nil {
		return nil, err
	}
	if r.faults, err = eval.Faults(eval.Each(validationTuples(heldOut, c.Train))); err != nil {
		return nil, err
	}
	r.passes = r.data.passes(&r.state.Position, c.Train)
	r.run.Total = r.passes.Steps(c.Train.Epochs)
	if limit := c.Train.MaxSteps; limit > 0 {
		r.run.Total = min(r.run.Total, limit)
	}
	return r, r.run.Begin(ctx, r.walk, "questions", len(r.data.questions), "pairs", r.data.pairs, "too_long", r.data.tooLong, "held_out", len(r.faults))
}

// makeReward gives a language model scores and names the tokens at which
// clauses are scored; both are there already in a reward model.
func (r *prm) makeReward(m *model.Model) error {
	switch c := r.config.Model; {
	case m.HasScores():
	case c.Head == headToken:
		if err := m.ToLabels(c.LabelTokens...); err != nil {
			return r.config.mistake("model.label_tokens", "%w", err)
		}
	default:
		m.ToReward(r.config.Train.Seed)
	}
	if m.Config.ClauseToken == "" {
		m.Config.ClauseToken = r.config.Model.ClauseToken
	}
	if m.Config.EndToken == "" {
		m.Config.EndToken = r.config.Model.EndToken
	}
	return nil
}

// take returns the questions of the next optimiser step, valid until the next call.
func (r *prm) take() []*question {
	r.questions = r.questions[:0]
	for _, i := range r.passes.Take() {
		r.questions = append(r.questions, &r.data.questions[i])
	}
	return r.questions
}

// Step takes the next questions.
func (r *prm) Step(context.Context) ([]run.Figure, error) {
	m, err := r.step(r.take())
	if err != nil {
		return nil, err
	}
	m.Epoch = r.passes.Done()
	r.line = m
	if m.Skipped {
		return nil, r.run.Write(&r.line)
	}
	r.shown = append(r.shown[:0], run.Figure{Name: "loss", Value: *m.Loss}, run.Figure{Name: "accuracy", Value: *m.Accuracy},
		run.Figure{Name: "tokens_per_second", Value: m.TokensPerSecond}, run.Figure{Name: "sharing", Value: m.Sharing})
	return r.shown, r.run.Write(&r.line)
}

// walk takes the steps that are left on a twin of the run.
func (r *prm) walk(ctx context.Context, on *run.Run, tokens int) error {
	twin := &prm{run: on, config: r.config, data: r.data}
	twin.passes = r.passes.From(&twin.state.Position)
	for range min(on.Total-r.state.Step, run.Surveyed) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		questions := twin.take()
		of := twin.sums(questions)
		for twin.batch.lay(questions, tokens); twin.batch.pack(twin.config.Loss); {
			twin.microBatch(of)
		}
	}
	return nil
}

// measured is what a step measures.
type measured struct{ loss, accuracy, norm, rate float64 }

// step runs one optimiser step over whole questions. The loss is normalised over all of
// them, so the cut into micro-batches changes nothing but memory. The metrics are valid
// until the next step.
func (r *prm) step(questions []*question) (Metrics, error) {
	started := time.Now()
	of := r.sums(questions)
	r.run.ZeroGrad()
	var sharing engine.Sharing
	r.results = r.results[:0]
	for r.batch.lay(questions, r.config.Train.MicroBatchTokens); r.batch.pack(r.config.Loss); sharing.Add(&r.batch.packer) {
		r.microBatch(of)
	}
	norm, err := r.run.Norm()
	if err != nil {
		return Metrics{}, err
	}
	r.measured = measured{norm: norm, rate: r.run.Rate()}
	for i := range r.results {
		loss, right := r.results[i].sum()
		r.measured.loss += loss
		r.measured.accuracy += right / float64(of.pairs)
	}
	m := Metrics{Step: r.state.Step + 1, Pairs: of.pairs, Tokens: sharing.Rows, Unpacked: sharing.Tokens, Sharing: sharing.Ratio()}
	if !run.Finite(r.measured.loss, norm) {
		m.Skipped = true
		return m, r.run.Skip(r.dump(questions))
	}
	r.run.Update(r.measured.rate, norm)
	m.Loss, m.Accuracy, m.GradNorm, m.LR = &r.measured.loss, &r.measured.accuracy, &r.measured.norm, &r.measured.rate
	m.TokensPerSecond = float64(m.Tokens) / time.Since(started).Seconds()
	return m, nil
}

// dump is what is kept of a step that was skipped.
func (r *prm) dump(batch []*question) any {
	type dumped struct {
		Database string    `json:"db_id"`
		Prompt   string    `json:"prompt"`
		Chosen   []string  `json:"chosen"`
		Rejected []string  `json:"rejected"`
		Margins  []float64 `json:"margins"`
	}
	words := r.run.Model.Tokenizer
	var all []dumped
	for _, q := range batch {
		d := dumped{Database: q.db, Prompt: words.Decode(q.prompt, false)}
		for _, p := range q.pairs {
			d.Chosen = append(d.Chosen, words.Decode(p.chosen, false))
			d.Rejected = append(d.Rejected, words.Decode(p.rejected, false))
			d.Margins = append(d.Margins, p.margin)
		}
		all = append(all, d)
	}
	return all
}

// weight is w_k of the loss: delta/alpha in the weighted forms, 1 otherwise.
func (r *prm) weight(margin float64) float64 {
	switch r.config.Loss.Margin {
	case "weight", "both":
		return margin / r.config.Loss.Alpha
	}
	return 1
}

// sums are what an optimiser step's loss is divided by, whatever its cut into
// micro-batches.
type sums struct {
	weight           float64
	pairs, questions int
}

func (r *prm) sums(questions []*question) sums {
	of := sums{questions: len(questions)}
	for _, q := range questions {
		for _, p := range q.pairs {
			of.weight += r.weight(p.margin)
			of.pairs++
		}
	}
	return of
}

// microBatch adds the gradients of the packed questions, and asks for what they tell.
func (r *prm) microBatch(of sums) {
	b, c := &r.batch, r.config.Loss
	out := r.nextResults()
	r.run.Tape.Reset()
	hidden := r.run.Model.Backbone.Hidden(r.run.Tape, &b.packer.Tree)
	scores := r.run.Model.ScoresOf(r.run.Tape, hidden, b.rows)
	r.pairs = r.pairs[:0]
	for _, k := range b.comparisons {
		p := marginloss.Pair{Chosen: k.chosen, Rejected: k.rejected, Weight: float32(k.weight * r.weight(k.margin))}
		if c.Margin == "offset" || c.Margin == "both" {
			p.Margin = float32(k.margin)
		}
		r.pairs = append(r.pairs, p)
		if k.isTuple {
			out.tuples = append(out.tuples, [2]int32{k.chosen, k.rejected})
		}
	}
	loss := marginloss.Forward(r.run.Tape, scores, r.pairs, marginloss.Options{
		Offset: c.Offset, Center: c.Center, WeightSum: of.weight, PairCount: of.pairs,
	})
	r.run.Tape.SeedRows(loss, one)
	out.scores, out.loss = resized(out.scores, scores.Rows), resized(out.loss, 1)
	r.run.Tape.Fetch(out.scores, scores)
	r.run.Tape.Fetch(out.loss, loss)
	if c.LanguageModel > 0 {
		r.languageModel(out, hidden, c.LanguageModel/float64(of.questions))
	}
	r.run.Tape.Backward()
}

// one is the derivative of a loss with respect to itself.
var one = []float32{1}

// languageModel adds the next-token loss: per question the mean over the tokens of
// its correct queries, times scale.
func (r *prm) languageModel(out *results, hidden *engine.Tensor, scale float64) {
	b := &r.batch
	head := r.run.Model.Head
	if head == nil {
		head = r.run.Model.Embedding
	}
	logProbs := logprob.Forward(r.run.Tape, hidden, head.Tensor, b.next, b.targets)
	out.logProbs = resized(out.logProbs, logProbs.Rows)
	r.run.Tape.Fetch(out.logProbs, logProbs)
	for _, share := range b.shares {
		out.shares = append(out.shares, scale*share)
		out.seeds = append(out.seeds, float32(-scale*share))
	}
	r.run.Tape.SeedRows(logProbs, out.seeds)
}

// results are what a micro-batch tells, once the device has been waited for. They keep
// their memory from step to step.
type results struct {
	loss, scores []float32
	tuples       [][2]int32 // chosen and rejected, as rows of scores
	logProbs     []float32
	shares       []float64 // of logProbs in the loss
	seeds        []float32
}

// nextResults adds empty results to those of the step.
func (r *prm) nextResults() *results {
	if n := len(r.results); n < cap(r.results) {
		r.results = r.results[:n+1]
	} else {
		r.results = append(r.results, results{})
	}
	out := &r.results[len(r.results)-1]
	*out = results{loss: out.loss[:0], scores: out.scores[:0], tuples: out.tuples[:0], logProbs: out.logProbs[:0], shares: out.shares[:0], seeds: out.seeds[:0]}
	return out
}

// sum returns the micro-batch's share of the step's loss and how many tuples are ordered
// right.
func (m *results) sum() (loss, right float64) {
	loss = float64(m.loss[0])
	for i, share := range m.shares {
		loss -= share * float64(m.logProbs[i])
	}
	for _, t := range m.tuples {
		if m.scores[t[0]] > m.scores[t[1]] {
			right++
		}
	}
	return loss, right
}

// resized returns s with n elements, in its own memory where that suffices.
func resized(s []float32, n int) []float32 { return slices.Grow(s[:0], n)[:n] }
