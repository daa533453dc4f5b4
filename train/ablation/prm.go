package ablation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"caper/annotate"
	"caper/engine"
	"caper/eval"
	"caper/model"
)

// tupleFile is a file of tuples with the hash of what it was made from.
type tupleFile struct{ path, hash string }

// annotate writes the tuples of candidates once for all variants that annotate them
// alike.
func (s *Study) annotate(ctx context.Context, c Candidates, o annotate.Options, kind string) (tupleFile, error) {
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
