package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"caper/data"
)

// A difference can be read without colours: what each side alone has, and the root
// cause beneath the wrong one.
func TestExampleText(t *testing.T) {
	for _, c := range []struct {
		name  string
		tuple data.Tuple
		want  []string
	}{
		{"a word", data.Tuple{Prefix: "SELECT a FROM t ", Rejected: "WHERE b > 'ö x' AND c", Chosen: "WHERE b < 'ö x' AND c", Root: data.Root{Start: 22, End: 31, Kind: "compare"}},
			[]string{
				"    SELECT a FROM t ",
				"  - WHERE b [->-] 'ö x' AND c",
				"          ^^  ^  ^^^^^^ compare",
				"  + WHERE b {+<+} 'ö x' AND c"}},
		{"something missing at the end", data.Tuple{Prefix: "SELECT a FROM t", Chosen: "\nLIMIT 1", Root: data.Root{Start: 15, End: 15, Kind: "limit"}},
			[]string{"  - (the query ends here)", "    ^ limit", "  + {+ LIMIT 1+}"}},
		{"control characters", data.Tuple{Prefix: "SELECT '\x1b[2J'\n", Rejected: "LIMIT 1", Chosen: "", Root: data.Root{Start: 15, End: 22, Kind: "limit"}},
			[]string{"    SELECT '\uFFFD[2J' ", "  - [-LIMIT 1-]", "      ^^^^^^^ limit", "  + (the query ends here)"}},
	} {
		var b strings.Builder
		writeExample(&b, 1, c.tuple, false)
		lines := strings.Split(b.String(), "\n")
		for _, want := range c.want {
			if !slices.Contains(lines, want) {
				t.Errorf("%s: no line %q in\n%s", c.name, want, b.String())
			}
		}
		b.Reset()
		writeExample(&b, 1, c.tuple, true)
		if strings.Contains(b.String(), "[2J") != strings.Contains(c.tuple.Prefix, "[2J") || strings.Contains(b.String(), "\x1b[2J") {
			t.Errorf("%s: the text of a query steers the terminal: %q", c.name, b.String())
		}
	}
}

// What two lists have in common is a subsequence of both, and as long as the
// longest that a plain search finds.
func TestCommon(t *testing.T) {
	var longest func(a, b []string) int
	longest = func(a, b []string) int {
		switch {
		case len(a) == 0 || len(b) == 0:
			return 0
		case a[0] == b[0]:
			return 1 + longest(a[1:], b[1:])
		}
		return max(longest(a[1:], b), longest(a, b[1:]))
	}
	kept := func(list []string, in []bool) (out []string) {
		for i, word := range list {
			if in[i] {
				out = append(out, word)
			}
		}
		return out
	}
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 8)
		a, b := list.Draw(t, "a"), list.Draw(t, "b")
		inA, inB := common(a, b)
		if x, y := kept(a, inA), kept(b, inB); !slices.Equal(x, y) || len(x) != longest(a, b) {
			t.Fatalf("%q and %q; the longest has %d", x, y, longest(a, b))
		}
	})
}

// Counts and quantiles are those of the list; examples are drawn from all of it.
func TestTuplesCount(t *testing.T) {
	c := NewTuples(5)
	const n = 1000
	for i := range n {
		tuple := data.Tuple{QuestionID: data.IndexID(i / 4), DBID: fmt.Sprint("db", i%20), Clause: "WHERE", Operator: "single",
			Rejected: strings.Repeat("x", i+1), Margin: float64(i%10+1) / 20, RootClause: i%2 == 0}
		c.Add(tuple)
	}
	c.Finish()
	// 250 ids on 20 databases: i/4 and i%20 repeat together every 20, so all differ.
	if c.Tuples != n || c.Questions != n || c.Enclosing != n/2 || len(c.ByDatabase) != 20 || c.ByClause["WHERE"] != n {
		t.Errorf("%+v", c)
	}
	if l := c.Lengths["rejected"]; l != (Lengths{1, 500, 950, 1000}) {
		t.Errorf("lengths %+v", l)
	}
	for i, k := range c.Margins {
		if k != n/10 {
			t.Errorf("bin %d holds %d margins", i, k)
		}
	}
	if len(c.examples) != 5 || c.examples[4].index < n/4 || !slices.IsSortedFunc(c.examples, func(a, b example) int { return cmp.Compare(a.index, b.index) }) {
		t.Errorf("examples %v", c.examples)
	}
	var b strings.Builder
	if err := c.Write(&b, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"By database, the first 10 of 20", "1,000  WHERE", "0.9 to 1.0"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestSummaryText(t *testing.T) {
	var b strings.Builder
	if err := WriteSummary(&b, drawnSummary()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"rollouts", "Tuples by clause", "Tuples by operator", "Rollouts without tuples", "Mutants rejected"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
