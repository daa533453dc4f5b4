package annotate

import (
	"iter"
	"regexp"
	"slices"
	"strings"
	"testing"

	"caper/data"
)

// labels runs LabelTrajectories.
func labels(t *testing.T, b *data.Benchmark, trajectories iter.Seq2[data.Trajectory, error]) ([]TrajectoryLabel, TrajectorySummary) {
	t.Helper()
	var list []TrajectoryLabel
	summary, err := LabelTrajectories(t.Context(), b, trajectories, DefaultOptions(), func(l TrajectoryLabel) error {
		list = append(list, l)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list, summary
}

// TestTrajectoryLabels: runs whose states a reader can follow, a letter a turn: -
// none, c correct, m mendable, l lost.
func TestTrajectoryLabels(t *testing.T) {
	const (
		gold = "SELECT name FROM owner WHERE city = 'Oslo'"
		good = "SELECT name FROM owner WHERE id = 3"
		near = "SELECT id FROM owner WHERE city = 'Oslo'"
		far  = "SELECT id FROM owner WHERE city = 'Rome'"
		no   = "SELECT what FROM nowhere"
	)
	b := petBenchmark(t)
	for _, c := range []struct {
		name    string
		actions []string
		states  string
		lost    int
	}{
		{"right at once", []string{good}, "c", -1},
		{"right at last", []string{"SHOW TABLES", far, near, good}, "-lmc", -1},
		{"mendable to the end", []string{far, "DESC owner", near}, "llm", -1},
		{"lost from the start", []string{no, "I do not know.", far}, "lll", 0},
		{"lost after looking round", []string{"SHOW TABLES", "SELECT * FROM sqlite_schema", far}, "--l", 2},
		{"lost, regained, lost for good", []string{far, near, "Let me see.", no, far}, "lmmll", 3},
		{"lost though it was right", []string{good, far, far}, "cll", 1},
		{"a query that is none", []string{near, "SELECT FROM WHERE"}, "ml", 1},
		{"words only", []string{"Hello."}, "-", -1},
		{"nothing", nil, "", -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			claim := true
			list, summary := labels(t, b, func(yield func(data.Trajectory, error) bool) {
				yield(data.Trajectory{DBID: "pets", Gold: gold, Actions: c.actions, Success: &claim}, nil)
			})
			states := ""
			for _, turn := range list[0].Turns {
				states += map[State]string{NoQueryYet: "-", Solved: "c", Mendable: "m", Lost: "l"}[turn.State]
			}
			if states != c.states || list[0].LostTurn != c.lost {
				t.Errorf("%s, lost from turn %d on; want %s, %d", states, list[0].LostTurn, c.states, c.lost)
			}
			if refuted := !strings.HasSuffix(c.states, "c"); (summary.Refuted == 1) != refuted || summary.Claimed != 1 {
				t.Errorf("%+v", summary)
			}
		})
	}
	list, _ := labels(t, b, func(yield func(data.Trajectory, error) bool) {
		yield(data.Trajectory{DBID: "pets", Gold: "SELECT none FROM owner", Actions: []string{good}}, nil)
	})
	if list[0].Reason != GoldError || len(list[0].Turns) != 0 {
		t.Errorf("%+v", list[0])
	}
}

// TestRealTrajectories checks the labels of real runs by means of its own: its own
// connections and comparison, its own cutting of queries into clauses. A turn is
// correct if and only if its query is; every mend is correct; where swapping in one
// of gold's clauses, word for word, makes the query correct, the turn is not lost;
// the lost turn is the first of the lost ones at the end.
func TestRealTrajectories(t *testing.T) {
	bench, err := data.OpenBenchmark(shared(t, "spider"), "spider")
	if err != nil {
		t.Fatal(err)
	}
	defer bench.Close()
	c := newChecker(t, bench)
	path := shared(t, "trajectories", "multiturn_spider_dev.jsonl")
	i := 0
	list, summary := labels(t, bench, func(yield func(data.Trajectory, error) bool) {
		for run, err := range data.ReadTrajectories(path, bench, "dev") {
			if i++; (err != nil || i%3 == 0 && run.DBID != "wta_1") && !yield(run, err) {
				return
			}
		}
	})
	swapped := 0
	for _, l := range list {
		lost := len(l.Turns)
		for i, turn := range slices.Backward(l.Turns) {
			if turn.State != Lost {
				break
			}
			lost = i
		}
		if l.LostTurn != lost && (l.LostTurn != -1 || lost != len(l.Turns)) {
			t.Errorf("%s: lost from turn %d on, labelled %d", l.QuestionID, lost, l.LostTurn)
		}
		for i, turn := range l.Turns {
			if turn.Kind != QueryTurn || turn.Failure == string(NoParse) {
				continue
			}
			query := l.Actions[i]
			if isCorrect, _ := c.correct(l.DBID, query, l.Gold); isCorrect != (turn.State == Solved) {
				t.Errorf("%s turn %d is %s: %s", l.QuestionID, i, turn.State, query)
			}
			for _, m := range turn.Mends {
				if isCorrect, err := c.correct(l.DBID, m.SQL, l.Gold); !isCorrect {
					t.Errorf("%s turn %d: the mended %s is wrong: %s (%v)", l.QuestionID, i, m.Clause, m.SQL, err)
				}
			}
			for _, q := range clauseSwaps(query, l.Gold) {
				if isCorrect, _ := c.correct(l.DBID, q, l.Gold); isCorrect {
					swapped++
					if turn.State == Lost {
						t.Errorf("%s turn %d is lost, but this is correct: %s", l.QuestionID, i, q)
					}
					break
				}
			}
		}
	}
	t.Logf("%+v; %d turns correct with one clause swapped", summary, swapped)
	if swapped < 50 || summary.Outcomes[Lost] < 20 || summary.Outcomes[Mendable] < 10 {
		t.Errorf("too few to judge by")
	}
}

var clauseWord = regexp.MustCompile(`(?i)\b(SELECT|FROM|WHERE|GROUP BY|HAVING|ORDER BY|LIMIT)\b`)

// flatClauses cuts a query without brackets and set operations into its clauses by
// keyword.
func flatClauses(query string) map[string]string {
	if strings.ContainsAny(strings.ReplaceAll(query, "(*)", ""), "()") || regexp.MustCompile(`(?i)\b(UNION|INTERSECT|EXCEPT)\b`).MatchString(query) {
		return nil
	}
	clauses := make(map[string]string)
	places := clauseWord.FindAllStringIndex(query, -1)
	for i, p := range places {
		end := len(query)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		clauses[strings.ToUpper(query[p[0]:p[1]])] = strings.Trim(query[p[0]:end], "; \n")
	}
	return clauses
}

// clauseSwaps lists the queries that take one clause, or its absence, from gold.
func clauseSwaps(query, gold string) []string {
	ours, theirs := flatClauses(query), flatClauses(gold)
	if ours == nil || theirs == nil {
		return nil
	}
	order := []string{"SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT"}
	var list []string
	for _, swapped := range order {
		var parts []string
		for _, word := range order {
			clause := ours[word]
			if word == swapped {
				clause = theirs[word]
			}
			if clause != "" {
				parts = append(parts, clause)
			}
		}
		list = append(list, strings.Join(parts, " "))
	}
	return list
}
