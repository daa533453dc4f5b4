package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"caper/sql"
	"caper/sqlexec"
)

// What is shown of a result table at most.
const (
	shownRows    = 6
	shownColumns = 8
	shownRunes   = 60 // of a cell
)

// openExamples is the number of examples that are unfolded at first, beside the
// first one that the model missed.
const openExamples = 3

// shown is an Example as the template needs it.
type shown struct {
	Question, DBID, Origin, Correct string
	Open                            bool
	Found                           bool
	Verdict                         string
	Clauses                         []shownClause
	Answers                         []answerTable
}

type shownClause struct {
	Kind, Text, Score string
	Class             string // of the colour scale
	Faulty, Suspect   bool   // at fault; of the lowest score
}

// answerTable shows an Answer: a failure, or the top left of a table.
type answerTable struct {
	Title, Error, Size string
	Columns            []string
	Rows               [][]cell
}

type cell struct {
	Text   string
	Null   bool
	Number bool
}

func shownExamples(examples []Example) []shown {
	limit := scoreLimit(examples)
	var all []shown
	missed := false
	for i, e := range examples {
		s := shown{Question: e.Question, DBID: e.DBID, Origin: e.Origin, Correct: e.Correct, Open: i < openExamples}
		s.Found, s.Verdict = verdict(e.Clauses)
		if !s.Found && !missed {
			s.Open, missed = true, true
		}
		lowest := lowestScore(e.Clauses)
		for _, c := range e.Clauses {
			s.Clauses = append(s.Clauses, shownClause{
				Kind: string(c.Kind), Text: strings.TrimSpace(c.Text), Score: fmt.Sprintf("%+.2f", c.Score),
				Class: scaleClass(c.Score, limit), Faulty: c.Faulty, Suspect: c.Score == lowest,
			})
		}
		s.Answers = []answerTable{tableOf("What it returned", e.Predicted), tableOf("What it should return", e.Expected)}
		all = append(all, s)
	}
	return all
}

// rankedScore is the score that a clause is ranked by: as in localisation, what is
// not a number comes last.
func (c Clause) rankedScore() float64 {
	if math.IsNaN(c.Score) {
		return math.Inf(1)
	}
	return c.Score
}

func lowestScore(clauses []Clause) float64 {
	lowest := math.Inf(1)
	for _, c := range clauses {
		lowest = min(lowest, c.rankedScore())
	}
	return lowest
}

// verdict says where the faulty clause ranks among the candidates.
func verdict(clauses []Clause) (found bool, text string) {
	faulty := slices.IndexFunc(clauses, func(c Clause) bool { return c.Faulty })
	if faulty < 0 {
		return false, "no clause is marked as faulty"
	}
	own, before, tied := clauses[faulty].rankedScore(), 0, -1 // it ties with itself
	for _, c := range clauses {
		switch score := c.rankedScore(); {
		case score < own:
			before++
		case score == own:
			tied++
		}
	}
	name := string(clauses[faulty].Kind)
	if clauses[faulty].Kind == sql.ClauseEnd {
		name = "END (a clause is missing)"
	}
	switch {
	case before == 0 && tied == 0:
		return true, "found: " + name
	case before == 0:
		return false, "tied: " + name
	}
	return false, fmt.Sprintf("missed: %s ranks %d of %d", name, before+1, len(clauses))
}

// The colour scale has scaleHalf steps on each side of 0; steps are classes of the
// style sheet.
const scaleHalf = 3

// scaleStep is one field of the scale's legend.
type scaleStep struct{ Class, Label string }

var scaleSteps = []scaleStep{
	{"low3", "low: suspect"}, {"low2", ""}, {"low1", ""}, {"mid", "0"}, {"high1", ""}, {"high2", ""}, {"high3", "high: trusted"},
}

// scoreLimit is the score from which on the colour stays the same: nine in ten
// scores are nearer to 0, so that one outlier does not pale all others.
func scoreLimit(examples []Example) float64 {
	var sizes []float64
	for _, e := range examples {
		for _, c := range e.Clauses {
			if size := math.Abs(c.Score); size <= math.MaxFloat64 {
				sizes = append(sizes, size)
			}
		}
	}
	if len(sizes) == 0 {
		return 1
	}
	slices.Sort(sizes)
	return max(sizes[(len(sizes)-1)*9/10], 1e-9)
}

func scaleClass(score, limit float64) string {
	if math.IsNaN(score) {
		return "mid"
	}
	step := math.Round(scaleHalf * min(max(score/limit, -1), 1))
	return scaleSteps[int(step)+scaleHalf].Class
}

func tableOf(title string, a Answer) answerTable {
	t := answerTable{Title: title, Error: a.Error}
	r := a.Result
	if r == nil {
		if t.Error == "" {
			t.Error = "not executed"
		}
		return t
	}
	t.Columns = r.Columns[:min(len(r.Columns), shownColumns)]
	for _, row := range r.Rows[:min(len(r.Rows), shownRows)] {
		var cells []cell
		for _, v := range row[:min(len(row), shownColumns)] {
			cells = append(cells, cellOf(v))
		}
		t.Rows = append(t.Rows, cells)
	}
	t.Size = sizeOf(r)
	return t
}

// sizeOf says how large a result is, and how much of it is shown.
func sizeOf(r *sqlexec.Result) string {
	size := Thousands(len(r.Rows)) + " rows"
	switch {
	case len(r.Rows) == 0:
		size = "no rows"
	case len(r.Rows) == 1:
		size = "1 row"
	case len(r.Rows) > shownRows:
		size = fmt.Sprintf("first %d of %s", shownRows, size)
	}
	if len(r.Columns) > shownColumns {
		size += fmt.Sprintf(", first %d of %d columns", shownColumns, len(r.Columns))
	}
	if r.Truncated {
		size += ", cut at the row limit"
	}
	return size
}

func cellOf(v sqlexec.Value) cell {
	switch v := v.(type) {
	case nil:
		return cell{Text: "NULL", Null: true}
	case int64:
		return cell{Text: strconv.FormatInt(v, 10), Number: true}
	case float64:
		return cell{Text: strconv.FormatFloat(v, 'g', 10, 64), Number: true}
	case []byte:
		return cell{Text: cut(fmt.Sprintf("x'%x'", v[:min(len(v), shownRunes)]))}
	case string:
		return cell{Text: cut(strings.ToValidUTF8(v, "\ufffd"))}
	}
	return cell{Text: cut(fmt.Sprint(v))}
}

// cut shortens a text to what fits a cell.
func cut(text string) string {
	if utf8.RuneCountInString(text) <= shownRunes {
		return text
	}
	return string([]rune(text)[:shownRunes-1]) + "…"
}
