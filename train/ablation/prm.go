package ablation

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"caper/annotate"
	"caper/data"
	"caper/engine"
	"caper/eval"
	"caper/model"
	"caper/train/prm"
)

// Candidates are rollouts with the name of their split.
type Candidates struct {
	Split    string
	Rollouts iter.Seq2[data.Rollout, error]

	content string // stands for all rollouts: other ones make other tuples
}

// read goes through the rollouts once: a broken line ends the study before it begins.
func (c *Candidates) read(ctx context.Context) error {
	h := sha256.New()
	for r, err := range c.Rollouts {
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		line, err := data.Marshal(r)
		if err != nil {
			return err
		}
		h.Write(append(line, '\n'))
	}
	c.content = hex.EncodeToString(h.Sum(nil))
	return nil
}

// rewardModels is the kind of study whose cells annotate candidates, train a reward model,
// and let it find the faults of others.
type rewardModels struct {
	study    *Study
	faults   []eval.Fault
	testHash string
}

// prepare annotates the test.
func (k *rewardModels) prepare(ctx context.Context) error {
	s := k.study
	if err := os.MkdirAll(filepath.Join(s.Dir, "tuples"), 0o755); err != nil {
		return err
	}
	for _, side := range []*Candidates{&s.Train, &s.Test} {
		if err := side.read(ctx); err != nil {
			return err
		}
	}
	test, err := k.annotate(ctx, s.Test, annotate.DefaultOptions(), "test")
	if err != nil {
		return err
	}
	k.testHash = test.hash
	if k.faults, err = eval.Faults(data.ReadTuples(test.path)); err != nil {
		return err
	}
	if len(k.faults) == 0 {
		return errors.New("the test candidates gave no failed queries to localise: give others")
	}
	return nil
}

func (k *rewardModels) job(v Variant, text []byte, name string, words []string) (job, error) {
	config, err := prm.ParseConfig(text, name, words)
	return &rewardModel{rewardModels: k, annotation: v.Annotate.options(), config: config}, err
}

// rewardModel is the work of one cell.
type rewardModel struct {
	*rewardModels
	annotation annotate.Options
	config     prm.Config
}

// check implements job: what the training needs is made by the study.
func (j *rewardModel) check() error { return nil }

// source implements job: it annotates the candidates to train on.
func (j *rewardModel) source(ctx context.Context) (outcomes, error) {
	tuples, err := j.annotate(ctx, j.study.Train, j.annotation, "train")
	if err != nil {
		return outcomes{}, err
	}
	decisive := j.config
	decisive.Train.Out, decisive.Train.Tuples, decisive.Train.Threads = "", nil, 0 // change no result
	j.config.Train.Tuples = []string{tuples.path}
	return outcomes{Config: decisive.Text(), Tuples: tuples.hash + " tested on " + j.testHash}, nil
}

// run implements job.
func (j *rewardModel) run(ctx context.Context) (int, []Test, error) {
	trained, err := prm.Train(ctx, j.config, j.study.options())
	if err != nil {
		return 0, nil, err
	}
	tests, err := localise(ctx, trained.ModelDir, j.study.device(), j.faults)
	return trained.Steps, tests, err
}

// tupleFile is a file of tuples with the hash of what it was made from.
type tupleFile struct{ path, hash string }

// annotate writes the tuples of candidates once for all variants that annotate them
// alike.
func (k *rewardModels) annotate(ctx context.Context, c Candidates, o annotate.Options, kind string) (tupleFile, error) {
	s := k.study
	decisive := o
	decisive.Workers, decisive.CacheBytes = 0, 0 // change no tuple
	hash := hashOf(c.content, c.Split, s.Bench.Name, fmt.Sprintf("%+v %+v", s.Bench.Limits, decisive))
	f := tupleFile{filepath.Join(s.Dir, "tuples", kind+"-"+hash+".jsonl"), hash}
	if _, err := os.Stat(f.path); err == nil {
		return f, nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return f, err
	}
	o.Split = func(string) string { return c.Split }
	summary, err := annotate.Write(ctx, s.Bench, c.Rollouts, o, annotate.Output{Path: f.path, Resume: true, Settings: map[string]string{"split": c.Split}})
	if err == nil {
		s.Log.Info("annotated", "file", f.path, "rollouts", summary.Rollouts, "tuples", summary.Tuples)
	}
	return f, err
}

// hashOf names a combination of texts.
func hashOf(texts ...string) string {
	h := sha256.New()
	for _, t := range texts {
		fmt.Fprintf(h, "%d %s\n", len(t), t)
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// localise finds the faults with a trained model: one test in which all faults weigh
// the same, and one in which all clause kinds do.
func localise(ctx context.Context, dir string, device engine.Device, faults []eval.Fault) ([]Test, error) {
	m, err := model.Load(dir, device, model.Frozen)
	if err != nil {
		return nil, err
	}
	scorer, err := model.NewScorer(m, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	scores, err := eval.ScoreFaults(ctx, scorer, faults, nil)
	if err != nil {
		return nil, err
	}
	return []Test{
		{"Top-1, balanced", eval.FaultOutcomes(faults, scores, eval.LocalizeOptions{Balanced: true})},
		{"Top-1, natural", eval.FaultOutcomes(faults, scores, eval.LocalizeOptions{})},
	}, nil
}
