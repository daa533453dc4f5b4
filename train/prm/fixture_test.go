package prm

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"caper/data"
	"caper/sql"
	"caper/train/run"
	"caper/train/run/runtest"
)

// databases are the small world of the tests: a table each, with a text and a
// number column.
var databases = []struct{ id, table, name, number, value string }{
	{"zoo", "animal", "species", "weight", "Otter"},
	{"port", "ship", "flag", "length", "Malta"},
	{"school", "pupil", "town", "age", "Łódź"},
	{"farm", "field", "crop", "area", "Rye"},
}

// smallTuples returns three questions of each database: a wrong column and a wrong
// literal together, a comparison inside a sub-query with its enclosing clause, and
// an ORDER BY that is missing at the end.
func smallTuples() []data.Tuple {
	var tuples []data.Tuple
	for _, d := range databases {
		prompt := func(question string) string {
			return fmt.Sprintf("CREATE TABLE %s (%s text, %s int);\n-- %s\n", d.table, d.name, d.number, question)
		}
		add := func(question, chosen, rejected string, clause int, margin, cost float64) {
			t := newTuple(chosen, rejected, clause)
			t.QuestionID, t.DBID, t.Question, t.Prompt = data.NameID(question), d.id, question, prompt(question)
			t.Margin, t.Reward, t.EditCost, t.RootClause = margin, -margin, cost, margin == 1
			t.ID = t.ContentID()
			tuples = append(tuples, t)
		}
		column := fmt.Sprintf("What %s is %s?", d.number, d.value)
		right := fmt.Sprintf("SELECT %s FROM %s WHERE %s = '%s'", d.number, d.table, d.name, d.value)
		add(column, right, strings.Replace(right, d.number, d.name, 1), 0, 1, 0.5)
		add(column, right, strings.Replace(right, d.value, "Nothing", 1), 2, 1, 2)

		most := fmt.Sprintf("Which %s has the largest %s?", d.name, d.number)
		right = fmt.Sprintf("SELECT %s FROM %s WHERE %s = (SELECT max(%s) FROM %s)", d.name, d.table, d.number, d.number, d.table)
		add(most, right, strings.Replace(right, "max", "min", 1), 2, 0.6, 1)
		add(most, right, strings.Replace(right, " = (", " < (", 1), 2, 1, 4)

		sorted := fmt.Sprintf("Every %s, smallest %s first.", d.name, d.number)
		right = fmt.Sprintf("SELECT %s FROM %s ORDER BY %s", d.name, d.table, d.number)
		add(sorted, right, fmt.Sprintf("SELECT %s FROM %s", d.name, d.table), 2, 1, 3)
		add(sorted, right, right+" DESC", 2, 1, 1)
	}
	return tuples
}

// newTuple returns the tuple of two queries that differ from one clause on.
func newTuple(chosen, rejected string, clause int) data.Tuple {
	right, wrong := sql.Clauses(chosen), sql.Clauses(rejected)
	unit := func(query string, clauses []sql.Clause) (prefix, text string) {
		if clause == len(clauses) {
			return query, ""
		}
		return query[:clauses[clause].Start], query[clauses[clause].Start:clauses[clause].End]
	}
	t := data.Tuple{
		Dataset: "small", Split: "train", SQLChosen: chosen, SQLRejected: rejected,
		ClauseIndex: clause, ClauseCount: len(wrong), Source: "injection", Operator: "test",
	}
	t.Prefix, t.Chosen = unit(chosen, right)
	rejectedPrefix, text := unit(rejected, wrong)
	if clause == len(wrong) { // the space before a missing clause belongs to it
		t.Chosen, t.Prefix = chosen[len(rejectedPrefix):], rejectedPrefix
	}
	t.Rejected = text
	t.Clause = string(right[min(clause, len(right)-1)].Kind)
	t.Root = data.Root{Start: len(t.Prefix), End: len(t.Prefix) + len(text), Kind: "Clause"}
	return t
}

// writeSmallTuples writes tuples to a file in the test's folder.
func writeSmallTuples(t *testing.T, tuples []data.Tuple) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tuples.jsonl")
	if err := data.WriteTuples(path, slices.Values(tuples)); err != nil {
		t.Fatal(err)
	}
	return path
}

// smallConfig returns a run of a few thousand weights whose steps take
// milliseconds: 9 training questions, 3 steps an epoch.
func smallConfig(t *testing.T, overrides ...string) Config {
	t.Helper()
	tuples := writeSmallTuples(t, smallTuples())
	c, err := LoadConfig("", append([]string{
		"train.tuples=" + tuples, "train.out=" + filepath.Join(t.TempDir(), "run"),
		"model.hidden_size=16", "model.num_hidden_layers=2", "model.full_attention_interval=2", "model.intermediate_size=32",
		"model.num_attention_heads=2", "model.num_key_value_heads=1", "model.head_dim=8",
		"model.linear_num_key_heads=2", "model.linear_num_value_heads=2", "model.linear_key_head_dim=8", "model.linear_value_head_dim=8",
		"model.vocab_size=320", "train.epochs=3", "train.batch_pairs=6", "train.lr=3e-3", "train.threads=1",
		"train.holdout_databases=0.25",
	}, overrides...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// opened returns a run that is ready for its first step.
func opened(t *testing.T, c Config) *prm {
	t.Helper()
	r, err := open(t.Context(), c, run.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.run.Close() })
	return r
}

// trained runs to the end.
func trained(t *testing.T, c Config, o run.Options) Outcome {
	t.Helper()
	outcome, err := Train(context.Background(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

// volatile is the field of metrics that measures time.
const volatile = "tokens_per_second"

// runFiles returns the content of every file of a run folder by its path there,
// without what must differ: time in the metrics, train.out in config.toml.
func runFiles(t *testing.T, dir string) map[string]string { return runtest.Files(t, dir, volatile) }

// sameRun reports files in which two run folders differ.
func sameRun(t *testing.T, got, want string) { runtest.Same(t, got, want, volatile) }
