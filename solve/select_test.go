package solve

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"caper/data"
	"caper/sqlexec"
)

// drawPool draws candidates of few generators with few different results, so that
// everything that can tie does.
func drawPool(t *rapid.T) []Examined {
	n := rapid.IntRange(1, 9).Draw(t, "n")
	var all []Examined
	for i := range n {
		state := rapid.SampledFrom([]State{Clean, Clean, Clean, Empty, Degenerate, Failed, TimedOut}).Draw(t, "state")
		source := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "source")
		text := rapid.SampledFrom([]string{"SELECT 1", "SELECT x FROM t", "SELECT y FROM t", "SELECT x FROM t, u", "SELECT y FROM u"}).Draw(t, "sql")
		x := drawn(source, i, text, state, drawResult(t, state))
		x.shape = rapid.SampledFrom([]string{"p", "q", "r"}).Draw(t, "shape")
		all = append(all, x)
	}
	return all
}

func drawn(source string, sample int, text string, state State, result *sqlexec.Result) Examined {
	c := Candidate{Rollout: data.Rollout{Source: source, Sample: sample, SQL: text}}
	return Examined{Candidate: c, State: state, Result: result, statement: text, shape: text}
}

func drawResult(t *rapid.T, state State) *sqlexec.Result {
	r := &sqlexec.Result{Columns: []string{"a"}}
	switch state {
	case Clean:
		for range rapid.IntRange(1, 3).Draw(t, "rows") {
			r.Rows = append(r.Rows, []sqlexec.Value{int64(rapid.IntRange(1, 3).Draw(t, "cell"))})
		}
	case Degenerate:
		r.Rows = [][]sqlexec.Value{{int64(0)}}
	case Failed, TimedOut:
		return nil
	}
	return r
}

func drawOptions(t *rapid.T) Options {
	o := DefaultOptions()
	o.Method = rapid.SampledFrom([]Method{Majority, ByConsensus, ByReward, BySum, Gated}).Draw(t, "method")
	o.Consensus = rapid.SampledFrom([]Consensus{Jaccard, Mean}).Draw(t, "consensus")
	if rapid.Bool().Draw(t, "judged") {
		o.Judge = pairwise(func(a, b *Examined) float64 { return float64(len(a.SQL)%3) / 2 })
	}
	return o
}

// pairwise is a judge made of a preference between the first shown and the second.
type pairwise func(first, second *Examined) float64

func (p pairwise) Compare(_ context.Context, _ data.Question, candidates []*Examined) ([]float64, Cost, error) {
	scores, err := roundRobin(len(candidates), func(a, b int) (float64, error) { return p(candidates[a], candidates[b]), nil })
	return scores, Cost{}, err
}

func choose(t testing.TB, all []Examined, o Options) Decision {
	t.Helper()
	q := data.Question{ID: data.IndexID(1), Question: "which?"}
	candidates := make([]Candidate, len(all))
	for i, x := range all {
		candidates[i] = x.Candidate
	}
	var sorted []Examined
	for _, c := range NewPool(q, candidates).Candidates {
		i := slices.IndexFunc(all, func(x Examined) bool { return x.compare(&c) == 0 })
		sorted = append(sorted, all[i])
	}
	d, err := Select(context.Background(), q, sorted, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *Decision) chosenAs() string {
	x := d.Candidates[d.Chosen]
	return fmt.Sprintf("%s#%d %s by %s", x.Source, x.Sample, x.SQL, d.Stage)
}

// The order of candidates changes nothing, and neither does a second copy of one.
func TestOrderAndCopiesChangeNothing(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		all, o := drawPool(r), drawOptions(r)
		want := choose(t, all, o)
		shuffled := rapid.Permutation(all).Draw(r, "order")
		shuffled = append(shuffled, shuffled[rapid.IntRange(0, len(all)-1).Draw(r, "copy")])
		if got := choose(t, shuffled, o); got.chosenAs() != want.chosenAs() {
			r.Fatalf("%s, but %s in another order", want.chosenAs(), got.chosenAs())
		}
	})
}

// Without a judge an answer that more than half of the clean candidates give is taken.
func TestAbsoluteMajorityIsTaken(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		all, o := drawPool(r), DefaultOptions()
		o.Method = rapid.SampledFrom([]Method{ByConsensus, BySum, Gated}).Draw(r, "method")
		o.Margin = rapid.Float64Range(0, 1).Draw(r, "margin")
		d := choose(t, all, o)
		for _, c := range d.Classes {
			if 2*c.Votes > d.votes() && !slices.Contains(c.Members, d.Chosen) && d.Stage != NoConsensus {
				r.Fatalf("%d of %d give another answer than the one taken", c.Votes, d.votes())
			}
		}
	})
}

// A judge who always prefers what is shown first, or last, says nothing.
func TestPositionOfAnswersSaysNothing(t *testing.T) {
	for _, always := range []float64{0, 0.5, 1} {
		rapid.Check(t, func(r *rapid.T) {
			all := drawPool(r)
			o := DefaultOptions()
			want := choose(t, all, o)
			o.Judge = pairwise(func(_, _ *Examined) float64 { return always })
			o.MaxJudged = 100
			got := choose(t, all, o)
			if got.chosenAs() != want.chosenAs() {
				r.Fatalf("%s without a judge, %s with one who always says %v", want.chosenAs(), got.chosenAs(), always)
			}
			for _, c := range got.Classes {
				if c.Reward != tied && len(got.Classes) > 1 {
					r.Fatalf("S_rm %v of a judge who looks at places only", c.Reward)
				}
			}
		})
	}
}

// A judge with an opinion decides where votes are even.
func TestJudgeDecides(t *testing.T) {
	row := func(v int64) *sqlexec.Result {
		return &sqlexec.Result{Columns: []string{"a"}, Rows: [][]sqlexec.Value{{v}}}
	}
	all := []Examined{drawn("a", 0, "SELECT 1", Clean, row(1)), drawn("b", 0, "SELECT 22", Clean, row(22))}
	o := DefaultOptions()
	for _, favourite := range []string{"SELECT 1", "SELECT 22"} {
		o.Judge = pairwise(func(a, b *Examined) float64 { return truth(a.SQL == favourite) })
		if d := choose(t, all, o); d.Candidates[d.Chosen].SQL != favourite || d.Stage != Coarse {
			t.Errorf("the judge prefers %s; taken: %s", favourite, d.chosenAs())
		}
	}
}

// Structure decides close votes by distinct groups: a repair, or a second sample, of
// one generator is no second opinion.
func TestStructureCountsGroups(t *testing.T) {
	row := func(v int64) *sqlexec.Result {
		return &sqlexec.Result{Columns: []string{"a"}, Rows: [][]sqlexec.Value{{v}}}
	}
	all := []Examined{
		drawn("a", 0, "SELECT long", Clean, row(1)), drawn("a", 1, "SELECT long", Clean, row(1)),
		drawn("b", 0, "SELECT shorter", Clean, row(2)), drawn("c", 0, "SELECT shorter2", Clean, row(2)),
	}
	all[1].Repairs = []Repair{{Of: "SELECT", State: Failed, By: "identifier"}}
	for i, shape := range []string{"p", "p", "q", "q"} {
		all[i].shape = shape
	}
	d := choose(t, all, DefaultOptions())
	if d.Stage != Structure || d.Candidates[d.Chosen].SQL != "SELECT shorter" {
		t.Errorf("taken: %s", d.chosenAs())
	}
	for _, c := range d.Classes {
		if want := map[string]int{"p": 1, "q": 2}[c.Shape]; c.Support != want {
			t.Errorf("structure %s has support %d", c.Shape, c.Support)
		}
	}
}

// S_maj by hand: answers {1}, {1}, {1,2}, over triples (column, value, occurrence).
func TestConsensusByHand(t *testing.T) {
	reader := newAnswers(false)
	of := func(values ...int64) answer {
		r := &sqlexec.Result{Columns: []string{"a"}}
		for _, v := range values {
			r.Rows = append(r.Rows, []sqlexec.Value{v})
		}
		return reader.of(r)
	}
	classes := []Class{{Votes: 2, answer: of(1)}, {Votes: 1, answer: of(2, 1)}, {Votes: 1, answer: of(1, 1)}}
	for by, want := range map[Consensus][]float64{
		// Of class 0: itself 2, half of class 1, half of class 2; over 4 candidates.
		Jaccard: {(2 + 0.5 + 0.5) / 4, (2*0.5 + 1 + 1./3) / 4, (2*0.5 + 1./3 + 1) / 4},
		// Share of candidates with (0,1,1): 4/4; (0,2,1): 1/4; (0,1,2): 1/4.
		Mean: {1, (1 + 0.25) / 2, (1 + 0.25) / 2},
	} {
		for i, s := range consensus(classes, by) {
			if diff := s - want[i]; diff > 1e-12 || diff < -1e-12 {
				t.Errorf("%s: class %d has S_maj %v, want %v", by, i, s, want[i])
			}
		}
	}
}

// What no reader would tell apart is one answer, and what one would is not.
func TestAnswers(t *testing.T) {
	same := func(ordered bool, a, b [][]sqlexec.Value) bool {
		reader := newAnswers(ordered)
		x := reader.of(&sqlexec.Result{Columns: make([]string, len(a[0])), Rows: a})
		y := reader.of(&sqlexec.Result{Columns: make([]string, len(b[0])), Rows: b})
		return x.signature == y.signature
	}
	type rows = [][]sqlexec.Value
	for _, c := range []struct {
		a, b    rows
		ordered bool
		want    bool
	}{
		{rows{{int64(1)}}, rows{{1.0}}, false, true},
		{rows{{0.1 + 0.2}}, rows{{0.3}}, false, true},
		{rows{{2.9999999}}, rows{{int64(3)}}, false, true},
		{rows{{int64(12345678)}}, rows{{int64(12345679)}}, false, false},
		{rows{{12345678.0}}, rows{{int64(12345678)}}, false, true},
		{rows{{" x "}}, rows{{"x"}}, false, true},
		{rows{{"1"}}, rows{{int64(1)}}, false, false},
		{rows{{nil}}, rows{{"n"}}, false, false},
		{rows{{"a"}, {"b"}}, rows{{"b"}, {"a"}}, false, true},
		{rows{{"a"}, {"b"}}, rows{{"b"}, {"a"}}, true, false},
		{rows{{"a"}, {"a"}}, rows{{"a"}}, false, false},
		{rows{{"a", "b"}}, rows{{"a"}, {"b"}}, false, false},
		{rows{{"a\x00s\"b\""}}, rows{{"a", "b"}}, false, false},
	} {
		if got := same(c.ordered, c.a, c.b); got != c.want {
			t.Errorf("%v and %v: same %v", c.a, c.b, got)
		}
	}
}

func TestAsksForOrder(t *testing.T) {
	for question, want := range map[string]bool{
		"List the names sorted by age.":                    true,
		"Show names in descending order of age":            true,
		"names in alphabetical order":                      true,
		"How many orders did each customer place?":         false,
		"What was ordered by the customer of this address": true, // "ordered" may mean either
		"Which assorted items are there?":                  false,
	} {
		if asksForOrder(question) != want {
			t.Errorf("%q: %v", question, !want)
		}
	}
}

// All-NULL results say nothing, unless an outer join may have made them.
func TestStates(t *testing.T) {
	d := makeDatabase(t, 0, append(shop, "INSERT INTO maker VALUES (9, NULL, NULL)")...)
	for query, want := range map[string]State{
		"SELECT name FROM maker":               Clean,
		"SELECT name FROM maker WHERE id = 77": Empty,
		"SELECT name FROM maker WHERE id = 9":  Degenerate,
		"SELECT sale.buyer FROM maker LEFT JOIN car ON maker_id = maker.id LEFT JOIN sale ON car_id = 0 WHERE price IS NULL": Clean,
		"SELECT count(*) FROM maker WHERE id = 77": Degenerate,
		"SELECT sum(id) FROM maker WHERE id = 77":  Degenerate,
		"SELECT 0 FROM maker":                      Clean, // several rows of it
		"SELECT nome FROM maker":                   Failed,
		"":                                         Failed,
	} {
		if x := examined(t, d, pool(rollout("a", query)))[0]; x.State != want {
			t.Errorf("%q: %s (%s), want %s", query, x.State, x.Message, want)
		}
	}
}

// Report 39: is it the first valid candidate or the most consistent one? The one whose
// answer most agree on, and the decision says so.
func TestReport39(t *testing.T) {
	d := makeDatabase(t, 0, shop...)
	p := pool(rollout("a", "SELECT name FROM maker WHERE id = 1"), rollout("b", "SELECT name FROM maker WHERE id < 3"),
		rollout("c", "SELECT name FROM maker WHERE id <= 2"))
	got, err := Select(context.Background(), p.Question, examined(t, d, p), DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	if got.Candidates[got.Chosen].Source == "a" || got.Stage != Coarse {
		t.Errorf("taken: %s", got.chosenAs())
	}
	var text strings.Builder
	if err := got.Explain(&text); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"class 1: 2 candidates by 2 groups", "class 2: 1 candidate", "> b#0", "the best class leads by"} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("the explanation lacks %q:\n%s", part, text.String())
		}
	}
}

// Report 40: no candidate can be parsed, or run. That is no consensus, and no crash.
func TestReport40(t *testing.T) {
	d := makeDatabase(t, 0, shop...)
	for _, p := range []Pool{
		pool(rollout("a", "I do not know."), rollout("b", "")),
		pool(rollout("a", "SELECT nome FROM maker"), rollout("b", "SELECT nome FROM makers"), rollout("c", "SELECT nome FROM maker")),
	} {
		got, err := Select(context.Background(), p.Question, examined(t, d, p), DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		lines, err := got.Lines()
		if err != nil || len(lines) != 1 || got.Stage != NoConsensus {
			t.Errorf("%v: %s, %v", lines, got.chosenAs(), err)
		}
	}
	if _, err := Select(context.Background(), data.Question{ID: data.IndexID(3)}, nil, DefaultOptions()); err == nil {
		t.Error("a question without candidates is an error of the caller")
	}
}

// Report 41: many queries return no row. Such candidates have no vote as long as one
// returns something, and vote among themselves where none does.
func TestReport41(t *testing.T) {
	d := makeDatabase(t, 0, shop...)
	none := "SELECT name FROM maker WHERE id > 99"
	p := pool(rollout("a", none), rollout("b", none), rollout("c", none), rollout("d", "SELECT name FROM maker"))
	got, err := Select(context.Background(), p.Question, examined(t, d, p), DefaultOptions())
	if err != nil || got.Candidates[got.Chosen].Source != "d" {
		t.Errorf("taken: %s, %v", got.chosenAs(), err)
	}
	p = pool(rollout("a", none), rollout("b", "SELECT name FROM maker WHERE id > 98"), rollout("c", "SELECT count(*) FROM maker WHERE id > 99"))
	got, err = Select(context.Background(), p.Question, examined(t, d, p), DefaultOptions())
	if err != nil || got.Candidates[got.Chosen].State != Empty {
		t.Errorf("taken: %s, %v", got.chosenAs(), err)
	}
}

// Gold is not looked at: other gold, or none, changes no byte.
func TestGoldIsIgnored(t *testing.T) {
	c, err := newCandidate(data.Rollout{SQL: "SELECT 1", Gold: "SELECT 2", Extra: data.Extra{"verdict": []byte(`"correct"`), "style": []byte(`"short"`)}})
	if err != nil || c.Gold != "" || c.Extra != nil || c.Style != "short" {
		t.Errorf("%+v, %v", c, err)
	}
}
