package data

import (
	"fmt"
	"iter"
	"strings"
)

// Names of extra fields that reading a prediction may add.
const (
	// OtherGold is the gold query of the line, where the question has another one.
	OtherGold = "other_gold"
	// NotText is the value of a prediction that is no text, in a BIRD file.
	NotText = "not_text"
)

// ReadPredictions streams the candidates in files as ReadRollouts does, to be judged.
// What a question asks and its gold query are then the split's, whatever a line says of
// them: a line's own gold counts where the split has none, and is otherwise kept as
// OtherGold. Two candidates of one source for the same question need different samples.
func ReadPredictions(paths []string, b *Benchmark, split string) iter.Seq2[Rollout, error] {
	return func(yield func(Rollout, error) bool) {
		questions, err := indexQuestions(b, split)
		if err != nil {
			yield(Rollout{}, err)
			return
		}
		questions.answered = map[answer]string{}
		for _, path := range paths {
			questions.path = path
			format, err := sniff(path)
			if err != nil {
				yield(Rollout{}, err)
				return
			}
			for r, err := range format(path, questions) {
				if !yield(r, err) || err != nil {
					return
				}
			}
		}
	}
}

// answer is what a source says to a question.
type answer struct {
	id           QuestionID
	db, question string
	source       string
	sample       int
}

// settle makes a rollout one for the question q. Where the rollouts are to be judged the
// question's own words count, and one answer.
func (s *splitQuestions) settle(r *Rollout, q Question) error {
	if err := r.answers(q); err != nil || s == nil || s.answered == nil {
		return err
	}
	if q.Gold != "" && !sameQuery(r.Gold, q.Gold) {
		given, err := Marshal(r.Gold)
		if err != nil {
			return fmt.Errorf("gold: %w", err)
		}
		r.Extra = r.Extra.with(OtherGold, given)
	}
	r.Dataset = q.Dataset
	r.Gold, r.Question, r.Evidence = firstOf(q.Gold, r.Gold), firstOf(q.Question, r.Question), firstOf(q.Evidence, r.Evidence)
	key := answer{q.ID, q.DBID, q.Question, r.Source, r.Sample}
	if path, ok := s.answered[key]; ok {
		return fmt.Errorf("question %s has a prediction of %q with sample %d already, in %s: keep one, or tell them apart by source or sample",
			q.ID, r.Source, r.Sample, path)
	}
	s.answered[key] = s.path
	return nil
}

// sameQuery compares texts but for what surrounds them.
func sameQuery(a, b string) bool {
	const around = "; \t\r\n"
	return strings.Trim(a, around) == strings.Trim(b, around)
}
