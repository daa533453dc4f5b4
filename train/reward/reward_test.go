package reward

import (
	"context"
	stdsql "database/sql"
	"errors"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"

	"caper/data"
	"caper/eval"
	"caper/model"
	"caper/sql"
	"caper/sqlexec"
	"caper/train/policy"
)

// shop is one database under any name but "gone".
type shop struct{ db *sqlexec.Database }

func (s shop) Database(id string) (*sqlexec.Database, error) {
	if id == "gone" {
		return nil, errors.New("no more processes")
	}
	return s.db, nil
}

func (s shop) Variants(id string) ([]*sqlexec.Database, error) {
	db, err := s.Database(id)
	return []*sqlexec.Database{db}, err
}

func openShop(t *testing.T) shop {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shop.sqlite")
	db, err := stdsql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("CREATE TABLE car(name TEXT, price INT); INSERT INTO car VALUES ('a', 1), ('b', 2), ('c', 3)"); err != nil {
		t.Fatal(err)
	}
	db.Close()
	opened, err := sqlexec.Open(path, sqlexec.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	return shop{opened}
}

const gold = "SELECT name FROM car WHERE price > 1"

func question() data.Question {
	return data.Question{ID: data.IndexID(0), DBID: "shop", Question: "which?", Gold: gold}
}

// answers are texts whose tokens are single bytes, and an end token.
func answers(texts ...string) (all []*Answer) {
	for _, text := range texts {
		a := &Answer{Text: text}
		for i := range text {
			a.Ends = append(a.Ends, i+1)
		}
		a.Ends = append(a.Ends, len(text))
		all = append(all, a)
	}
	return all
}

func executor(t *testing.T, extract func(string) string) *Executor {
	return NewExecutor(openShop(t), eval.ExecutionOptions{Rule: eval.Bird, Workers: 2, Cache: sqlexec.NewCache(1 << 20)}, extract)
}

func execute(t *testing.T, x *Executor, q data.Question, all []*Answer) {
	t.Helper()
	if err := x.Execute(t.Context(), q, all); err != nil {
		t.Fatal(err)
	}
}

func TestOutcomes(t *testing.T) {
	all := answers(gold, "SELECT name FROM car WHERE price>=2;", "SELECT name FROM car", "SELECT color FROM car",
		"DELETE FROM car", "SELECT name FROM", "", "  ", gold)
	execute(t, executor(t, nil), question(), all)
	want := []eval.Verdict{eval.Correct, eval.Correct, eval.Wrong, eval.Failed, eval.Failed, eval.Failed, eval.Failed, eval.Failed, eval.Correct}
	for i, a := range all {
		if a.Verdict != want[i] || a.Missing != "" {
			t.Errorf("%q: %s, missing %q; want %s", a.Text, a.Verdict, a.Missing, want[i])
		}
		if isQuery := i < 4 || i == 8; (a.Query != "") != isQuery {
			t.Errorf("%q: query %q", a.Text, a.Query)
		}
	}
	// What is no query: K = 1, p = 0, e = 0.
	for _, k := range Kinds {
		s, steps := k.Sample(all[4])
		if len(s.Scores) != 1 || s.Scores[0] != 0 || s.Correct || slices.Max(steps) != 0 || len(steps) != len(all[4].Ends) {
			t.Errorf("%s: %+v, steps %v", k, s, steps)
		}
	}
}

// A failure that is not the answer's is no reward at all.
func TestReport62MissingRewards(t *testing.T) {
	x := executor(t, nil)
	gone := question()
	gone.DBID = "gone"
	all := answers(gold, "SELECT 1", "no query")
	execute(t, x, gone, all)
	if all[0].Missing == "" || all[1].Missing == "" || all[2].Missing != "" {
		t.Errorf("missing: %q, %q, %q", all[0].Missing, all[1].Missing, all[2].Missing)
	}
	badGold := question()
	badGold.Gold = "SELECT name FROM gone"
	all = answers(gold)
	execute(t, x, badGold, all)
	if all[0].Missing != string(eval.GoldFailed) {
		t.Errorf("gold that fails: missing %q", all[0].Missing)
	}
	// A score that is no number.
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		all = answers(gold, "SELECT name FROM car")
		execute(t, x, question(), all)
		score(t, Clause, func(units []string) float64 {
			if strings.HasPrefix(units[len(units)-1], "WHERE") {
				return bad
			}
			return 0
		}, all)
		if all[0].Missing != "score" || all[1].Missing != "" {
			t.Errorf("score %g: missing %q, %q", bad, all[0].Missing, all[1].Missing)
		}
	}
}

func TestReport68AnswersWithoutATag(t *testing.T) {
	fence := func(text string) string {
		_, text, _ = strings.Cut(text, "```sql\n")
		text, _, _ = strings.Cut(text, "\n```")
		return text
	}
	plain, tagged, chatter := gold, "I think.\n```sql\n"+gold+"\n```\nDone.", "I do not know."
	all := answers(plain, tagged, chatter)
	execute(t, executor(t, fence), question(), all)
	if !all[0].Correct() || !all[1].Correct() || all[2].Correct() || all[2].Query != "" {
		t.Fatalf("%+v", all)
	}
	// Tokens ahead of the query belong to its first clause, those behind it to the last.
	_, steps := Clause.Sample(all[1])
	if steps[0] != 0 || steps[len(steps)-1] != 2 || steps[strings.Index(tagged, "FROM")] != 1 || steps[strings.Index(tagged, "FROM")-1] != 0 {
		t.Errorf("steps %v", steps)
	}
}

// fake scores the clause that a query ends with.
type fake struct {
	of    func(units []string) float64
	asked int
}

func (f *fake) Score(requests []model.Request) (all [][]model.Scores) {
	for _, r := range requests {
		var results []model.Scores
		for _, units := range r.Queries {
			f.asked++
			var s model.Scores
			for k := range units {
				s.Clauses = append(s.Clauses, f.of(units[:k+1]))
			}
			results = append(results, s)
		}
		all = append(all, results)
	}
	return all
}

func score(t *testing.T, kind Kind, of func([]string) float64, all []*Answer) *fake {
	t.Helper()
	f := &fake{of: of}
	s, err := NewScorer(f, kind, 2)
	if err != nil {
		t.Fatal(err)
	}
	s.Score([]Group{{"prompt", all}})
	return f
}

func TestClauseScores(t *testing.T) {
	all := answers(gold, gold, "SELECT name FROM car", "nothing")
	execute(t, executor(t, nil), question(), all)
	f := score(t, Clause, func(units []string) float64 { return float64(len(units)) }, all)
	if f.asked != 2 {
		t.Errorf("%d queries scored, want 2: equal ones once, no text that is no query", f.asked)
	}
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x/2)) }
	s, steps := Clause.Sample(all[0])
	want := policy.Sample{Kinds: []sql.ClauseKind{sql.ClauseSelect, sql.ClauseFrom, sql.ClauseWhere}, Scores: []float64{sigmoid(1), sigmoid(2), sigmoid(3)}, Correct: true}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("sample %+v, want %+v", s, want)
	}
	for i := range gold {
		clause := 0
		if i >= strings.Index(gold, "FROM") {
			clause++
		}
		if i >= strings.Index(gold, "WHERE") {
			clause++
		}
		if steps[i] != clause {
			t.Errorf("byte %d is of clause %d, want %d", i, steps[i], clause)
		}
	}
	if steps[len(gold)] != 2 {
		t.Errorf("the end token is of clause %d, want the last", steps[len(gold)])
	}
	if s, _ := Clause.Sample(all[3]); len(s.Scores) != 1 || s.Scores[0] != 0 {
		t.Errorf("no query: %+v", s)
	}
}

// Differences of consecutive scores sum to the last, whatever the scores are between.
func TestTokenScores(t *testing.T) {
	all := answers("SELECT name FROM car")
	execute(t, executor(t, nil), question(), all)
	score(t, Token, func(units []string) float64 {
		last := units[len(units)-1]
		return float64(len(last)%3) - 1
	}, all)
	s, steps := Token.Sample(all[0])
	if len(s.Scores) != len(all[0].Ends) || len(s.Kinds) != len(s.Scores) {
		t.Fatalf("%d scores for %d tokens", len(s.Scores), len(all[0].Ends))
	}
	sum := 0.0
	for i, d := range s.Scores {
		sum += d
		if steps[i] != i {
			t.Errorf("token %d has step %d", i, steps[i])
		}
	}
	if last := all[0].Prefixes[len(all[0].Prefixes)-1]; math.Abs(sum-last) > 1e-12 || last != all[0].Scores[1] {
		t.Errorf("differences sum to %g, last prefix %g, last clause %g", sum, last, all[0].Scores[1])
	}
	o := Token.Policy(policy.DefaultOptions())
	total := 0.0
	for _, r := range o.Rewards(s) {
		total += r
	}
	if want := o.Execution*0 + o.Clauses*sum/float64(len(s.Scores)); math.Abs(total-want) > 1e-12 {
		t.Errorf("rewards sum to %g, want %g", total, want)
	}
}

func TestSparseAndArctic(t *testing.T) {
	all := answers(gold, "SELECT name FROM car", "SELECT color FROM car", "nothing")
	execute(t, executor(t, nil), question(), all)
	for kind, want := range map[Kind][]float64{Sparse: {1, 0, 0, 0}, Arctic: {1, 0.1, 0, 0}} {
		o := kind.Policy(policy.DefaultOptions())
		for i, a := range all {
			s, _ := kind.Sample(a)
			if got := o.Returns(o.Rewards(s))[0]; math.Abs(got-want[i]) > 1e-12 {
				t.Errorf("%s: %q is worth %g, want %g", kind, a.Text, got, want[i])
			}
		}
	}
}

// slow is a database whose opening takes a while: executions must overlap.
type slow struct {
	shop
	under, most *atomic.Int32
}

func (s slow) Variants(id string) ([]*sqlexec.Database, error) {
	if n := s.under.Add(1); n > s.most.Load() {
		s.most.Store(n)
	}
	time.Sleep(20 * time.Millisecond)
	s.under.Add(-1)
	return s.shop.Variants(id)
}

func TestReport69ExecutionsRunAtTheSameTime(t *testing.T) {
	s := slow{openShop(t), new(atomic.Int32), new(atomic.Int32)}
	x := NewExecutor(s, eval.ExecutionOptions{Rule: eval.Bird, Workers: 4, Cache: sqlexec.NewCache(1 << 20)}, nil)
	execute(t, x, question(), answers("SELECT 1", "SELECT 2", "SELECT 3", "SELECT 4", "SELECT 5", "SELECT 6"))
	if s.most.Load() != 4 {
		t.Errorf("%d at the same time, want 4", s.most.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := x.Execute(ctx, question(), answers("SELECT 7")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestAgreement(t *testing.T) {
	judged := func(p float64, v eval.Verdict) *Answer {
		return &Answer{Query: "SELECT 1", Clauses: make([]sql.Clause, 1), Scores: []float64{p}, Verdict: v}
	}
	all := []*Answer{judged(0.9, eval.Correct), judged(0.1, eval.Wrong), judged(0.5, eval.Correct), judged(0.5, eval.Wrong),
		{Missing: "score"}, {Verdict: eval.Failed}}
	a := Agree(all)
	// Of the four pairs of a right and a wrong answer three are ordered, one is tied.
	if a.AUC != 0.875 || a.EX != 0.5 || math.Abs(a.PRM-0.5) > 1e-12 || !a.Defined || a.Correlation <= 0.7 || a.Correlation >= 0.72 {
		t.Errorf("%+v", a) // correlation 0.8/sqrt(0.32*4)= 0.7071
	}
	// Where all are alike there is nothing to correlate, however their mean is rounded.
	for n := 1; n < 50; n++ {
		alike := slices.Repeat([]*Answer{judged(0.3, eval.Correct)}, n)
		if a := Agree(alike); a.Defined || math.IsNaN(a.AUC) || math.IsNaN(a.Correlation) {
			t.Errorf("%d answers that are alike: %+v", n, a)
		}
	}
}

func TestWatch(t *testing.T) {
	run := func(of func(step int) Agreement) (alarms []string, at int) {
		var w Watch
		for step := range 40 {
			if alarms = w.Add(of(step), true, 10); alarms != nil {
				return alarms, step
			}
		}
		return nil, 0
	}
	noise := func(step int) float64 { return 0.02 * math.Sin(float64(7*step)) }
	hacked, _ := run(func(s int) Agreement {
		return Agreement{PRM: 0.4 + 0.01*float64(s) + noise(s), EX: 0.6 - 0.01*float64(s) + noise(s+1), Length: 50, Clauses: 3}
	})
	if len(hacked) != 1 || !strings.Contains(hacked[0], "reward model") {
		t.Errorf("PRM up, EX down: %q", hacked)
	}
	longer, _ := run(func(s int) Agreement {
		return Agreement{PRM: 0.5, EX: 0.5, Length: 50 * (1 + 0.1*float64(s)), Clauses: 3}
	})
	if len(longer) != 1 || !strings.Contains(longer[0], "length") {
		t.Errorf("longer: %q", longer)
	}
	healthy, at := run(func(s int) Agreement {
		return Agreement{PRM: 0.4 + 0.01*float64(s) + noise(s), EX: 0.4 + 0.01*float64(s) + noise(s+1), Length: 50 + float64(s%5), Clauses: 3}
	})
	if healthy != nil {
		t.Errorf("alarm at step %d of a healthy run: %q", at, healthy)
	}
}
