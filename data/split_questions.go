package data

import (
	"encoding/json"
	"errors"
	"fmt"
)

// splitQuestions finds the questions of a split that rollouts belong to. A nil
// one knows no question.
type splitQuestions struct {
	split string
	list  []Question
	byID  map[QuestionID][]int // ids are not unique in every benchmark
	known map[string]bool      // databases

	// Of predictions that are to be judged (predictions.go): what was answered, in
	// which file, and the file that is read now. nil for others.
	answered map[answer]string
	path     string
}

func indexQuestions(b *Benchmark, split string) (*splitQuestions, error) {
	list, err := b.Questions(split)
	if err != nil {
		return nil, err
	}
	s := &splitQuestions{split: split, list: list, byID: map[QuestionID][]int{}, known: map[string]bool{}}
	for i, q := range list {
		s.byID[q.ID] = append(s.byID[q.ID], i)
		s.known[q.DBID] = true
	}
	return s, nil
}

// at returns the question at an index of the split's file.
func (s *splitQuestions) at(index int) (Question, error) {
	if s == nil {
		return Question{}, errNoBenchmark
	}
	if index < 0 || index >= len(s.list) {
		return Question{}, fmt.Errorf("question %d: split %s has %d questions, counted from 0", index, s.split, len(s.list))
	}
	return s.list[index], nil
}

// find returns the question that a rollout of our own format names.
func (s *splitQuestions) find(r *Rollout) (Question, error) {
	candidates := s.byID[r.QuestionID]
	for _, i := range candidates {
		if q := s.list[i]; len(candidates) == 1 || q.DBID == r.DBID && q.Question == r.Question {
			return q, nil
		}
	}
	if len(candidates) > 1 {
		return Question{}, fmt.Errorf("question_id: %s is the id of %d questions in split %s: give db_id and question too",
			r.QuestionID, len(candidates), s.split)
	}
	other := QuestionID{r.QuestionID.text, !r.QuestionID.quoted}
	if len(s.byID[other]) > 0 {
		form := "with"
		if r.QuestionID.quoted {
			form = "without"
		}
		return Question{}, fmt.Errorf("question_id: %s is an id of split %s %s quotes only: write it so", r.QuestionID, s.split, form)
	}
	return Question{}, fmt.Errorf("question_id: %s is not in split %s", r.QuestionID, s.split)
}

// complete checks a rollout of our own format and fills in what it leaves out.
func (s *splitQuestions) complete(r *Rollout, object []byte) error {
	switch {
	case r.SQL == "" && !hasValue(object, "sql"):
		return errors.New(`sql: missing or null; write "sql": "" for a candidate without a query`)
	case r.QuestionID.IsZero():
		return errors.New("question_id: missing")
	case s == nil && r.DBID == "":
		return errors.New("db_id: missing")
	case s == nil:
		return nil
	}
	q, err := s.find(r)
	if err != nil {
		return err
	}
	return s.settle(r, q)
}

// hasValue tells an empty value from one that is missing or null.
func hasValue(object []byte, name string) bool {
	var all Extra
	return json.Unmarshal(object, &all) == nil && all[name] != nil && !isNull(all[name])
}

// answers fills in what the rollout leaves out from the question that it answers.
func (r *Rollout) answers(q Question) error {
	if r.DBID != "" && r.DBID != q.DBID {
		return fmt.Errorf("db_id: %q, but question %s of the split is about %q: name the split of these lines with --split", r.DBID, q.ID, q.DBID)
	}
	r.DBID = q.DBID
	r.QuestionID = q.ID
	for _, f := range []struct {
		field *string
		value string
	}{{&r.Dataset, q.Dataset}, {&r.Question, q.Question}, {&r.Evidence, q.Evidence}, {&r.Gold, q.Gold}} {
		if *f.field == "" {
			*f.field = f.value
		}
	}
	return nil
}
