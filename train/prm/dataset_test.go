package prm

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"caper/data"
)

// No database is on both sides of the split, no tuple is lost, and the order of
// the tuples decides nothing.
func TestHoldOutByDatabase(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tuples []data.Tuple
		for i, n := range rapid.SliceOfN(rapid.IntRange(1, 12), 1, 60).Draw(t, "databases") {
			tuples = append(tuples, data.Tuple{DBID: fmt.Sprint("db", n), Question: fmt.Sprint(i)})
		}
		share := rapid.Float64Range(0, 0.6).Draw(t, "share")
		names := databasesOf(tuples)
		training, heldOut, err := holdOut(tuples, share, 5)
		wanted := int(math.Ceil(share * float64(len(names))))
		if wanted > 0 && wanted >= len(names) {
			if err == nil || !strings.Contains(err.Error(), "train.holdout_databases") {
				t.Fatalf("error %v", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		a, b := databasesOf(training), databasesOf(heldOut)
		if len(b) != wanted || len(a)+len(b) != len(names) || len(training)+len(heldOut) != len(tuples) {
			t.Fatalf("%v and %v of %v", a, b, names)
		}
		reversed := slices.Clone(tuples)
		slices.Reverse(reversed)
		if _, again, _ := holdOut(reversed, share, 5); !slices.Equal(databasesOf(again), b) {
			t.Fatalf("held out %v, in another order %v", b, databasesOf(again))
		}
		for _, name := range a {
			if slices.Contains(b, name) {
				t.Fatalf("%s is on both sides", name)
			}
		}
	})
}

func databasesOf(tuples []data.Tuple) []string {
	var names []string
	for _, t := range tuples {
		names = append(names, t.DBID)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// What is held out reaches neither the training questions nor the vocabulary.
func TestHeldOutDatabasesAreNotTrainedOn(t *testing.T) {
	r := opened(t, smallConfig(t, "train.holdout_databases=0.5"))
	var trainedOn []string
	for _, q := range r.data.questions {
		trainedOn = append(trainedOn, q.db)
	}
	slices.Sort(trainedOn)
	trainedOn = slices.Compact(trainedOn)
	if len(trainedOn) != 2 || len(r.data.questions) != 6 || len(r.faults) == 0 {
		t.Fatalf("trained on %v, %d questions, %d faults", trainedOn, len(r.data.questions), len(r.faults))
	}
	for _, f := range r.faults {
		if slices.ContainsFunc(trainedOn, func(db string) bool { return strings.Contains(f.Question, "\x00"+db+"\x00") }) {
			t.Errorf("%q is trained on and held out", f.Question)
		}
	}
}

// Validation localises root causes only, a limited number, drawn by the seed.
func TestValidationTuples(t *testing.T) {
	all := smallTuples()
	c := Defaults().Train
	if got := validationTuples(all, c); len(got) != 20 || slices.ContainsFunc(got, func(t data.Tuple) bool { return !t.RootClause }) {
		t.Errorf("%d tuples of %d", len(got), len(all))
	}
	c.ValidateQuestions = 7
	drawn := ids(validationTuples(all, c))
	if len(drawn) != 7 || !slices.Equal(drawn, ids(validationTuples(all, c))) {
		t.Errorf("drew %v", drawn)
	}
	if c.Seed++; slices.Equal(drawn, ids(validationTuples(all, c))) {
		t.Error("another seed draws the same")
	}
}

func ids(tuples []data.Tuple) []string {
	var all []string
	for _, t := range tuples {
		all = append(all, t.ID)
	}
	return all
}

func TestSeverityReference(t *testing.T) {
	for _, k := range []struct {
		costs []float64
		want  float64
	}{
		{[]float64{3}, 3},
		{[]float64{4, 1, 3, 2}, 4},
		{[]float64{1, 1, 1, 2, 3, 4, 1, 1, 1, 2, 3, 4}, 3},
	} {
		var tuples []data.Tuple
		for _, cost := range k.costs {
			tuples = append(tuples, data.Tuple{EditCost: cost})
		}
		if got := severityReference(tuples); got != k.want {
			t.Errorf("%v: %v, want %v", k.costs, got, k.want)
		}
	}
}

// An epoch visits every question once, in an order of its own, in batches that
// reach batch_pairs and no further than they must.
func TestEpochsVisitEveryQuestionOnce(t *testing.T) {
	r := opened(t, smallConfig(t, "train.batch_pairs=5", "train.holdout_databases=0", "train.epochs=4"))
	var orders []string
	steps := 0
	for epoch := range 4 {
		seen := map[*question]bool{}
		var order strings.Builder
		for r.state.Epoch == epoch {
			batch := r.take()
			steps++
			pairs := 0
			for _, q := range batch {
				if seen[q] {
					t.Errorf("epoch %d: a question came twice", epoch)
				}
				seen[q] = true
				pairs += len(q.pairs)
				fmt.Fprintf(&order, "%p ", q)
			}
			if last := batch[len(batch)-1]; pairs-len(last.pairs) >= 5 || pairs < 5 && r.state.Epoch == epoch {
				t.Errorf("epoch %d: a batch of %d pairs", epoch, pairs)
			}
		}
		if len(seen) != 12 || slices.Contains(orders, order.String()) {
			t.Errorf("epoch %d: %d questions, order %s", epoch, len(seen), order.String())
		}
		orders = append(orders, order.String())
	}
	if r.run.Total != steps {
		t.Errorf("%d steps announced, %d taken", r.run.Total, steps)
	}
}

// A prefix is cut where the query's own clauses end.
func TestPrefixUnits(t *testing.T) {
	query := "WITH a AS (SELECT 1) SELECT b, 'FROM' FROM a WHERE b > 1 ORDER BY b"
	for prefix, want := range map[string][]string{
		"":                                       nil,
		"WITH a AS (SELECT 1) ":                  {"WITH a AS (SELECT 1) "},
		"WITH a AS (SELECT 1) SELECT b, 'FROM' ": {"WITH a AS (SELECT 1) ", "SELECT b, 'FROM' "},
		// White space before a clause may be the clause's own.
		"WITH a AS (SELECT 1)": {"WITH a AS (SELECT 1)"},
		// An annotation finer than clauses may end its prefix inside one.
		"WITH a AS (SELECT 1) SELECT b": {"WITH a AS (SELECT 1) ", "SELECT b"},
	} {
		got, opened := prefixUnits(&data.Tuple{SQLRejected: query, Prefix: prefix})
		if opened != "" {
			if opened != "SELECT b" {
				t.Errorf("%q: opened %q", prefix, opened)
			}
			got = append(got, opened)
		}
		if !slices.Equal(got, want) || strings.Join(got, "") != prefix {
			t.Errorf("%q: %q", prefix, got)
		}
	}
}
