package report

import (
	"fmt"
	"math"
	"testing"

	"caper/sql"
	"caper/sqlexec"
)

func TestVerdict(t *testing.T) {
	nan := math.NaN()
	for _, test := range []struct {
		name   string
		scores []float64
		faulty int
		found  bool
		text   string
	}{
		{"lowest", []float64{1, -1, 2}, 1, true, "found: FROM"},
		{"second", []float64{1, -1, 2}, 0, false, "missed: SELECT ranks 2 of 3"},
		{"tie", []float64{-1, -1, 2}, 0, false, "tied: SELECT"},
		{"missing clause", []float64{3, 2, 1}, 2, true, "found: END (a clause is missing)"},
		{"others are no numbers", []float64{nan, 5, nan}, 1, true, "found: FROM"},
		{"is no number", []float64{1, nan, 2}, 1, false, "missed: FROM ranks 3 of 3"},
		{"none", []float64{1, 2, 3}, -1, false, "no clause is marked as faulty"},
	} {
		t.Run(test.name, func(t *testing.T) {
			clauses := []Clause{{Kind: sql.ClauseSelect}, {Kind: sql.ClauseFrom}, {Kind: sql.ClauseEnd}}
			for i := range clauses {
				clauses[i].Score, clauses[i].Faulty = test.scores[i], i == test.faulty
			}
			if found, text := verdict(clauses); found != test.found || text != test.text {
				t.Errorf("%v, %q; want %v, %q", found, text, test.found, test.text)
			}
		})
	}
}

func TestScaleClass(t *testing.T) {
	for score, want := range map[float64]string{
		0: "mid", -0.4: "low1", 2: "high3", -2: "low3", 1: "high2", -1: "low2", math.Inf(-1): "low3",
	} {
		if got := scaleClass(score, 1.5); got != want {
			t.Errorf("score %v: class %s, want %s", score, got, want)
		}
	}
}

func TestTableOf(t *testing.T) {
	long := make([]sqlexec.Value, 20)
	columns := make([]string, 20)
	for name, test := range map[string]struct {
		answer Answer
		size   string
		errors string
	}{
		"none":      {Answer{Result: &sqlexec.Result{Columns: []string{"a"}}}, "no rows", ""},
		"one":       {Answer{Result: &sqlexec.Result{Columns: []string{"a"}, Rows: [][]sqlexec.Value{{nil}}}}, "1 row", ""},
		"wide":      {Answer{Result: &sqlexec.Result{Columns: columns, Rows: [][]sqlexec.Value{long}}}, "1 row, first 8 of 20 columns", ""},
		"many":      {Answer{Result: &sqlexec.Result{Columns: []string{"a"}, Rows: make([][]sqlexec.Value, 7)}}, "first 6 of 7 rows", ""},
		"truncated": {Answer{Result: &sqlexec.Result{Columns: []string{"a"}, Rows: make([][]sqlexec.Value, 3), Truncated: true}}, "3 rows, cut at the row limit", ""},
		"failed":    {Answer{Error: "timeout: not done after 5s"}, "", "timeout: not done after 5s"},
		"nothing":   {Answer{}, "", "not executed"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tableOf("", test.answer); got.Size != test.size || got.Error != test.errors {
				t.Errorf("size %q, error %q; want %q, %q", got.Size, got.Error, test.size, test.errors)
			}
		})
	}
}

func TestCellOf(t *testing.T) {
	for _, test := range []struct {
		value sqlexec.Value
		want  cell
	}{
		{nil, cell{Text: "NULL", Null: true}},
		{"NULL", cell{Text: "NULL"}},
		{int64(-7), cell{Text: "-7", Number: true}},
		{0.1, cell{Text: "0.1", Number: true}},
		{[]byte{0, 255}, cell{Text: "x'00ff'"}},
		{"a\xffb", cell{Text: "a\ufffdb"}},
	} {
		if got := cellOf(test.value); got != test.want {
			t.Errorf("%#v: %+v, want %+v", test.value, got, test.want)
		}
	}
}

// The first examples are unfolded, and the first that the model missed.
func TestFirstMissIsOpen(t *testing.T) {
	found := Example{Clauses: []Clause{{Kind: sql.ClauseSelect, Score: -1, Faulty: true}, {Kind: sql.ClauseEnd, Score: 1}}}
	missed := Example{Clauses: []Clause{{Kind: sql.ClauseSelect, Score: 1, Faulty: true}, {Kind: sql.ClauseEnd, Score: -1}}}
	var open []int
	for i, s := range shownExamples([]Example{found, found, found, found, missed, found, missed}) {
		if s.Open {
			open = append(open, i)
		}
	}
	if got, want := fmt.Sprint(open), "[0 1 2 4]"; got != want {
		t.Errorf("open: %s, want %s", got, want)
	}
}
