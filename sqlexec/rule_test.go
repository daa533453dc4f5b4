package sqlexec

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

func table(rows ...[]Value) *Result {
	r := &Result{Rows: rows}
	if len(rows) > 0 {
		r.Columns = make([]string, len(rows[0]))
	}
	return r
}

func row(cells ...any) []Value {
	out := make([]Value, len(cells))
	for i, c := range cells {
		if n, ok := c.(int); ok {
			c = int64(n)
		}
		out[i] = c
	}
	return out
}

// addFloats adds at run time: constants would be added exactly.
func addFloats(a, b float64) float64 { return a + b }

func TestRulesOnHandMadeTables(t *testing.T) {
	sum := addFloats(0.1, 0.2) // 0.30000000000000004
	const plain, ordered, inner = "SELECT 1", "SELECT a FROM t ORDER BY a", "SELECT a FROM (SELECT a FROM t ORDER BY a)"
	for _, c := range []struct {
		name                    string
		gold, pred              *Result
		goldSQL                 string
		bird, testSuite, strict bool
	}{
		{"equal", table(row(1, "a")), table(row(1, "a")), plain, true, true, true},
		{"one as a float", table(row(1)), table(row(1.0)), plain, true, true, true},
		{"a number as text", table(row(1)), table(row("1")), plain, false, false, false},
		{"case of text", table(row("A")), table(row("a")), plain, false, false, false},
		{"text and blob", table(row("a")), table(row([]byte("a"))), plain, false, false, false},
		{"nulls", table(row(nil)), table(row(nil)), plain, true, true, true},
		{"null and empty", table(row(nil)), table(row("")), plain, false, false, false},
		{"order of rows", table(row(1), row(2)), table(row(2), row(1)), plain, true, true, true},
		{"order of rows, ordered gold", table(row(1), row(2)), table(row(2), row(1)), ordered, true, false, false},
		{"order of rows, order inside", table(row(1), row(2)), table(row(2), row(1)), inner, true, false, true},
		{"duplicate row", table(row(1), row(1)), table(row(1)), plain, true, false, false},
		{"other duplicates", table(row(1), row(1), row(2)), table(row(1), row(2), row(2)), plain, true, false, false},
		{"order of columns", table(row(1, "a"), row(2, "b")), table(row("a", 1), row("b", 2)), plain, false, true, false},
		{"columns scrambled against each other", table(row(1, "a"), row(2, "b")), table(row("b", 1), row("a", 2)), plain, false, false, false},
		{"one column more", table(row(1)), table(row(1, 1)), plain, false, false, false},
		{"rounding", table(row(sum)), table(row(0.3)), plain, false, false, true},
		{"rounding, other order", table(row(sum, 1), row(5.0, 2)), table(row(5.0, 2), row(0.3, 1)), plain, false, false, true},
		{"large integers", table(row(1 << 53)), table(row(1<<53 + 1)), plain, false, false, false},
		{"large integer and float", table(row(1<<53 + 1)), table(row(float64(1 << 53))), plain, false, false, true},
		{"infinity", table(row(math.Inf(1))), table(row(1.0)), plain, false, false, false},
		{"empty", table(), table(), plain, true, true, true},
		{"empty against rows", table(), table(row(1)), plain, false, false, false},
		{"bad bytes", table(row("a\xffb")), table(row("ab")), plain, false, true, false},
		{"bad bytes, same", table(row("a\xffb")), table(row("a\xffb")), plain, false, true, true},
		// Printed, "1<class" sorts after "1.0<class" and around "1.5<class": the
		// evaluator's pre-check refuses tables that are equal.
		{"one and one and a half", table(row(1, 1.5)), table(row(1.0, 1.5)), plain, true, false, true},
	} {
		for rule, want := range map[Rule]bool{Bird: c.bird, TestSuite: c.testSuite, Strict: c.strict} {
			if got := rule.Same(c.gold, c.pred, c.goldSQL); got != want {
				t.Errorf("%s: %s says %v", c.name, rule, got)
			}
		}
	}
}

func TestEmptyTablesOfOtherWidth(t *testing.T) {
	one, two := &Result{Columns: []string{"a"}}, &Result{Columns: []string{"a", "b"}}
	if !Bird.Same(one, two, "") || !TestSuite.Same(one, two, "") || Strict.Same(one, two, "") {
		t.Error("two empty results: equal officially, not strictly")
	}
}

func TestTruncatedIsNotWhole(t *testing.T) {
	whole, cut := table(row(1)), table(row(1))
	cut.Truncated = true
	for _, rule := range []Rule{Bird, TestSuite, Strict} {
		if rule.Same(whole, cut, "") {
			t.Errorf("%s: a truncated result equals a whole one", rule)
		}
	}
}

// smallTables draws two tables that are often equal up to order.
func smallTables(t *rapid.T) (gold, pred *Result) {
	cell := rapid.SampledFrom([]Value{nil, int64(0), int64(1), 1.0, 1.5, "1", "a", []byte("a")})
	width := rapid.IntRange(1, 4).Draw(t, "width")
	height := rapid.IntRange(1, 5).Draw(t, "height")
	draw := func(label string) *Result {
		r := &Result{Columns: make([]string, width)}
		for range height {
			r.Rows = append(r.Rows, rapid.SliceOfN(cell, width, width).Draw(t, label))
		}
		return r
	}
	gold = draw("gold")
	if rapid.Bool().Draw(t, "independent") {
		return gold, draw("pred")
	}
	columns := make([]int, width)
	for i := range columns {
		columns[i] = i
	}
	columns = rapid.Permutation(columns).Draw(t, "columns")
	pred = &Result{Columns: gold.Columns}
	for _, r := range rapid.Permutation(gold.Rows).Draw(t, "rows") {
		out := make([]Value, width)
		for i, j := range columns {
			out[i] = r[j]
		}
		pred.Rows = append(pred.Rows, out)
	}
	if rapid.Bool().Draw(t, "change a cell") {
		pred.Rows[0][0] = cell.Draw(t, "cell")
	}
	return gold, pred
}

// pythonEqual is written from the language's rules, not from appendKey.
func pythonEqual(a, b Value) bool {
	switch a := a.(type) {
	case nil:
		return b == nil
	case string:
		s, ok := b.(string)
		return ok && a == s
	case []byte:
		s, ok := b.([]byte)
		return ok && string(a) == string(s)
	case int64:
		switch b := b.(type) {
		case int64:
			return a == b
		case float64:
			return float64(a) == b
		}
	case float64:
		switch b := b.(type) {
		case int64:
			return a == float64(b)
		case float64:
			return a == b
		}
	}
	return false
}

func rowsEqual(a, b []Value) bool {
	for i := range a {
		if !pythonEqual(a[i], b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}

func bagsEqual(a, b [][]Value, same func(a, b []Value) bool) bool {
	free := make([]bool, len(b))
	for _, r := range a {
		found := false
		for j := range b {
			if !free[j] && same(r, b[j]) {
				free[j], found = true, true
				break
			}
		}
		if !found {
			return false
		}
	}
	return len(a) == len(b)
}

// anyPermutation tries every order of pred's columns.
func anyPermutation(gold, pred *Result, same func(a, b [][]Value) bool) bool {
	var try func(order []int) bool
	try = func(order []int) bool {
		if len(order) == len(pred.Columns) {
			permuted := make([][]Value, len(pred.Rows))
			for i, r := range pred.Rows {
				for _, j := range order {
					permuted[i] = append(permuted[i], r[j])
				}
			}
			return same(gold.Rows, permuted)
		}
		for j := range pred.Columns {
			taken := false
			for _, o := range order {
				taken = taken || o == j
			}
			if !taken && try(append(order[:len(order):len(order)], j)) {
				return true
			}
		}
		return false
	}
	return try(nil)
}

func TestRulesAreTheirDefinitions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gold, pred := smallTables(t)
		subset := func(a, b [][]Value) bool {
			for _, r := range a {
				if !bagsEqual([][]Value{r}, [][]Value{r}, rowsEqual) {
					return false
				}
				found := false
				for _, q := range b {
					found = found || rowsEqual(r, q)
				}
				if !found {
					return false
				}
			}
			return true
		}
		if want := subset(gold.Rows, pred.Rows) && subset(pred.Rows, gold.Rows); Bird.Same(gold, pred, "") != want {
			t.Fatalf("bird: want %v", want)
		}
		if want := bagsEqual(gold.Rows, pred.Rows, rowsEqual); Strict.Same(gold, pred, "SELECT 1") != want {
			t.Fatalf("strict: want %v", want)
		}
		bags := func(a, b [][]Value) bool { return bagsEqual(a, b, rowsEqual) }
		lists := func(a, b [][]Value) bool {
			for i := range a {
				if !rowsEqual(a[i], b[i]) {
					return false
				}
			}
			return true
		}
		for query, same := range map[string]func(a, b [][]Value) bool{"": bags, "order by": lists} {
			want := anyPermutation(gold, pred, same) && passesSortCheck(gold.Rows, pred.Rows, query != "")
			if TestSuite.Same(gold, pred, query) != want {
				t.Fatalf("test-suite %q: want %v", query, want)
			}
		}
	})
}

func TestManyAlikeColumns(t *testing.T) {
	// 40 columns of 0 and 1 with the same bag each: the search must not try 40! orders.
	gold, pred := &Result{Columns: make([]string, 40)}, &Result{Columns: make([]string, 40)}
	for i := range 64 {
		var g, p []Value
		for j := range 40 {
			g = append(g, int64(i>>(j%6)&1))
			p = append(p, int64((63-i)>>((j+1)%6)&1))
		}
		gold.Rows, pred.Rows = append(gold.Rows, g), append(pred.Rows, p)
	}
	if !TestSuite.Same(gold, pred, "") {
		t.Error("equal tables")
	}
	pred.Rows[0], pred.Rows[1] = append([]Value{pred.Rows[1][0]}, pred.Rows[0][1:]...), append([]Value{pred.Rows[0][0]}, pred.Rows[1][1:]...)
	TestSuite.Same(gold, pred, "")
}

func TestPythonPrint(t *testing.T) {
	for text, v := range map[string]Value{
		"None<class 'NoneType'>": nil, "-3<class 'int'>": int64(-3), "it's<class 'str'>": "it's",
		"1.0<class 'float'>": 1.0, "0.0001<class 'float'>": 0.0001, "1e-05<class 'float'>": 0.00001,
		"1.5e+16<class 'float'>": 1.5e16, "1234567890123456.0<class 'float'>": 1234567890123456.0,
		"-inf<class 'float'>": math.Inf(-1), "0.30000000000000004<class 'float'>": addFloats(0.1, 0.2),
		`b'a\x00\\\'"\n'<class 'bytes'>`: []byte("a\x00\\'\"\n"), `b"it's"<class 'bytes'>`: []byte("it's"),
	} {
		if got := pythonPrint(v); got != text {
			t.Errorf("%v prints as %s, want %s", v, got, text)
		}
	}
}

func TestRewriteForTestSuite(t *testing.T) {
	for query, want := range map[string]string{
		"SELECT DISTINCT a FROM t":                         "SELECT  a FROM t",
		"SELECT count(distinct a), 'DISTINCT' FROM t":      "SELECT count( a), 'DISTINCT' FROM t",
		`SELECT "it's distinct", distinctly -- distinct`:   `SELECT "it's distinct", distinctly -- distinct`,
		"SELECT 'it''s' WHERE a > = 1 AND b ! = 'x > = y'": "SELECT 'it''s' WHERE a >= 1 AND b != 'x >= y'",
		"SELECT year ( curdate() ) - age":                  "SELECT 2020- age",
		"SELECT 'open DISTINCT":                            "SELECT 'open DISTINCT",
	} {
		if got := TestSuite.Rewrite(query); got != want {
			t.Errorf("%q: have %q, want %q", query, got, want)
		}
		if Bird.Rewrite(query) != query || Strict.Rewrite(query) != query {
			t.Errorf("%q: only the test-suite rule rewrites", query)
		}
	}
}

// sharedData finds test data that lies beside the repository, if it is there.
func sharedData(t testing.TB, parts ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{"..", "..", "shared", "data"}, parts...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no test data: %v", err)
	}
	return path
}

// TestAgreesWithPublishedVerdicts runs published predictions, eight systems on Spider
// dev and 22 on one database of BIRD dev, and compares our verdicts with those of
// other evaluators.
func TestAgreesWithPublishedVerdicts(t *testing.T) {
	rules := map[string]Rule{"set": Bird, "ts": TestSuite, "strict": Strict, "ex": Bird}
	agree, total := map[string]int{}, map[string]int{}
	cache := NewCache(64 << 20)
	for _, p := range append(publishedVerdicts(t, "spider"), publishedVerdicts(t, "bird")...) {
		for column, want := range p.verdicts {
			rule := rules[column]
			g, err := cache.Query(context.Background(), p.db, rule.Rewrite(p.gold))
			if err != nil {
				t.Fatalf("gold %s: %v", p.gold, err)
			}
			r, err := cache.Query(context.Background(), p.db, rule.Rewrite(p.pred))
			var failed *Error
			if err != nil && !errors.As(err, &failed) {
				t.Fatal(err)
			}
			got := err == nil && rule.Same(g, r, p.gold)
			total[column]++
			switch {
			case got == want:
				agree[column]++
			case rule == Strict && want && (Quirks{ColumnPermutation, EmptyWidth, ExactFloats}).Same(g, r, p.gold):
				// Their strict verdict permutes columns and takes empty results of any
				// width as equal. Ours does not.
			default:
				t.Errorf("%s on %s: have %v\n gold %s\n pred %s", column, p.db.Path(), got, p.gold, p.pred)
			}
		}
	}
	for column := range rules {
		t.Logf("%s: %d of %d agree (%.2f %%)", column, agree[column], total[column], 100*float64(agree[column])/float64(total[column]))
	}
}

type published struct {
	db         *Database
	gold, pred string
	verdicts   map[string]bool
}

// publishedVerdicts reads the predictions that have verdicts and a database.
func publishedVerdicts(t testing.TB, benchmark string) (out []published) {
	f, err := os.Open(sharedData(t, "predictions", benchmark+"_dev.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	databases := map[string]*Database{}
	for lines := json.NewDecoder(f); lines.More(); {
		var q struct {
			DBID  string `json:"db_id"`
			Gold  string
			Preds map[string]struct {
				SQL                 string
				Set, Strict, TS, EX *int
			}
		}
		if err := lines.Decode(&q); err != nil {
			t.Fatal(err)
		}
		path := sharedData(t, benchmark, "database") + "/" + q.DBID + "/" + q.DBID + ".sqlite"
		if _, err := os.Stat(path); err != nil {
			continue
		}
		if databases[q.DBID] == nil {
			d, err := Open(path, DefaultLimits())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { d.Close() })
			databases[q.DBID] = d
		}
		for system, pred := range q.Preds {
			p := published{databases[q.DBID], q.Gold, pred.SQL, map[string]bool{}}
			if system == "chatgpt_zero-shot_raw" {
				p.pred = "SELECT " + p.pred // its prompt had written the word already
			}
			for column, v := range map[string]*int{"set": pred.Set, "strict": pred.Strict, "ts": pred.TS, "ex": pred.EX} {
				if v != nil && *v >= 0 {
					p.verdicts[column] = *v == 1
				}
			}
			out = append(out, p)
		}
	}
	return out
}
