package data

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// rolloutFormat reads the rollouts of one file format.
type rolloutFormat func(path string, questions *splitQuestions) iter.Seq2[Rollout, error]

// sniff tells the format from the file's first value.
func sniff(path string) (rolloutFormat, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	first, err := firstByte(r)
	switch {
	case err == io.EOF:
		return rolloutLines, nil // no rollouts
	case err != nil:
		return nil, err // which names the file
	case first == '[':
		return nil, fmt.Errorf("%s: a JSON list; want JSON Lines, or a BIRD prediction file, which is an object from question index to query", path)
	case first != '{':
		return spiderPredictions, nil
	}
	var object map[string]json.RawMessage
	if err := json.NewDecoder(r).Decode(&object); err != nil {
		return rolloutLines, nil // the reader will name the line
	}
	if _, ok := object["preds"]; ok {
		return predictionMaps, nil
	}
	if _, ok := object["actions"]; ok {
		return trajectoryQueries, nil
	}
	for key := range object {
		if _, err := strconv.Atoi(key); err == nil {
			return birdPredictions, nil
		}
	}
	return rolloutLines, nil
}

// firstByte returns the first byte that is not space, and leaves it unread.
func firstByte(r *bufio.Reader) (byte, error) {
	if mark, _ := r.Peek(3); string(mark) == "\ufeff" {
		r.Discard(3)
	}
	for {
		c, err := r.ReadByte()
		if err != nil {
			return 0, err
		}
		if !strings.ContainsRune(" \t\r\n", rune(c)) {
			return c, r.UnreadByte()
		}
	}
}

// sourceName is the generator's name where only the file tells it.
func sourceName(path string) string {
	base := filepath.Base(path)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// spiderPredictions reads one query a line. The official evaluator skips blank
// lines; where they are needed to make up the number they are empty predictions.
func spiderPredictions(path string, questions *splitQuestions) iter.Seq2[Rollout, error] {
	return func(yield func(Rollout, error) bool) {
		lines, err := queryLines(path, questions)
		if err != nil {
			yield(Rollout{}, err)
			return
		}
		for i, l := range lines {
			r := Rollout{Source: sourceName(path)}
			r.SQL, r.DBID = cutDatabase(strings.ToValidUTF8(string(l.text), "\ufffd"), questions)
			if err := questions.settle(&r, questions.list[i]); err != nil {
				yield(Rollout{}, l.errorf("%w", err))
				return
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// queryLines returns as many lines as the split has questions.
func queryLines(path string, questions *splitQuestions) ([]line, error) {
	if questions == nil {
		return nil, fmt.Errorf("%s: %w", path, errNoBenchmark)
	}
	var all, filled []line
	for l, err := range readLines(path) {
		if err != nil {
			return nil, err
		}
		all = append(all, l)
		if !l.blank() {
			filled = append(filled, l)
		}
	}
	switch len(questions.list) {
	case len(filled):
		return filled, nil
	case len(all):
		return all, nil
	}
	return nil, fmt.Errorf("%s: %d queries for the %d questions of split %s: want one a line, an empty line for none",
		path, len(filled), len(questions.list), questions.split)
}

// cutDatabase splits "SQL<TAB>db_id". Queries hold tabs of their own, so the last
// part counts only where it is a database's name.
func cutDatabase(text string, questions *splitQuestions) (query, dbID string) {
	text = strings.TrimSpace(text)
	if i := strings.LastIndexByte(text, '\t'); i >= 0 && questions.known[strings.TrimSpace(text[i:])] {
		return strings.TrimSpace(text[:i]), strings.TrimSpace(text[i:])
	}
	return text, ""
}

// birdMarker stands between query and database in BIRD's prediction file.
const birdMarker = "\t----- bird -----\t"

// birdPredictions pairs by key. (The official evaluator pairs by position, which
// ruins a file with sorted keys: mini_dev report 41.)
func birdPredictions(path string, questions *splitQuestions) iter.Seq2[Rollout, error] {
	return func(yield func(Rollout, error) bool) {
		predictions, err := readBirdFile(path)
		if err != nil {
			yield(Rollout{}, err)
			return
		}
		for _, index := range slices.Sorted(maps.Keys(predictions)) {
			value := predictions[index]
			r := Rollout{Source: sourceName(path)}
			if text, err := readString(value.text); err == nil {
				r.SQL, r.DBID, _ = strings.Cut(text, birdMarker)
			} else { // the evaluator goes on with an empty query, and so do we
				r.Extra = Extra{NotText: value.text}
			}
			q, err := questions.at(index)
			if err == nil {
				err = questions.settle(&r, q)
			}
			if err != nil {
				yield(Rollout{}, value.errorf("key %d: %w", index, err))
				return
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// readBirdFile returns the values by key. A key that stands there twice is an error:
// one of the two would be lost.
func readBirdFile(path string) (map[int]item, error) {
	predictions := map[int]item{}
	for m, err := range readJSONObject(path) {
		if err != nil {
			return nil, err
		}
		index, err := strconv.Atoi(m.name)
		if err != nil {
			return nil, m.value.errorf("key %q: want the index of a question", m.name)
		}
		if first, ok := predictions[index]; ok {
			return nil, m.value.errorf("key %s: it stands in line %d already: keep one", m.name, lineAt(path, first.offset))
		}
		predictions[index] = m.value
	}
	return predictions, nil
}

// predictionMap is a question with the queries of several systems.
type predictionMap struct {
	Index    *int             `json:"idx"`
	DBID     string           `json:"db_id"`
	Question string           `json:"question"`
	Evidence string           `json:"evidence"`
	Gold     string           `json:"gold"`
	Preds    map[string]Extra `json:"preds"`
}

// predictionMaps gives one rollout for each system, by name. A prediction's other
// fields, such as verdicts, go to the rollout's Extra.
func predictionMaps(path string, questions *splitQuestions) iter.Seq2[Rollout, error] {
	lines := readJSONLines(path, func(object []byte, rollouts *[]Rollout) (err error) {
		var m predictionMap
		if _, err := unmarshalWithExtra(object, &m); err != nil {
			return err
		}
		*rollouts, err = m.rollouts(questions)
		return err
	})
	return func(yield func(Rollout, error) bool) {
		for rollouts, err := range lines {
			if err != nil {
				yield(Rollout{}, err)
				return
			}
			for _, r := range rollouts {
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}

func (m *predictionMap) rollouts(questions *splitQuestions) ([]Rollout, error) {
	if m.Index == nil {
		return nil, errors.New("idx: missing")
	}
	question := Question{ID: IndexID(*m.Index), DBID: m.DBID}
	if questions != nil {
		var err error
		if question, err = questions.at(*m.Index); err != nil {
			return nil, err
		}
	}
	var rollouts []Rollout
	for _, system := range slices.Sorted(maps.Keys(m.Preds)) {
		pred := m.Preds[system]
		r := Rollout{DBID: m.DBID, Question: m.Question, Evidence: m.Evidence, Gold: m.Gold, Source: system}
		var err error
		if r.SQL, err = readString(pred["sql"]); err != nil {
			return nil, fmt.Errorf("preds: %s: sql: missing or not a string", system)
		}
		delete(pred, "sql")
		if len(pred) > 0 {
			r.Extra = pred
		}
		if strings.HasSuffix(system, "_raw") {
			r.SQL = restoreSelect(r.SQL)
		}
		if err := questions.settle(&r, question); err != nil {
			return nil, err
		}
		rollouts = append(rollouts, r)
	}
	return rollouts, nil
}

var statementStart = regexp.MustCompile(`(?i)^\s*(SELECT|WITH|VALUES)\b`)

// restoreSelect completes the raw answer to a prompt that ended in SELECT: it goes
// on after that word.
func restoreSelect(query string) string {
	if statementStart.MatchString(query) {
		return query
	}
	return "SELECT " + strings.TrimLeft(query, " \t\r\n")
}
