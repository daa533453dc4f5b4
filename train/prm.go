// Package train runs training: the Clause-PRM of caper.md 1.4.7, its schedule,
// checkpoints and records.
//
// A run is a function of its configuration and its tuples: the same inputs give
// the same bits, with any number of threads, and a run that was stopped and
// resumed gives the bits of one that was not.
package train

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"caper/engine"
	"caper/eval"
	"caper/kernels/adamw"
	"caper/kernels/gradnorm"
	"caper/kernels/logprob"
	"caper/kernels/marginloss"
	"caper/model"
)

// Options are the choices that do not change a run's result.
type Options struct {
	// Resume continues from the newest checkpoint under train.out.
	Resume bool
	// Log receives what a reader of the run's log should know.
	Log *slog.Logger
	// Progress is told of every step.
	Progress Progress
	// Device is where the steps run; nil is the processor, with train.threads and
	// train.precision.
	Device engine.Device
	// Profile is a folder for measurements of the steps (profile.go); empty: none.
	Profile string
}

// Progress shows a run to whoever waits for it.
type Progress interface {
	Step(done, total int, m Metrics)
}

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

// ErrInterrupted is returned when the context ended before the run did; the last
// step is saved and Options.Resume goes on from it.
var ErrInterrupted = errors.New("interrupted")

// prm is one run under way.
type prm struct {
	config  Config
	options Options
	device  engine.Device
	model   *model.Model
	moments *adamw.State
	data    *dataset
	faults  []eval.Fault // held out, for validation
	order   []int        // questions of the epoch, shuffled
	total   int          // optimiser steps of the whole run
	state   state
	metrics *metricsFile
	tape    *engine.Tape
	params  []*engine.Param // those that are trained

	// What a step works with; its memory is kept, so that in the long run a step
	// allocates nothing.
	questions []*question
	batch     batch
	pairs     []marginloss.Pair
	results   []results // of the step's micro-batches
	measured  measured

	operators *engine.Profile // nil without Options.Profile
}

// PRM trains a Clause-PRM and returns where its best model lies.
func PRM(ctx context.Context, c Config, o Options) (Outcome, error) {
	started := time.Now()
	r, err := open(ctx, c, o)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return Outcome{}, fmt.Errorf("%w before the first step: run the same command again", ErrInterrupted)
	}
	if err != nil {
		return Outcome{}, err
	}
	defer r.metrics.close()
	stopped, err := r.profiledLoop(ctx)
	if err != nil {
		return Outcome{}, err
	}
	s := r.state
	return Outcome{
		ModelDir: r.modelDir(), Steps: s.Step, Pairs: r.data.pairs, Questions: len(r.data.questions),
		TooLong: r.data.tooLong, Skipped: s.Skipped, BestTop1: max(0, s.Best), BestStep: s.BestStep,
		Stopped: stopped, Elapsed: time.Since(started),
	}, nil
}

func (r *prm) modelDir() string { return filepath.Join(r.config.Train.Out, "model") }

// open prepares a run: data, model, optimiser, and the run folder.
func open(ctx context.Context, c Config, o Options) (*prm, error) {
	if err := c.checkRun(); err != nil {
		return nil, err
	}
	from, saved, err := lastCheckpoint(c.Train.Out)
	if err != nil {
		return nil, err
	}
	if err := checkFolder(c, o.Resume, from, saved); err != nil {
		return nil, err
	}
	if err := removeLeftovers(c.Train.Out); err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	precision, err := engine.ParsePrecision(c.Train.Precision)
	if err != nil {
		return nil, c.mistake("train.precision", "%w", err)
	}
	if o.Device == nil {
		o.Device = engine.CPU(c.Train.Threads, engine.WithPrecision(precision))
	}
	device, operators := watch(o.Device, o.Profile)
	r := &prm{config: c, options: o, device: device, operators: operators, state: state{Config: c.identity().Text(), Best: -1}}
	r.tape = engine.NewTape(r.device)
	if r.tape.Checkpointing, err = engine.ParseCheckpointing(c.Train.Checkpointing); err != nil {
		return nil, c.mistake("train.checkpointing", "%w", err)
	}
	tuples, err := readTuples(ctx, c.Train.Tuples)
	if err != nil {
		return nil, err
	}
	training, heldOut, err := holdOut(tuples, c.Train.HoldoutDatabases, c.Train.Seed)
	if err != nil {
		return nil, c.mistake("train.holdout_databases", "%w", err)
	}
	if from != "" {
		err = r.load(from, saved)
	} else {
		err = r.start(training)
	}
	if err != nil {
		return nil, err
	}
	r.params = r.model.Trainable()
	layout, err := r.model.Layout()
	if err != nil {
		return nil, c.mistake("model.clause_token", "%w: let it and model.end_token name added tokens of the model's tokenizer, such as <|fim_pad|> and <|im_end|> of Qwen3.5", err)
	}
	if r.data, err = encode(training, layout, c); err != nil {
		return nil, err
	}
	if r.faults, err = eval.Faults(eval.Each(validationTuples(heldOut, c.Train))); err != nil {
		return nil, err
	}
	r.total = r.steps()
	r.shuffle()
	memory, err := r.plan(ctx)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.Train.Out, 0o755); err != nil {
		return nil, err
	}
	if r.metrics, err = openMetrics(c.Train.Out, r.state.Step); err != nil {
		return nil, err
	}
	o.Log.Info("training", "device", device.Name(), "questions", len(r.data.questions), "pairs", r.data.pairs, "too_long", r.data.tooLong,
		"held_out", len(r.faults), "steps", r.total, "parameters", elements(r.model.Params()), "trained", elements(r.params), "from_step", r.state.Step)
	o.Log.Info("memory of a step", "total", bytesText(memory.Total()), "weights", bytesText(memory.Weights), "gradients", bytesText(memory.Gradients),
		"optimiser", bytesText(memory.Moments), "activations", bytesText(memory.Activations), "checkpointing", c.Train.Checkpointing, "limit", bytesText(r.memoryLimit(memory)))
	return r, replaceFile(filepath.Join(c.Train.Out, ConfigName), []byte(c.Text()))
}

// findFiles checks that files are there, before anything is done, and makes their paths
// independent of the current folder: a run's config.toml is read from others.
func findFiles(paths []string) error {
	for i, path := range paths {
		absolute, err := filepath.Abs(path)
		if err == nil {
			_, err = os.Stat(absolute)
		}
		if err != nil {
			return err
		}
		paths[i] = absolute
	}
	return nil
}

func elements(params []*engine.Param) int {
	n := 0
	for _, p := range params {
		n += p.Rows * p.Cols
	}
	return n
}

// steps counts the optimiser steps of the whole run by walking its batches.
func (r *prm) steps() int {
	total := 0
	saved := r.state
	for r.state.Epoch, r.state.Next = 0, 0; r.state.Epoch < r.config.Train.Epochs; total++ {
		r.shuffle()
		for range r.take() {
		}
	}
	r.state = saved
	if limit := r.config.Train.MaxSteps; limit > 0 {
		total = min(total, limit)
	}
	return total
}

// shuffle sets the epoch's order of questions; it depends on seed and epoch alone.
func (r *prm) shuffle() {
	n := len(r.data.questions)
	r.order = r.order[:0]
	for i := range n {
		r.order = append(r.order, i)
	}
	engine.Random(r.config.Train.Seed, "shuffle", uint64(r.state.Epoch), 0).
		Shuffle(n, func(i, j int) { r.order[i], r.order[j] = r.order[j], r.order[i] })
}

// take returns the questions of the next optimiser step and moves past them: as
// many as reach train.batch_pairs, never beyond the epoch. They are valid until the
// next call.
func (r *prm) take() []*question {
	r.questions = r.questions[:0]
	for pairs := 0; pairs < r.config.Train.BatchPairs && r.state.Next < len(r.order); r.state.Next++ {
		q := &r.data.questions[r.order[r.state.Next]]
		r.questions = append(r.questions, q)
		pairs += len(q.pairs)
	}
	if r.state.Next >= len(r.order) {
		r.state.Epoch++
		r.state.Next = 0
	}
	return r.questions
}

// loop runs optimiser steps to the end of the schedule. It returns why it stopped
// early, if it did.
func (r *prm) loop(ctx context.Context) (string, error) {
	c := r.config.Train
	for r.state.Step < r.total {
		if c.Patience > 0 && r.state.Worse >= c.Patience {
			return fmt.Sprintf("no better validation in %d", r.state.Worse), r.checkpoint()
		}
		if ctx.Err() != nil {
			if err := r.checkpoint(); err != nil {
				return "", err
			}
			return "", fmt.Errorf("%w at step %d of %d, saved: run the same command with --resume to go on", ErrInterrupted, r.state.Step, r.total)
		}
		epoch := r.state.Epoch
		if r.state.Next == 0 {
			r.shuffle()
		}
		m, err := r.step(r.take())
		if err != nil {
			return "", err
		}
		m.Epoch = float64(epoch) + float64(r.state.Next)/float64(len(r.order))
		if r.state.Epoch > epoch {
			m.Epoch = float64(r.state.Epoch)
		}
		if err := r.metrics.write(m); err != nil {
			return "", err
		}
		if r.options.Progress != nil {
			r.options.Progress.Step(r.state.Step, r.total, m)
		}
		last := r.state.Step == r.total
		if last || due(r.state.Step, c.ValidateEvery) {
			if err := r.validate(ctx, m.Epoch, last); err != nil {
				return "", err
			}
		}
		if last || due(r.state.Step, c.CheckpointEvery) {
			if err := r.checkpoint(); err != nil {
				return "", err
			}
		}
	}
	return "", nil
}

func due(step, every int) bool { return every > 0 && step%every == 0 }

// measured is what a step measures.
type measured struct{ loss, accuracy, norm, rate float64 }

// step runs one optimiser step over whole questions. The loss is normalised over all of
// them, so the cut into micro-batches changes nothing but memory. The metrics are valid
// until the next step.
func (r *prm) step(questions []*question) (Metrics, error) {
	started := time.Now()
	of := r.sums(questions)
	for _, p := range r.params {
		p.ZeroGrad()
	}
	var sharing engine.Sharing
	r.results = r.results[:0]
	for r.batch.lay(questions, r.config.Train.MicroBatchTokens); r.batch.pack(r.config.Loss); sharing.Add(&r.batch.packer) {
		r.microBatch(of)
	}
	r.measured = measured{norm: gradnorm.Norm(r.device, r.params)}
	if err := engine.Wait(r.device); err != nil {
		return Metrics{}, fmt.Errorf("step %d: %w", r.state.Step+1, err)
	}
	for i := range r.results {
		loss, right := r.results[i].sum()
		r.measured.loss += loss
		r.measured.accuracy += right / float64(of.pairs)
	}
	r.measured.rate = r.config.Train.learningRate(r.state.Step, r.total)
	r.state.Step++
	m := Metrics{Step: r.state.Step, Pairs: of.pairs, Tokens: sharing.Rows, Unpacked: sharing.Tokens, Sharing: sharing.Ratio()}
	if !finite(r.measured.loss) || !finite(r.measured.norm) {
		m.Skipped = true
		return m, r.skip(questions)
	}
	r.state.BadRun = 0
	r.update(r.measured.rate, min(1, r.config.Train.GradClip/(r.measured.norm+1e-6)))
	m.Loss, m.Accuracy, m.GradNorm, m.LR = &r.measured.loss, &r.measured.accuracy, &r.measured.norm, &r.measured.rate
	m.TokensPerSecond = float64(m.Tokens) / time.Since(started).Seconds()
	return m, nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

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
	r.tape.Reset()
	hidden := r.model.Backbone.Hidden(r.tape, &b.packer.Tree)
	scores := r.model.ScoresOf(r.tape, hidden, b.rows)
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
	loss := marginloss.Forward(r.tape, scores, r.pairs, marginloss.Options{
		Offset: c.Offset, Center: c.Center, WeightSum: of.weight, PairCount: of.pairs,
	})
	r.tape.SeedRows(loss, one)
	out.scores, out.loss = resized(out.scores, scores.Rows), resized(out.loss, 1)
	r.tape.Fetch(out.scores, scores)
	r.tape.Fetch(out.loss, loss)
	if c.LanguageModel > 0 {
		r.languageModel(out, hidden, c.LanguageModel/float64(of.questions))
	}
	r.tape.Backward()
}

// one is the derivative of a loss with respect to itself.
var one = []float32{1}

// languageModel adds the next-token loss: per question the mean over the tokens of
// its correct queries, times scale.
func (r *prm) languageModel(out *results, hidden *engine.Tensor, scale float64) {
	b := &r.batch
	head := r.model.Head
	if head == nil {
		head = r.model.Embedding
	}
	logProbs := logprob.Forward(r.tape, hidden, head.Tensor, b.next, b.targets)
	out.logProbs = resized(out.logProbs, logProbs.Rows)
	r.tape.Fetch(out.logProbs, logProbs)
	for _, share := range b.shares {
		out.shares = append(out.shares, scale*share)
		out.seeds = append(out.seeds, float32(-scale*share))
	}
	r.tape.SeedRows(logProbs, out.seeds)
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

func (r *prm) update(rate, scale float64) {
	c := r.config.Train
	adamw.Step(r.device, r.params, r.moments, adamw.Options{
		LR: rate, Beta1: c.Beta1, Beta2: c.Beta2, Eps: c.Epsilon, WeightDecay: c.WeightDecay,
	}, scale)
}
