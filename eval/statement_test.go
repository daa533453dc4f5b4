package eval

import (
	"testing"

	"caper/sqlexec"
)

// What Python's sqlite3 makes of texts beside one statement, by trial with version
// 3.11: connect(":memory:").execute(text).
func TestStatements(t *testing.T) {
	for text, want := range map[string][2]bool{ // no statement, a second semicolon
		"": {true, false}, " \n": {true, false}, "-- a": {true, false}, "/* a": {true, false}, ";": {true, false}, "/* a */ ; -- b\n;": {true, true},
		"SELECT 1": {}, "SELECT 1;": {}, "SELECT 1; -- a": {}, "SELECT 1; /* a": {}, "SELECT ';;'": {}, "SELECT 1 -- ;;": {}, "SELECT \";\" || (1) ;": {},
		"SELECT 1;;": {false, true}, "SELECT 1; ;": {false, true}, "SELECT 1;\n/* a */ -- b\n;": {false, true},
		"SELECT 1; SELECT 2;": {}, // an error of another kind
	} {
		if none, second := hasNoStatement(text), hasSecondSemicolon(text); none != want[0] || !none && second != want[1] {
			t.Errorf("%q: no statement %v, second semicolon %v; want %v", text, none, second, want)
		}
	}
}

// The official rules run what is no statement, and gold's empty result is then right.
func TestNoStatement(t *testing.T) {
	r := openLibrary(t)
	const empty, full = "SELECT name, value FROM author WHERE 0", "SELECT name FROM author"
	for _, pred := range []string{"-- nothing", " ; "} {
		r.want(r.judge(Bird, empty, pred), Correct, Failed, NoStatement, sqlexec.EmptyWidth)
		r.want(r.judge(TestSuite, empty, pred), Correct, Failed, NoStatement, sqlexec.EmptyWidth)
		r.want(r.judge(Bird, full, pred), Failed, Failed)
		r.want(r.judge(Strict, empty, pred), Failed, Failed)
		r.want(r.judge(Bird, empty, pred, NoStatement), Failed, Failed)
	}
	r.want(r.judge(Bird, empty, ""), Correct, Failed, NoStatement, sqlexec.EmptyWidth)
	r.want(r.judge(TestSuite, empty, ""), Failed, Failed) // the script ends
	r.want(r.judge(TestSuite, empty, "", sqlexec.DistinctStripped, sqlexec.FirstStatement), Correct, Failed, NoStatement, sqlexec.EmptyWidth)
}

func TestSecondSemicolon(t *testing.T) {
	r := openLibrary(t)
	const gold = "SELECT name FROM author"
	r.want(r.judge(Bird, gold, gold+";;"), Failed, Correct, SecondSemicolon)
	r.want(r.judge(Spider, gold, gold+" ; ;"), Failed, Correct, SecondSemicolon)
	r.want(r.judge(Bird, gold+";;", gold), GoldFailed, Correct, SecondSemicolon)
	r.want(r.judge(TestSuite, gold, gold+";;"), Correct, Correct)
	r.want(r.judge(TestSuite, gold, gold+";;", sqlexec.DistinctStripped, sqlexec.FirstStatement), Failed, Correct, SecondSemicolon)
}

// A database that is damaged fails its own candidates only.
func TestDamagedDatabase(t *testing.T) {
	databases := openShop(t)
	summary := NewExecutionSummary(Strict, NewGroups(nil, NewSchemas(databases)))
	err := Execute(t.Context(), databases, quickCandidates(30), ExecutionOptions{Rule: Strict, Workers: 2}, func(j Judged) error {
		if (j.Verdict == DatabaseFailed) != (j.DBID == "damaged") || j.Verdict == DatabaseFailed && j.Message == "" {
			t.Errorf("%s: %s (%s)", j.DBID, j.Verdict, j.Message)
		}
		summary.Add(j)
		return nil
	})
	if err != nil || summary.DatabaseProblems != 10 || summary.GoldProblems != 0 {
		t.Errorf("%+v %v", summary, err)
	}
}
