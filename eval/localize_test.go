package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"caper/data"
	"caper/model"
	"caper/sql"
)

// newFaults makes faults with 1 to 5 clauses, about three to a question. A
// faulty clause speaks of "wrong", which no question does, as often as not.
func newFaults(n int, seed uint64) []Fault {
	random := rand.New(rand.NewPCG(seed, 0))
	kinds := []sql.ClauseKind{
		sql.ClauseSelect, sql.ClauseFrom, sql.ClauseWhere, sql.ClauseGroupBy, sql.ClauseOrderBy,
	}
	var faults []Fault
	for i := range n {
		clauses := 1 + random.IntN(len(kinds))
		f := Fault{
			Question: fmt.Sprint("question ", i/3),
			Prompt:   fmt.Sprint("prompt ", i/5),
			Wording:  "which singers come from france",
			Source:   []string{"injection", "counterfactual"}[i%2],
			Operator: []string{"where.comparison", "single", "select.column", "first"}[i%4],
			Faulty:   random.IntN(clauses),
		}
		if random.IntN(10) == 0 {
			f.Faulty = clauses
		}
		for k := range clauses {
			unit := string(kinds[k]) + " singer "
			if k == f.Faulty && random.IntN(2) == 0 {
				unit += "wrong "
			}
			f.Units = append(f.Units, unit)
			f.Kinds = append(f.Kinds, kinds[k])
		}
		f.Units = append(f.Units, "")
		f.Kinds = append(f.Kinds, sql.ClauseEnd)
		faults = append(faults, f)
	}
	return faults
}

// perfect gives the faulty candidate the lowest score.
func perfect(faults []Fault) [][]float64 {
	var scores [][]float64
	for _, f := range faults {
		s := make([]float64, len(f.Units))
		s[f.Faulty] = -1
		scores = append(scores, s)
	}
	return scores
}

func TestBaselinesByDefinition(t *testing.T) {
	faults := newFaults(400, 1)
	got := Localize(faults, perfect(faults), FitBaselines(newFaults(600, 2)), LocalizeOptions{Resamples: 50})
	var top1, mrr, first float64
	for _, f := range faults {
		candidates := len(f.Units)
		top1 += 1 / float64(candidates) / float64(len(faults))
		for r := 1; r <= candidates; r++ {
			mrr += 1 / float64(r) / float64(candidates) / float64(len(faults))
		}
		if f.Faulty == 0 {
			first += 1 / float64(len(faults))
		}
	}
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"model's Top-1", got.Top1, 1},
		{"model's MRR", got.MRR, 1},
		{"random Top-1", got.Baselines[Random].Top1, top1},
		{"random MRR", got.Baselines[Random].MRR, mrr},
		{"first Top-1", got.Baselines[First].Top1, first},
		{"lead over random", got.Baselines[Random].Lead.Top1, 1 - top1},
	} {
		if math.Abs(c.got-c.want) > 1e-9 {
			t.Errorf("%s is %v, want %v", c.name, c.got, c.want)
		}
	}
	if got.Count != len(faults) || got.Questions != (len(faults)+2)/3 {
		t.Errorf("%d faults of %d questions", got.Count, got.Questions)
	}
	for name, b := range got.Baselines {
		if b.Top1 > got.Baselines[got.Best].Top1 {
			t.Errorf("best is %s, yet %s is better", got.Best, name)
		}
		for _, m := range []Measure{b.Measure, b.Lead} {
			if m.Top1 < m.Top1Interval[0] || m.Top1 > m.Top1Interval[1] || m.MRR < m.MRRInterval[0] || m.MRR > m.MRRInterval[1] {
				t.Errorf("%s: interval without its estimate: %+v", name, m)
			}
		}
	}
	// Half of the faulty clauses hold a word that the question lacks.
	for _, name := range []string{Lexical, Logistic} {
		if b := got.Baselines[name].Top1; b < top1+0.15 {
			t.Errorf("%s finds %.2f, random %.2f", name, b, top1)
		}
	}
}

func TestBaselinesWithoutTraining(t *testing.T) {
	faults := newFaults(50, 1)
	got := Localize(faults, perfect(faults), FitBaselines(nil), LocalizeOptions{Resamples: 10})
	for _, name := range []string{Frequent, Lexical, Logistic} {
		if got.Baselines[name].Measure != got.Baselines[Random].Measure {
			t.Errorf("%s without training is not random", name)
		}
	}
}

func TestBaselinesAreDeterministic(t *testing.T) {
	faults := newFaults(200, 1)
	a, b := FitBaselines(newFaults(300, 2)), FitBaselines(newFaults(300, 2))
	for i := range a {
		for j := range faults {
			if x, y := a[i].Score(&faults[j]), b[i].Score(&faults[j]); !slices.Equal(x, y) {
				t.Fatalf("%s: %v and %v", a[i].Name, x, y)
			}
		}
	}
}

func TestBreakdownsPartitionTheFaults(t *testing.T) {
	faults := newFaults(301, 4)
	l := Localize(faults, perfect(faults), nil, LocalizeOptions{Resamples: 10})
	for name, set := range map[string]map[string]Comparison{
		"kind": l.ByKind, "clauses": l.ByClauses, "source": l.BySource, "operator": l.ByOperator,
	} {
		count := 0
		for _, c := range set {
			count += c.Count
		}
		if count != len(faults) {
			t.Errorf("by %s: %d faults, want %d", name, count, len(faults))
		}
	}
	if l.ByOperator["single"].Count == 0 || l.ByKind["END"].Count == 0 {
		t.Error("no faults under \"single\" or \"END\"")
	}
}

// TestBalancedIsTheMeanOfKinds also shows what balancing is for: naming the most
// frequent kind gains a great deal, and balanced no more than one kind's share.
func TestBalancedIsTheMeanOfKinds(t *testing.T) {
	var faults []Fault
	for _, f := range newFaults(3000, 5) {
		if f.Clauses() == 5 && (f.Kind() == sql.ClauseSelect || len(faults)%3 == 0) {
			faults = append(faults, f)
		}
	}
	baselines := FitBaselines(faults)
	natural := Localize(faults, perfect(faults), baselines, LocalizeOptions{Resamples: 50})
	balanced := Localize(faults, perfect(faults), baselines, LocalizeOptions{Resamples: 50, Balanced: true, MinKind: 2})
	var mean float64
	for _, kind := range balanced.Kinds {
		mean += natural.ByKind[kind].Baselines[Longest].Top1 / float64(len(balanced.Kinds))
	}
	if got := balanced.Baselines[Longest].Top1; math.Abs(got-mean) > 1e-9 {
		t.Errorf("balanced Top-1 %v, mean of the kinds %v", got, mean)
	}
	share := 1 / float64(len(balanced.Kinds))
	if got := balanced.Baselines[Frequent].Top1; math.Abs(got-share) > 1e-9 {
		t.Errorf("balanced, the most frequent kind finds %v, want %v", got, share)
	}
	if got := natural.Baselines[Frequent].Top1; got < 2*share {
		t.Errorf("the most frequent kind finds only %v", got)
	}
}

func TestRareKindsHaveNoSay(t *testing.T) {
	faults := newFaults(300, 6)
	rare := Fault{Question: "rare", Units: []string{"HAVING x ", ""}, Kinds: []sql.ClauseKind{sql.ClauseHaving, sql.ClauseEnd}}
	got := Localize(append(faults, rare), perfect(append(faults, rare)), nil, LocalizeOptions{Balanced: true, Resamples: 10})
	if slices.Contains(got.Kinds, "HAVING") || got.Count != len(faults) {
		t.Errorf("kinds %v, %d faults", got.Kinds, got.Count)
	}
	if c := got.ByKind["HAVING"]; c.Count != 1 || c.Top1 != 1 {
		t.Errorf("alone: %+v", c)
	}
}

func TestLocalizeNothing(t *testing.T) {
	for _, balanced := range []bool{false, true} {
		l := Localize(nil, nil, FitBaselines(nil), LocalizeOptions{Balanced: balanced, Resamples: 10})
		if _, err := json.Marshal(l); err != nil || l.Count != 0 {
			t.Errorf("%+v: %v", l, err)
		}
	}
}

func TestLocalizationAsJSON(t *testing.T) {
	faults := newFaults(30, 1)
	text, err := json.Marshal(Localize(faults, perfect(faults), FitBaselines(faults), LocalizeOptions{Resamples: 10}))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Top1, MRR, Count *float64
		Baselines        map[string]struct{ Top1 *float64 }
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.Top1 == nil || got.MRR == nil || got.Count == nil || *got.Count != 30 {
		t.Errorf("top1, mrr or count missing: %s", text)
	}
	for _, name := range []string{"random", "first", "longest", "frequent", "lexical", "logistic"} {
		if got.Baselines[name].Top1 == nil {
			t.Errorf("baselines.%s.top1 missing", name)
		}
	}
}

// lengths scores a clause by its length and the end by that of the prompt.
type lengths struct{ drop bool }

func (l lengths) Score(requests []model.Request) [][]model.Scores {
	var all [][]model.Scores
	for _, r := range requests {
		var scores []model.Scores
		for _, q := range r.Queries {
			s := model.Scores{End: float64(len(r.Prompt))}
			for _, unit := range q {
				s.Clauses = append(s.Clauses, float64(len(unit)))
			}
			if l.drop {
				s.Clauses = s.Clauses[1:]
			}
			scores = append(scores, s)
		}
		all = append(all, scores)
	}
	return all
}

func TestScoreFaults(t *testing.T) {
	faults := newFaults(500, 1)
	done := 0
	scores, err := ScoreFaults(context.Background(), lengths{}, faults, func(n int) { done = n })
	if err != nil || done != len(faults) {
		t.Fatalf("%d done, %v", done, err)
	}
	for i, f := range faults {
		want := []float64{}
		for _, unit := range f.Units[:f.Clauses()] {
			want = append(want, float64(len(unit)))
		}
		if want = append(want, float64(len(f.Prompt))); !slices.Equal(scores[i], want) {
			t.Fatalf("fault %d: %v, want %v", i, scores[i], want)
		}
	}
	if _, err := ScoreFaults(context.Background(), lengths{drop: true}, faults, nil); err == nil {
		t.Error("no error for a missing score")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := ScoreFaults(ctx, lengths{}, faults, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestFaults(t *testing.T) {
	wrong := data.Tuple{
		Dataset: "d", DBID: "b", QuestionID: data.IndexID(3), Question: "Who?", Evidence: "none", Prompt: "P",
		SQLRejected: "SELECT name FROM t WHERE x = 1", Clause: "WHERE", ClauseIndex: 2, ClauseCount: 3,
		Source: "counterfactual", Operator: "single", RootClause: true,
	}
	missing := wrong
	missing.Clause, missing.ClauseIndex = "LIMIT", 3
	enclosing := wrong
	enclosing.RootClause = false
	faults, err := Faults(sequence(wrong, missing, enclosing))
	if err != nil || len(faults) != 2 {
		t.Fatalf("%d faults, %v", len(faults), err)
	}
	f := faults[0]
	if !reflect.DeepEqual(f.Units, []string{"SELECT name ", "FROM t ", "WHERE x = 1", ""}) || f.Kind() != sql.ClauseWhere {
		t.Errorf("units %q, kind %s", f.Units, f.Kind())
	}
	if faults[1].Kind() != sql.ClauseEnd || faults[0].Question != faults[1].Question {
		t.Errorf("missing clause: %+v", faults[1])
	}
	for _, spoil := range []func(*data.Tuple){
		func(t *data.Tuple) { t.ClauseIndex = 4 },
		func(t *data.Tuple) { t.ClauseIndex = -1 },
		func(t *data.Tuple) { t.ClauseCount = 7 },
	} {
		bad := wrong
		bad.ID = "abc"
		spoil(&bad)
		if _, err := Faults(sequence(bad)); err == nil || !strings.Contains(err.Error(), "tuple abc") {
			t.Errorf("error %v", err)
		}
	}
}

// sequence returns tuples as a reader gives them.
func sequence(tuples ...data.Tuple) func(func(data.Tuple, error) bool) {
	return func(yield func(data.Tuple, error) bool) {
		for _, t := range tuples {
			if !yield(t, nil) {
				return
			}
		}
	}
}

func TestWords(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"SELECT T1.singerName, count(*) FROM Singers AS t1", "select t1 singer name count from singer as t1"},
		{"stadium_id >= 20 AND x LIKE 'Ünder%'", "stadium id 20 and x like ünder"},
		{"", ""},
	} {
		if got := strings.Join(words(c.text), " "); got != c.want {
			t.Errorf("words(%q) = %q, want %q", c.text, got, c.want)
		}
	}
	if got := contentWords("SELECT T1.name, avg(age) FROM singer AS T1"); !slices.Equal(got, []string{"name", "age", "singer"}) {
		t.Errorf("content words %q", got)
	}
	if got := missShare("WHERE country = 'France'", wordSet("Singers from France")); got != 0.5 {
		t.Errorf("miss share %v, want 0.5", got)
	}
	if got := missShare("SELECT count(*)", wordSet("How many?")); got != 0 {
		t.Errorf("miss share %v of no words, want 0", got)
	}
}

func BenchmarkLocalize(b *testing.B) {
	faults := newFaults(10000, 1)
	scores := perfect(faults)
	baselines := FitBaselines(faults)
	for b.Loop() {
		Localize(faults, scores, baselines, LocalizeOptions{})
	}
}

func BenchmarkFitBaselines(b *testing.B) {
	faults := newFaults(10000, 1)
	for b.Loop() {
		FitBaselines(faults)
	}
}
