package ablation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"caper/data"
	"caper/train/grpo"
	"caper/train/reward"
	"caper/train/run"
)

// policies is the kind of study whose cells train a policy and let it answer the questions
// of some splits.
type policies struct {
	study  *Study
	splits []questionSet
	hash   string            // of all that decides over the questions
	hashes map[string]string // of files and folders that were read
}

// questionSet is a split, or a part of it.
type questionSet struct {
	split     string
	questions []data.Question
}

// prepare picks the questions.
func (k *policies) prepare(ctx context.Context) error {
	m := k.study.Matrix
	texts := []string{k.study.Bench.Name, fmt.Sprintf("%+v", k.study.Bench.Limits), fmt.Sprint(m.Samples)}
	for _, split := range m.Splits {
		all, err := k.study.Bench.Questions(split)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return fmt.Errorf("split %s has no questions", split)
		}
		set := questionSet{split, spread(all, m.Questions)}
		k.splits = append(k.splits, set)
		texts = append(texts, split)
		for _, q := range set.questions {
			texts = append(texts, q.DBID, q.ID.String(), q.Question, q.Evidence, q.Gold)
		}
	}
	k.hash = hashOf(texts...)
	return ctx.Err()
}

// spread picks n items at even distances, all where n is 0: the questions of one database
// stand together.
func spread[T any](all []T, n int) []T {
	if n == 0 || n >= len(all) {
		return all
	}
	picked := make([]T, n)
	for i := range picked {
		picked[i] = all[i*len(all)/n]
	}
	return picked
}

func (k *policies) job(v Variant, text []byte, name string, words []string) (job, error) {
	if b := k.study.Bench; b != nil {
		words = append(words, "train.bench="+b.Dir, "train.format="+b.Layout)
	}
	if v.Untrained { // whatever the others are rewarded for
		words = append(words, "reward.kind="+string(reward.Sparse), "reward.model=")
	}
	config, err := grpo.ParseConfig(text, name, words)
	return &policyCell{policies: k, untrained: v.Untrained, config: config}, err
}

// policyCell is the work of one cell.
type policyCell struct {
	*policies
	untrained bool
	config    grpo.Config
}

// check implements job.
func (j *policyCell) check() error { return j.config.Ready() }

// source implements job: the models are known by their content, since another training
// may have written them to the same folder.
func (j *policyCell) source(ctx context.Context) (outcomes, error) {
	c := j.config
	inputs := []string{j.hash}
	for _, path := range []string{c.Model.Path, c.Reward.Model, c.Policy.Reference, c.Train.Curriculum} {
		hash, err := j.contents(ctx, path)
		if err != nil {
			return outcomes{}, err
		}
		inputs = append(inputs, hash)
	}
	c.Train.Out, c.Train.Threads = "", 0 // change no result
	return outcomes{Config: c.Text(), Inputs: hashOf(inputs...)}, nil
}

// contents names what is in a file or folder.
func (k *policies) contents(ctx context.Context, root string) (string, error) {
	if hash, known := k.hashes[root]; known || root == "" {
		return hash, nil
	}
	h := sha256.New()
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		fmt.Fprintf(h, "%q\n", path[len(root):])
		if _, err = io.Copy(h, f); err == nil {
			err = ctx.Err()
		}
		return err
	})
	k.hashes[root] = hex.EncodeToString(h.Sum(nil))
	return k.hashes[root], err
}

// run implements job: it trains, unless the policy is measured as it is, and measures.
func (j *policyCell) run(ctx context.Context) (steps int, tests []Test, err error) {
	o := grpo.Options{Options: j.study.options(), Extract: j.study.Extract}
	c := j.config
	if !j.untrained {
		trained, err := grpo.Train(ctx, c, o)
		if err != nil {
			return 0, nil, err
		}
		steps, c.Model.Path = trained.Steps, trained.ModelDir
	}
	for _, set := range j.splits {
		measured, err := grpo.Measure(ctx, c, set.questions, j.study.Matrix.Samples, o)
		if ctx.Err() != nil {
			return steps, nil, fmt.Errorf("%w while the policy answered the questions of %s: run the same command again", run.ErrInterrupted, set.split)
		}
		if err != nil {
			return steps, nil, err
		}
		if measured.TooLong > 0 {
			j.study.Log.Warn("questions left out: their prompts are too long", "split", set.split, "questions", measured.TooLong)
		}
		tests = append(tests,
			Test{"EX on " + set.split, measured.EX},
			Test{fmt.Sprintf("MV@%d on %s", j.study.Matrix.Samples, set.split), measured.MV})
	}
	return steps, tests, nil
}
