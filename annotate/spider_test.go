package annotate

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"caper/data"
	"caper/data/sample"
	"caper/sqlexec"
)

// shared finds the test data beside the repository, or skips.
func shared(t testing.TB, parts ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{"..", "..", "shared", "data"}, parts...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("test data is not here: put the folder shared/data beside the repository (%v)", err)
	}
	return path
}

// every passes on one rollout in n.
func every(n int, rollouts iter.Seq2[data.Rollout, error]) iter.Seq2[data.Rollout, error] {
	return func(yield func(data.Rollout, error) bool) {
		i := 0
		for r, err := range rollouts {
			if i++; err == nil && i%n != 0 {
				continue
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// withRows passes on the rollouts whose database is there.
func withRows(bench *data.Benchmark, rollouts iter.Seq2[data.Rollout, error]) iter.Seq2[data.Rollout, error] {
	return func(yield func(data.Rollout, error) bool) {
		for r, err := range rollouts {
			if _, missing := os.Stat(bench.DatabasePath(r.DBID)); err == nil && missing != nil {
				continue
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// TestInvariants checks every tuple of published predictions on Spider dev, and a
// share of those on BIRD's superhero and at the other granularities.
func TestInvariants(t *testing.T) {
	for _, c := range []struct {
		bench       string
		granularity Granularity
		share       int // one rollout in so many
		repaired    float64
	}{
		{"spider", Top, 41, 0.97}, {"spider", Nested, 1, 0.97}, {"spider", Predicate, 23, 0.97},
		{"bird", Nested, 23, 0.75}, {"bird", Predicate, 19, 0.75},
	} {
		t.Run(c.bench+"/"+string(c.granularity), func(t *testing.T) {
			if testing.Short() && c.share > 1 {
				t.Skip("its goroutines are those of spider/nested")
			} else if testing.Short() {
				c.share = 17
			}
			bench := openShared(t, c.bench)
			rollouts := every(c.share, withRows(bench, data.ReadRollouts(shared(t, "predictions", c.bench+"_dev.jsonl"), bench, "dev")))
			checkInvariants(t, bench, rollouts, c.granularity, c.repaired)
		})
	}
}

// TestInvariantsOfDemo checks the tuples of caper demo: every one of them where
// CAPER_TEST_TUPLES=all, as make invariants sets it, or else a share, since the demo's
// endless candidates take the time.
func TestInvariantsOfDemo(t *testing.T) {
	skipWalk(t)
	share := 7 // one rollout in so many
	if os.Getenv("CAPER_TEST_TUPLES") == "all" {
		share = 1
	}
	dir := filepath.Join(t.TempDir(), "bench")
	if _, err := sample.Write(t.Context(), dir, sample.DefaultOptions()); err != nil {
		t.Fatal(err)
	}
	if _, err := sample.WriteRollouts(t.Context(), dir, sample.DefaultRolloutOptions()); err != nil {
		t.Fatal(err)
	}
	bench, err := data.OpenBenchmark(dir, "spider")
	if err != nil {
		t.Fatal(err)
	}
	defer bench.Close()
	bench.Limits.Timeout = time.Second // as the demo sets it
	for _, split := range []string{sample.Train, sample.Test, sample.NewWords} {
		t.Run(split, func(t *testing.T) {
			checkInvariants(t, bench, every(share, data.ReadRollouts(sample.RolloutPath(dir, split), bench, split)), Nested, 0.97)
		})
	}
}

// checkInvariants annotates rollouts and checks on every tuple what caper.md
// Part 4 (1-4) and the tuple format promise. It shares no code with the
// annotator: its own connection to the databases, its own comparison of results,
// its own look at the bytes. At least the share repaired of the failing rollouts
// must give tuples.
func checkInvariants(t *testing.T, bench *data.Benchmark, rollouts iter.Seq2[data.Rollout, error], g Granularity, repaired float64) {
	t.Helper()
	var golds sync.Map // by question id; written while earlier rollouts are annotated
	noted := func(yield func(data.Rollout, error) bool) {
		for r, err := range rollouts {
			golds.Store(r.QuestionID.String(), r.Gold)
			if !yield(r, err) {
				return
			}
		}
	}
	checker := newChecker(t, bench)
	var tuples []data.Tuple
	o := DefaultOptions()
	o.Granularity, o.Seed = g, 1
	summary, err := Run(t.Context(), bench, noted, o, func(tuple data.Tuple) error {
		gold, _ := golds.Load(tuple.QuestionID.String())
		for _, fault := range checker.check(tuple, gold.(string)) {
			t.Errorf("tuple %d (%s, %s): %s\n  prefix   %q\n  chosen   %q\n  rejected %q", len(tuples), tuple.Operator, tuple.Clause, fault,
				tuple.Prefix, tuple.Chosen, tuple.Rejected)
		}
		tuples = append(tuples, tuple)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d rollouts, %d correct, %d failing, %d repaired, %d mutants of %d tried, %d tuples; %v",
		summary.Rollouts, summary.Correct, summary.Failing, summary.Repaired, summary.MutantsAccepted, summary.MutantsTried,
		summary.Tuples, summary.Reasons)
	if len(tuples) < 150 || summary.InvalidTuples != 0 || len(tuples) != summary.Tuples {
		t.Errorf("%d tuples, summary %+v", len(tuples), summary)
	}
	if share := float64(summary.Repaired) / float64(summary.Failing); share < repaired {
		t.Errorf("%.1f %% of the failing rollouts are repaired", 100*share)
	}
	checkFaults(t, g, tuples, summary.DuplicateTuples)
}

// checkFaults looks at the tuples of one fault together: one holds v*, but for
// those that another rollout gave as well, and in a query without sub-queries
// there is no other; of parts, one of the clause around it.
func checkFaults(t *testing.T, g Granularity, tuples []data.Tuple, duplicates int) {
	t.Helper()
	type fault struct{ roots, others int }
	faults := make(map[[2]string]fault)
	for _, tuple := range tuples {
		key := [2]string{tuple.SQLChosen, tuple.SQLRejected}
		f := faults[key]
		if tuple.RootClause {
			f.roots++
		} else {
			f.others++
		}
		faults[key] = f
	}
	rootless := 0
	for key, f := range faults {
		if f.roots == 0 {
			rootless++
		}
		around := map[Granularity]int{Top: 0, Nested: 0, Predicate: 1}[g]
		isFlat := strings.Count(strings.ToLower(key[1]), "select") == 1
		if (g == Top || isFlat) && f.others > around*max(f.roots, 1) {
			t.Errorf("%s: %d tuples of enclosing clauses of %d faults", key[1], f.others, f.roots)
		}
	}
	if rootless > duplicates {
		t.Errorf("%d faults have no tuple that holds v*, %d tuples were there before", rootless, duplicates)
	}
}

// checker judges tuples by execution on its own connections.
type checker struct {
	t         *testing.T
	bench     *data.Benchmark
	databases map[string]*sql.DB
	ids       map[string]bool
	// results are those of the queries about one question.
	results  map[string]result
	question data.QuestionID
}

type result struct {
	rows [][]string
	err  error
}

func newChecker(t *testing.T, bench *data.Benchmark) *checker {
	c := &checker{t: t, bench: bench, databases: make(map[string]*sql.DB), ids: make(map[string]bool), results: make(map[string]result)}
	t.Cleanup(func() {
		for _, db := range c.databases {
			db.Close()
		}
	})
	return c
}

// check lists what is wrong with a tuple.
func (c *checker) check(tuple data.Tuple, gold string) (faults []string) {
	require := func(holds bool, format string, args ...any) {
		if !holds {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	if tuple.QuestionID != c.question {
		c.question = tuple.QuestionID
		clear(c.results)
	}
	require(!c.ids[tuple.ID], "its id is used twice")
	c.ids[tuple.ID] = true

	start, end := len(tuple.Prefix), len(tuple.Prefix)+len(tuple.Rejected)
	require(strings.HasPrefix(tuple.SQLChosen, tuple.Prefix+tuple.Chosen), "sql_chosen does not start with prefix and chosen")
	require(strings.HasPrefix(tuple.SQLRejected, tuple.Prefix+tuple.Rejected), "sql_rejected does not start with prefix and rejected")
	require(tuple.Root.Start >= start && tuple.Root.End <= end && tuple.Root.Start <= tuple.Root.End,
		"v* at %d-%d lies outside the rejected unit %d-%d", tuple.Root.Start, tuple.Root.End, start, end)
	require(strings.TrimSpace(tuple.Chosen) != strings.TrimSpace(tuple.Rejected), "the units are equal")
	require(!tuple.RootClause || tuple.EditCost > 0, "a clause that says the same is blamed")
	require((tuple.Rejected == "") == (tuple.ClauseIndex == tuple.ClauseCount), "index %d of %d", tuple.ClauseIndex, tuple.ClauseCount)
	require(tuple.Margin > 0 && tuple.Margin <= 1 && tuple.Margin == -tuple.Reward, "margin %v for reward %v", tuple.Margin, tuple.Reward)
	require(tuple.RootClause == (tuple.Margin == 1), "margin %v, root clause %v", tuple.Margin, tuple.RootClause)
	require(!strings.Contains(tuple.Prompt, gold), "the prompt holds gold")

	if tuple.Source == "injection" {
		// What follows the unit is the same in both, byte for byte; a clause that
		// is dropped or added leaves the rest, the closing semicolon aside.
		rest, kept := tuple.SQLChosen[start+len(tuple.Chosen):], tuple.SQLRejected[end:]
		switch {
		case rest == kept:
		case tuple.Rejected == "":
			require(kept == "" && strings.Trim(rest, "; \n") == "", "text behind a dropped clause changed")
		case tuple.Root.Start == tuple.Root.End && tuple.RootClause:
			require(rest == tuple.Rejected+kept, "text behind a dropped clause changed")
		case tuple.Chosen == "":
			require(kept == "" && strings.Trim(rest, "; \n") == "", "text behind an added clause changed")
		case strings.HasSuffix(tuple.Operator, ".added") && tuple.RootClause:
			require(kept == tuple.Chosen+rest, "text behind an added clause changed")
		case strings.Contains(tuple.Operator, ".added_") && rest != kept:
			require(strings.TrimSpace(kept) == strings.TrimSpace(tuple.Chosen+rest), "text behind an added part changed")
		case strings.HasPrefix(tuple.Operator, "setop.") || strings.HasSuffix(tuple.Operator, ".clause"):
			require(strings.HasSuffix(tuple.SQLChosen, kept), "untouched clauses changed")
		default:
			require(rest == kept, "untouched clauses changed: %q became %q", rest, kept)
		}
	}
	rightChosen, err := c.correct(tuple.DBID, tuple.SQLChosen, gold)
	require(err == nil && rightChosen, "sql_chosen is wrong (%v)", err)
	rightRejected, err := c.correct(tuple.DBID, tuple.SQLRejected, gold)
	require(tuple.Source == "counterfactual" || err == nil, "the mutant fails: %v", err)
	require(!rightRejected, "sql_rejected is correct")
	if tuple.Source == "injection" {
		require(!c.looksSame(tuple), "as written, both queries give the same rows")
	}
	return faults
}

// correct compares two queries' results as BIRD's evaluator does, or as the
// test-suite evaluator: bags of rows, or lists where gold orders, under some
// permutation of the columns, DISTINCT taken out of both.
func (c *checker) correct(dbID, query, gold string) (bool, error) {
	if c.bench.Rule() == sqlexec.Bird {
		got, err := c.rows(dbID, query)
		if err != nil {
			return false, err
		}
		want, err := c.rows(dbID, gold)
		return err == nil && maps.Equal(setOf(got), setOf(want)), err
	}
	got, err := c.rows(dbID, distinctWord.ReplaceAllString(query, ""))
	if err != nil {
		return false, err
	}
	want, err := c.rows(dbID, distinctWord.ReplaceAllString(gold, ""))
	if err != nil {
		return false, fmt.Errorf("gold: %w", err)
	}
	if len(got) == 0 && len(want) == 0 {
		return true, nil
	}
	if len(got) != len(want) || len(got[0]) != len(want[0]) {
		return false, nil
	}
	isOrdered := strings.Contains(strings.ToLower(gold), "order by")
	if len(want[0]) > maxPermuted {
		got, want = sortedCells(got), sortedCells(want) // too many orders to try: compare the cells as a bag
	}
	for order := range permutations(len(want[0])) {
		if equalRows(got, want, order, isOrdered) {
			return true, nil
		}
	}
	return false, nil
}

func sortedCells(rows [][]string) (sorted [][]string) {
	for _, row := range rows {
		sorted = append(sorted, slices.Sorted(slices.Values(row)))
	}
	return sorted
}

func setOf(rows [][]string) map[string]bool {
	set := make(map[string]bool)
	for _, row := range rows {
		set[strings.Join(row, "\x00")] = true
	}
	return set
}

// looksSame compares the rows of both queries as they are written.
func (c *checker) looksSame(tuple data.Tuple) bool {
	right, err := c.rows(tuple.DBID, tuple.SQLChosen)
	if err != nil {
		return false
	}
	wrong, err := c.rows(tuple.DBID, tuple.SQLRejected)
	if err != nil || len(right) != len(wrong) {
		return false
	}
	if len(right) == 0 {
		return true
	}
	if len(right[0]) != len(wrong[0]) {
		return false
	}
	order := make([]int, len(right[0]))
	for i := range order {
		order[i] = i
	}
	return equalRows(right, wrong, order, strings.Contains(strings.ToLower(tuple.SQLChosen), "order by"))
}

// equalRows compares rows, got's columns taken in the given order.
func equalRows(got, want [][]string, order []int, isOrdered bool) bool {
	a, b := make([]string, len(got)), make([]string, len(want))
	for i := range got {
		row := make([]string, len(order))
		for j, column := range order {
			row[j] = got[i][column]
		}
		a[i], b[i] = strings.Join(row, "\x00"), strings.Join(want[i], "\x00")
	}
	if !isOrdered {
		slices.Sort(a)
		slices.Sort(b)
	}
	return slices.Equal(a, b)
}

// maxPermuted is the most columns whose orders are tried.
const maxPermuted = 7

// permutations yields the orders of n columns, above maxPermuted the given one.
func permutations(n int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		if n > maxPermuted {
			yield(order)
			return
		}
		var permute func(k int) bool
		permute = func(k int) bool {
			if k == n {
				return yield(order)
			}
			for i := k; i < n; i++ {
				order[k], order[i] = order[i], order[k]
				if !permute(k + 1) {
					return false
				}
				order[k], order[i] = order[i], order[k]
			}
			return true
		}
		permute(0)
	}
}

var distinctWord = regexp.MustCompile(`(?i)\bdistinct\b`)

// rows runs a query, or remembers what it gave.
func (c *checker) rows(dbID, query string) ([][]string, error) {
	r, ok := c.results[query]
	if !ok {
		r.rows, r.err = c.run(dbID, query)
		c.results[query] = r
	}
	return r.rows, r.err
}

// run runs a query on a connection of the checker's own.
func (c *checker) run(dbID, query string) ([][]string, error) {
	const most = 1 << 18 // more than any right query has here
	ctx, cancel := context.WithTimeout(c.t.Context(), c.bench.Limits.Timeout)
	defer cancel()
	db := c.databases[dbID]
	if db == nil {
		var err error
		if db, err = sql.Open("sqlite3", "file:"+c.bench.DatabasePath(dbID)+"?mode=ro&immutable=1"); err != nil {
			return nil, err
		}
		c.databases[dbID] = db
	}
	result, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer result.Close()
	names, err := result.Columns()
	if err != nil {
		return nil, err
	}
	var rows [][]string
	for result.Next() {
		if len(rows) == most {
			return nil, fmt.Errorf("more than %d rows", most)
		}
		cells := make([]any, len(names))
		pointers := make([]any, len(names))
		for i := range cells {
			pointers[i] = &cells[i]
		}
		if err := result.Scan(pointers...); err != nil {
			return nil, err
		}
		row := make([]string, len(cells))
		for i, cell := range cells {
			row[i] = cellText(cell)
		}
		rows = append(rows, row)
	}
	return rows, result.Err()
}

// cellText writes a value so that equal numbers of either type are equal.
func cellText(v any) string {
	switch v := v.(type) {
	case int64:
		return fmt.Sprint(float64(v))
	case float64:
		if math.Trunc(v) == v {
			return fmt.Sprint(v)
		}
		return fmt.Sprintf("%.12g", v)
	case []byte:
		return "'" + string(v)
	case string:
		return "'" + v
	}
	return fmt.Sprint(v)
}
