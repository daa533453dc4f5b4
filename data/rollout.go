package data

import (
	"errors"
	"iter"
)

// Rollout is one candidate query for one question (docs/formats.md).
type Rollout struct {
	Dataset    string     `json:"dataset"`
	QuestionID QuestionID `json:"question_id"`
	DBID       string     `json:"db_id"`
	Question   string     `json:"question"`
	Evidence   string     `json:"evidence"`
	Gold       string     `json:"gold"`
	SQL        string     `json:"sql"`
	// Source is the generator that wrote SQL, Sample its index there.
	Source string `json:"source"`
	Sample int    `json:"sample"`
	// Extra holds the line's unknown fields, written back unchanged.
	Extra Extra `json:"-"`
}

// MarshalJSON writes the fields in their order, then Extra by name.
func (r Rollout) MarshalJSON() ([]byte, error) {
	type plain Rollout
	return marshalWithExtra(plain(r), r.Extra)
}

// UnmarshalJSON reads a line; an error names the field.
func (r *Rollout) UnmarshalJSON(object []byte) error {
	type plain Rollout
	extra, err := unmarshalWithExtra(object, (*plain)(r))
	r.Extra = extra
	return err
}

// WriteRollouts writes a JSON Lines file, whole or not at all.
func WriteRollouts(path string, rollouts iter.Seq[Rollout]) error {
	return writeJSONLines(path, rollouts)
}

// ReadRollouts streams the candidates in a file, whose format its first bytes tell:
//
//   - JSON Lines of rollouts;
//   - the official Spider prediction file: one query a line, for the questions of
//     the split in order, possibly followed by a tab and the database;
//   - BIRD's prediction JSON: {"0": "SQL\t----- bird -----\tdb_id", ...}, paired
//     with the split's questions by key;
//   - JSON Lines of questions with "preds", a map from system to {"sql"}, one
//     rollout for each system;
//   - JSON Lines of trajectories, one rollout for each turn that holds a query.
//
// What a line leaves out is filled in from the split's questions, and a database
// that is not the question's is an error. With a nil b only JSON Lines can be read,
// and nothing is filled in. It stops after the first error, which names the line
// and the field.
func ReadRollouts(path string, b *Benchmark, split string) iter.Seq2[Rollout, error] {
	return func(yield func(Rollout, error) bool) {
		format, err := sniff(path)
		var questions *splitQuestions
		if err == nil && b != nil {
			questions, err = indexQuestions(b, split)
		}
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

// ReadRolloutLines streams a JSON Lines file of rollouts as what read makes of each. It
// stops after the first error, which names the line.
func ReadRolloutLines[T any](path string, read func(Rollout) (T, error)) iter.Seq2[T, error] {
	return readJSONLines(path, func(object []byte, v *T) error {
		var r Rollout
		err := r.UnmarshalJSON(object)
		if err == nil {
			*v, err = read(r)
		}
		return err
	})
}

// rolloutLines reads our own format.
func rolloutLines(path string, questions *splitQuestions) iter.Seq2[Rollout, error] {
	return readJSONLines(path, func(object []byte, r *Rollout) error {
		if err := r.UnmarshalJSON(object); err != nil {
			return err
		}
		return questions.complete(r, object)
	})
}

var errNoBenchmark = errors.New("this format holds queries only: name the benchmark and the split they answer")
