package eval

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"caper/data"
	"caper/sqlexec"
)

func results(rows ...[]sqlexec.Value) *sqlexec.Result {
	r := &sqlexec.Result{Rows: rows}
	if len(rows) > 0 {
		r.Columns = make([]string, len(rows[0]))
	}
	return r
}

// TestSoftF1 has tables worked out by hand from the definition.
func TestSoftF1(t *testing.T) {
	type row = []sqlexec.Value
	for _, c := range []struct {
		name       string
		gold, pred *sqlexec.Result
		want       float64
	}{
		{"equal", results(row{int64(1), "a"}), results(row{int64(1), "a"}), 1},
		{"columns in another order", results(row{int64(1), "a"}), results(row{"a", 1.0}), 1},
		{"nothing found", results(row{int64(1)}), results(row{int64(2)}), 0},
		{"gold empty", results(), results(row{int64(1)}), 0},
		{"prediction empty", results(row{int64(1)}), results(), 0},
		{"duplicates", results(row{int64(1)}, row{int64(1)}), results(row{int64(1)}), 1},
		// tp 1, fp 1/2 (one cell of two), fn 0: p = 2/3, r = 1.
		{"a column too many", results(row{"a", "b"}), results(row{"a", "b", "c"}), 0.8},
		// tp 1/2, fn 1/2: p = 1, r = 1/2.
		{"a column too few", results(row{"a", "b"}), results(row{"a"}), 2.0 / 3},
		// tp 1, fn 1: p = 1, r = 1/2.
		{"a row too few", results(row{"a"}, row{"b"}), results(row{"a"}), 2.0 / 3},
		// Cells match twice: tp 2/2, fp 0, fn 1/2.
		{"a cell twice", results(row{"a", "b"}), results(row{"a", "a"}), 0.8},
	} {
		if have := SoftF1(c.gold, c.pred); math.Abs(have-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", c.name, have, c.want)
		}
	}
}

func TestMeanWithin3Sigma(t *testing.T) {
	// 99 ones and a hundred: mean 1.99, deviation 9.85, so that the hundred is dropped.
	values := make([]float64, 100)
	for i := range values {
		values[i] = 1
	}
	values[7] = 100
	if have := meanWithin3Sigma(values); have != 1 {
		t.Errorf("mean %v", have)
	}
	if have := median(values); have != 1 {
		t.Errorf("median %v", have)
	}
	// All equal: nothing is within zero deviations, and the official score is 0.
	if have := meanWithin3Sigma([]float64{2, 2, 2}); have != 0 {
		t.Errorf("equal ratios give %v", have)
	}
	if have := median([]float64{4, 1, 2, 3}); have != 2.5 {
		t.Errorf("median of four: %v", have)
	}
}

func TestEfficiencyValue(t *testing.T) {
	for ratio, want := range map[float64]float64{0: 0, 0.1: 0.25, 0.25: 0.5, 0.5: 0.75, 1: 1, 1.99: 1, 2: 1.25, 9: 1.25} {
		if have := RVES.value(ratio); have != math.Sqrt(want) {
			t.Errorf("R-VES of %v: %v", ratio, have)
		}
		if have := VES.value(ratio); have != math.Sqrt(ratio) {
			t.Errorf("VES of %v: %v", ratio, have)
		}
	}
}

func TestMeasureEfficiency(t *testing.T) {
	databases := openShop(t)
	for _, kind := range []EfficiencyScore{VES, RVES} {
		i := 0
		err := MeasureEfficiency(context.Background(), databases, candidates(1), EfficiencyOptions{Score: kind, Repeats: 3, Workers: 1}, func(m Timed) error {
			want := executionCases[i].bird
			if i++; m.Verdict != want || (m.Value > 0) != (want == Correct) || (m.Median > 0) != (want == Correct) {
				t.Errorf("%s: %s worth %v, median ratio %v; want %s", m.SQL, m.Verdict, m.Value, m.Median, want)
			}
			var ratio float64
			if err := json.Unmarshal(m.Line().Extra["time_ratio"], &ratio); err != nil || ratio != m.Ratio {
				t.Errorf("line %+v", m.Line())
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestMcNemar(t *testing.T) {
	for _, c := range []struct {
		a, b int
		want float64
	}{
		{0, 0, 1}, {3, 3, 1}, {0, 1, 1}, {0, 5, 2.0 / 32}, {5, 0, 2.0 / 32},
		{1, 9, 2 * 11.0 / 1024}, // 1 + 10 of 2^10
		{2, 6, 2 * 37.0 / 256},  // 1 + 8 + 28 of 2^8
	} {
		if have := mcNemar(c.a, c.b); math.Abs(have-c.want) > 1e-12 {
			t.Errorf("%d against %d: %v, want %v", c.a, c.b, have, c.want)
		}
	}
	if p := mcNemar(100, 4000); p < 0 || p > 1e-300 {
		t.Errorf("a hundred against four thousand: %v", p)
	}
}

func TestCompareVerdicts(t *testing.T) {
	a, b := &Verdicts{Name: "a"}, &Verdicts{Name: "b"}
	add := func(v *Verdicts, question int, verdict Verdict) {
		if err := v.Add(data.Rollout{QuestionID: data.IndexID(question), DBID: "d"}, verdict); err != nil {
			t.Fatal(err)
		}
	}
	for q := range 100 {
		va, vb := Wrong, Correct
		switch {
		case q < 40:
			va = Correct
		case q < 50:
			va, vb = Correct, Failed
		case q < 80:
			vb = TimedOut
		}
		add(a, q, va)
		add(b, q, vb)
	}
	add(a, 200, Correct)
	add(b, 300, Correct)
	add(a, 400, Correct)
	add(b, 400, GoldTimeout)
	c, err := CompareVerdicts(a, b, 2000, 1)
	if err != nil {
		t.Fatal(err)
	}
	if c.Questions != 100 || c.Both != 40 || c.OnlyA != 10 || c.OnlyB != 20 || c.Neither != 30 || c.Unpaired != 2 || c.GoldProblems != 1 {
		t.Errorf("%+v", c)
	}
	if c.AccuracyA != 0.5 || c.AccuracyB != 0.6 || math.Abs(c.Difference-0.1) > 1e-12 || c.P != mcNemar(10, 20) {
		t.Errorf("%+v", c)
	}
	// The difference's deviation is sqrt(0.3 - 0.01)/10 = 0.054; two of them make the interval.
	if math.Abs(c.Interval[0]-(0.1-1.96*0.054)) > 0.02 || math.Abs(c.Interval[1]-(0.1+1.96*0.054)) > 0.02 {
		t.Errorf("interval %v", c.Interval)
	}
	if d, err := CompareVerdicts(b, a, 2000, 1); err != nil || d.Difference != -c.Difference || d.P != c.P {
		t.Errorf("turned round: %+v", d)
	}
}

// TestVariants: a prediction has to be right on every database of the folder, except
// for the evaluators that look at one.
func TestVariants(t *testing.T) {
	main := openTables(t, "CREATE TABLE n (i INT); INSERT INTO n VALUES (1), (2)")
	other := openTables(t, "CREATE TABLE n (i INT); INSERT INTO n VALUES (1), (2), (3)")
	databases := suite{main, other}
	one := []data.Rollout{{QuestionID: data.IndexID(0), DBID: "shop", Gold: "SELECT max(i) FROM n", SQL: "SELECT count(*) - (SELECT count(*) FROM n) + 2 FROM n"}}
	for rule, want := range map[Rule][2]Verdict{TestSuite: {Wrong, Wrong}, Strict: {Wrong, Wrong}, Bird: {Correct, Wrong}} {
		o := ExecutionOptions{Rule: rule, Workers: 1, Explain: true}
		err := Execute(context.Background(), databases, stream(one), o, func(j Judged) error {
			if j.Verdict != want[0] || j.Strict != want[1] || rule == Bird && (len(j.Quirks) != 1 || j.Quirks[0] != OneDatabase) {
				t.Errorf("%s: %s, strict %s, %v", rule, j.Verdict, j.Strict, j.Quirks)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// suite is a database with a variant.
type suite struct{ shop, other shop }

func (s suite) Database(dbID string) (*sqlexec.Database, error) { return s.shop.Database(dbID) }

func (s suite) Variants(string) ([]*sqlexec.Database, error) {
	return []*sqlexec.Database{s.shop.db, s.other.db}, nil
}

func TestBenchmarkVariants(t *testing.T) {
	dir := t.TempDir()
	bench := openShared(t, "spider")
	source := bench.DatabasePath("concert_singer")
	for _, name := range []string{"concert_singer.sqlite", "concert_singer_variant.sqlite", "notes.txt"} {
		copyFile(t, source, filepath.Join(dir, "database", "concert_singer", name))
	}
	copyFile(t, sharedFile(t, "spider", "tables.json"), filepath.Join(dir, "tables.json"))
	mine, err := data.OpenBenchmark(dir, "auto")
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	v, err := mine.Variants("concert_singer")
	if err != nil || len(v) != 2 || filepath.Base(v[0].Path()) != "concert_singer.sqlite" {
		t.Errorf("%v %v", v, err)
	}
}

// TestReasons: every quirk of every rule and script is explained, here and in the
// documentation.
func TestReasons(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "evaluation.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := sqlexec.Quirks{}
	for _, rule := range []Rule{Spider, TestSuite, Bird} {
		all = append(all, rule.Quirks()...)
	}
	for _, script := range scripts {
		all = append(all, MatchQuirks(script)...)
	}
	for _, q := range all {
		if Reason(q) == "" || !strings.Contains(string(page), "`"+string(q)+"`") {
			t.Errorf("%s: no reason, or not in docs/evaluation.md", q)
		}
	}
}
