package data

import (
	"errors"
	"fmt"
	"iter"
)

// Trajectory is one run of several turns in which a model queries a database until
// it is content: the second form of a rollout.
type Trajectory struct {
	Dataset    string     `json:"dataset"`
	QuestionID QuestionID `json:"question_id"`
	DBID       string     `json:"db_id"`
	Question   string     `json:"question"`
	Evidence   string     `json:"evidence"`
	Gold       string     `json:"gold"`
	// Source is the generator, Sample the run's index there.
	Source string `json:"source"`
	Sample int    `json:"sample"`
	// Actions is what the model said in each turn: a query, a look at the schema
	// (SHOW TABLES, DESC t), or plain words.
	Actions []string `json:"actions"`
	// Success is what the file claims of the run, nil where it claims nothing.
	Success *bool `json:"success,omitempty"`
	// Extra holds the line's unknown fields, such as observations and rewards.
	Extra Extra `json:"-"`
}

// MarshalJSON writes the fields in their order, then Extra by name.
func (t Trajectory) MarshalJSON() ([]byte, error) {
	type plain Trajectory
	return marshalWithExtra(plain(t), t.Extra)
}

// UnmarshalJSON reads a line; an error names the field.
func (t *Trajectory) UnmarshalJSON(object []byte) error {
	type plain Trajectory
	extra, err := unmarshalWithExtra(object, (*plain)(t))
	t.Extra = extra
	return err
}

// ReadTrajectories streams a JSON Lines file of trajectories. What a line leaves
// out is filled in from the split's questions, and a database that is not the
// question's is an error. It stops after the first error, which names the line and
// the field.
func ReadTrajectories(path string, b *Benchmark, split string) iter.Seq2[Trajectory, error] {
	return func(yield func(Trajectory, error) bool) {
		questions, err := indexQuestions(b, split)
		if err != nil {
			yield(Trajectory{}, err)
			return
		}
		for t, err := range trajectories(path, questions) {
			if !yield(t, err) || err != nil {
				return
			}
		}
	}
}

func trajectories(path string, questions *splitQuestions) iter.Seq2[Trajectory, error] {
	return readJSONLines(path, func(object []byte, t *Trajectory) error {
		if err := t.UnmarshalJSON(object); err != nil {
			return err
		}
		return questions.completeTrajectory(t, object)
	})
}

// trajectoryQueries gives one rollout for each turn of a trajectory that holds a
// query, with the turn as its sample.
func trajectoryQueries(path string, questions *splitQuestions) iter.Seq2[Rollout, error] {
	return func(yield func(Rollout, error) bool) {
		if questions == nil {
			yield(Rollout{}, fmt.Errorf("%s: %w", path, errNoBenchmark))
			return
		}
		for t, err := range trajectories(path, questions) {
			if err != nil {
				yield(Rollout{}, err)
				return
			}
			for turn, action := range t.Actions {
				if statementStart.MatchString(action) && !yield(t.Rollout(turn, action), nil) {
					return
				}
			}
		}
	}
}

// completeTrajectory checks a trajectory and fills in what it leaves out. Logs of
// InterCode name the question by its index in the split, "dev_idx", and the
// generator "run".
func (s *splitQuestions) completeTrajectory(t *Trajectory, object []byte) error {
	if !hasValue(object, "actions") {
		return errors.New("actions: missing or null; want a list of texts, one a turn")
	}
	var log struct {
		Index *int   `json:"dev_idx"`
		Run   string `json:"run"`
	}
	if _, err := unmarshalWithExtra(object, &log); err != nil {
		return err
	}
	if t.Source == "" {
		t.Source = log.Run
	}
	r := t.Rollout(t.Sample, "")
	var q Question
	var err error
	switch {
	case !t.QuestionID.IsZero():
		q, err = s.find(&r)
	case log.Index != nil:
		q, err = s.at(*log.Index)
	default:
		err = errors.New("question_id: missing")
	}
	if err == nil {
		err = s.settle(&r, q)
	}
	t.Dataset, t.QuestionID, t.DBID = r.Dataset, r.QuestionID, r.DBID
	t.Question, t.Evidence, t.Gold = r.Question, r.Evidence, r.Gold
	return err
}

// Rollout is the query of one turn as a rollout of its own.
func (t Trajectory) Rollout(turn int, query string) Rollout {
	return Rollout{
		Dataset: t.Dataset, QuestionID: t.QuestionID, DBID: t.DBID, Question: t.Question, Evidence: t.Evidence,
		Gold: t.Gold, SQL: query, Source: t.Source, Sample: turn,
	}
}
