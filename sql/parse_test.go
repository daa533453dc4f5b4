package sql

import (
	"errors"
	"strings"
	"testing"
)

func TestStatementsRoundTrip(t *testing.T) {
	for _, text := range statements(t) {
		checkRoundTrip(t, text)
	}
}

// Two Spider train queries order an operand before a set operator, which SQLite
// refuses as well.
const faultyGold = "ORDER BY before a set operator"

func TestGoldRoundTrip(t *testing.T) {
	faulty := 0
	for _, q := range goldQueries(t) {
		if _, err := Parse(q.sql); err != nil && strings.Contains(err.Error(), faultyGold) {
			faulty++
			continue
		}
		checkRoundTrip(t, q.sql)
	}
	if faulty != 2 {
		t.Errorf("%d gold queries order an operand, want 2", faulty)
	}
}

// checkRoundTrip parses text, prints the tree and parses that again.
func checkRoundTrip(t testing.TB, text string) {
	t.Helper()
	n, err := Parse(text)
	if err != nil {
		t.Errorf("%s\n\t%v", text, err)
		return
	}
	checkSpans(t, n, text)
	checkAligned(t, n, text)
	printed := Render(n)
	again, err := Parse(printed)
	if err != nil {
		t.Errorf("%s\n\tprints as %s\n\t%v", text, printed, err)
		return
	}
	if !Equal(n, again) {
		t.Errorf("%s\n\tprints as %s\n\tand then as %s", text, printed, Render(again))
	}
}

// checkSpans checks that every node lies within its parent, that siblings do
// not overlap, and that parents are set.
func checkSpans(t testing.TB, n *Node, text string) {
	t.Helper()
	Walk(n, func(n *Node) bool {
		if n.Start < 0 || n.End > len(text) || n.Start > n.End {
			t.Errorf("%s\n\t%s %q has span [%d,%d)", text, n.Kind, n.Value, n.Start, n.End)
			return false
		}
		for _, c := range n.Children {
			if c.Parent != n {
				t.Errorf("%s\n\t%s %q has the wrong parent", text, c.Kind, c.Value)
			}
			if c.Start < n.Start || c.End > n.End {
				t.Errorf("%s\n\t%s %q [%d,%d) reaches out of %s [%d,%d)", text, c.Kind, c.Value, c.Start, c.End, n.Kind, n.Start, n.End)
			}
		}
		return true
	})
}

// TestParseShapes checks trees in a compact notation: value or kind, children in
// brackets.
func TestParseShapes(t *testing.T) {
	for _, c := range []struct{ expr, shape string }{
		{"a AND (b AND c) AND d", "and[a b c d]"},
		{"a OR b AND c OR d", "or[a and[b c] d]"},
		{"NOT a = b", "not[=[a b]]"},
		{"a == b <> c", "!=[=[a b] c]"},
		{"a < b = c", "=[<[a b] c]"},
		{"((a)) - (b - c)", "-[a -[b c]]"},
		{"-a || b", "||[-[a] b]"},
		{"a NOT NULL", "IS NOT NULL[a]"},
		{"a IS NOT NULL", "IS NOT NULL[a]"},
		{"a IS NOT b", "IS NOT[a b]"},
		{"a NOT BETWEEN 1 AND 2 AND c", "and[NOT BETWEEN[a 1 2] c]"},
		{"a NOT LIKE 'x' ESCAPE '!'", "NOT LIKE[a x !]"},
		{"a IN (1, 2)", "IN[a list[1 2]]"},
		{"a NOT IN (SELECT b)", "NOT IN[a subquery[select[projection[item[b]]]]]"},
		{"a IN t", "IN[a t]"},
		{"EXISTS (SELECT 1)", "exists[select[projection[item[1]]]]"},
		{"count(*)", "count[star]"},
		{"COUNT(DISTINCT a)", "count[a distinct]"},
		{"sum(a) FILTER (WHERE b) OVER (w PARTITION BY c)", "sum[a filter[b] w[partition-by[c]]]"},
		{"CASE a WHEN 1 THEN 2 ELSE 3 END", "case[a when[1 2] else[3]]"},
		{"CAST(a AS decimal(10, 2))", "DECIMAL(10,2)[a]"},
		{"a COLLATE nocase", "NOCASE[a]"},
		{"t.a", "t.a"},
		{"main.t.a", "t.a[main]"},
		{"true", "TRUE"},
	} {
		block, err := Parse("SELECT " + c.expr)
		if err != nil {
			t.Errorf("%s: %v", c.expr, err)
			continue
		}
		if got := shape(block.Children[0].Children[0].Children[0]); got != c.shape {
			t.Errorf("%s is %s, want %s", c.expr, got, c.shape)
		}
	}
	for _, c := range []struct{ text, shape string }{
		{"SELECT 1 FROM a, (b JOIN c)", "from[a ,[join-group[b JOIN[c]]]]"},
		{"SELECT 1 FROM (a JOIN b) LEFT OUTER JOIN c AS d USING (x)", "from[a JOIN[b] LEFT JOIN[c[d] using[x]]]"},
		{"SELECT 1 FROM ((a)) INNER JOIN (SELECT 2) x ON 3", "from[a JOIN[derived[select[projection[item[2]]] x] on[3]]]"},
		{"SELECT 1 FROM (a AS x) AS y", "from[a[y]]"},
		{"SELECT 1 FROM a JOIN (b AS x)", "from[a JOIN[b]]"},
		{"SELECT 1 FROM main.a NATURAL FULL JOIN f(1, 2) g", "from[main.a NATURAL FULL JOIN[f[1 2 g]]]"},
	} {
		block, err := Parse(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got := shape(block.Children[1]); got != c.shape {
			t.Errorf("%s is %s, want %s", c.text, got, c.shape)
		}
	}
	block, _ := Parse("SELECT a FROM t LIMIT 2, 3")
	if got := shape(block.Child(Limit)); got != "limit[3 offset[2]]" {
		t.Errorf("LIMIT 2, 3 is %s", got)
	}
}

func shape(n *Node) string {
	label := n.Value
	if label == "" {
		label = string(n.Kind)
	}
	if n.Qualifier != "" {
		label = n.Qualifier + "." + label
	}
	if len(n.Children) == 0 {
		return label
	}
	parts := make([]string, len(n.Children))
	for i, c := range n.Children {
		parts[i] = shape(c)
	}
	return label + "[" + strings.Join(parts, " ") + "]"
}

// TestParseSpans checks the text of nodes whose span is not the grammar's own.
func TestParseSpans(t *testing.T) {
	const text = "SELECT count( DISTINCT (a) ) FILTER (WHERE (b)), sum(c) OVER (ORDER BY (d) ROWS 1 PRECEDING) AS s" +
		" FROM t AS u LEFT JOIN (SELECT 1) v ON (u.a = v.b) WHERE (e IN ( 1, (2) ) OR f IN (SELECT 3))" +
		" GROUP BY (g), h HAVING ((i)) ORDER  BY (j) DESC LIMIT (1) OFFSET (2) ;"
	block, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[Kind]string{
		Distinct: "DISTINCT",
		Filter:   "FILTER (WHERE (b))",
		Over:     "OVER (ORDER BY (d) ROWS 1 PRECEDING)",
		Frame:    "ROWS 1 PRECEDING",
		From:     "FROM t AS u LEFT JOIN (SELECT 1) v ON (u.a = v.b)",
		Join:     "LEFT JOIN (SELECT 1) v ON (u.a = v.b)",
		Derived:  "(SELECT 1) v",
		On:       "ON (u.a = v.b)",
		Where:    "WHERE (e IN ( 1, (2) ) OR f IN (SELECT 3))",
		List:     "( 1, (2) )",
		Subquery: "(SELECT 3)",
		GroupBy:  "GROUP BY (g), h",
		Having:   "HAVING ((i))",
		Limit:    "LIMIT (1) OFFSET (2)",
		Offset:   "OFFSET (2)",
	}
	Walk(block, func(n *Node) bool {
		if want, found := texts[n.Kind]; found && n.Parent != nil && n.Parent.Kind != Derived && n.Parent.Kind != Subquery {
			if got := n.Text(text); got != want {
				t.Errorf("%s is %q, want %q", n.Kind, got, want)
			}
			delete(texts, n.Kind)
		}
		return true
	})
	for kind := range texts {
		t.Errorf("no %s found", kind)
	}
	if got, want := block.Text(text), strings.TrimSuffix(text, " ;"); got != want {
		t.Errorf("the block is %q", got)
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct {
		text, message string
		offset        int
	}{
		{"", "no statement", 0},
		{" ; ", "no statement", 0},
		{"SELECT a FROM", "incomplete input", 13},
		{"SELECT a,\n FROM t", `near "FROM": syntax error`, 11},
		{"SELECT 1; SELECT 2", "more than one statement", 10},
		{"DELETE FROM t", "not a SELECT", 0},
		{"EXPLAIN SELECT 1", "not a SELECT", 0},
		{"WITH x AS (SELECT 1) DELETE FROM t", "not a SELECT", 0},
		{"PRAGMA table_info(t)", "not a SELECT", 0},
		{"SELECT 1 \x00", "NUL byte", 9},
		{"SELECT 'a", `unrecognized token: "'a"`, 7},
		{"(SELECT 1) UNION (SELECT 2)", `near "(": syntax error`, 0},
		{"SELECT 1 LIMIT 1 UNION SELECT 2", "LIMIT before a set operator", 9},
		{"SELECT 1 FROM a OUTER JOIN b", "unknown join type: OUTER JOIN", 16},
		{"SELECT 1 FROM a LEFT INNER JOIN b", "unknown join type", 16},
		{"SELECT 1 FROM a LEFT outside JOIN b", "unknown join type", 16},
		{"SELECT 1 FROM a ON a.b", "a JOIN clause is required before ON", 14},
		{"SELECT 1 FROM (a JOIN b) ON a.x = b.x", "a JOIN clause is required before ON", 14},
		{"WITH x(a COLLATE nocase) AS (SELECT 1) SELECT a FROM x", `syntax error after column name "a"`, 9},
		{"SELECT (a, b) IN ((1, 2), 3) FROM t", "IN(...) element has another number of terms than its left side", 26},
		{"WITH x AS (SELECT 1), X AS (SELECT 2) SELECT 3", "duplicate WITH table name: X", 22},
		{"SELECT sum(DISTINCT a) OVER () FROM t", "DISTINCT is not supported for window functions", 7},
		{"SELECT sum(a) OVER (ROWS 1 FOLLOWING) FROM t", "unsupported frame specification", 25},
		{"SELECT sum(a) OVER (ROWS BETWEEN CURRENT ROW AND 1 PRECEDING) FROM t", "unsupported frame specification", 33},
		{"SELECT ?0", "variable number must be between ?1 and ?32766", 7},
		{`SELECT "".a FROM t`, "empty name before a dot", 7},
		{"SELECT RAISE(IGNORE)", "not allowed in a query", 7},
		{"SELECT 1 FROM t" + strings.Repeat(", t", 64), "more than 64 tables", 9},
		{"SELECT 1" + strings.Repeat(" UNION SELECT 1", 500), "more than 500 operands", 0},
	} {
		_, err := Parse(c.text)
		var fault *ParseError
		if !errors.As(err, &fault) {
			t.Errorf("%q: error %v, want %s", c.text, err, c.message)
			continue
		}
		if !strings.Contains(fault.Message, c.message) || fault.Offset != c.offset {
			t.Errorf("%q: %q at %d, want %q at %d", c.text, fault.Message, fault.Offset, c.message, c.offset)
		}
	}
	_, err := Parse("SELECT a,\n FROM t")
	if got, want := err.Error(), `SQL line 2 column 2: near "FROM": syntax error`; got != want {
		t.Errorf("error reads %q, want %q", got, want)
	}
}

// TestParseHostile checks that extreme input becomes an error, in little time
// and without exhausting the stack.
func TestParseHostile(t *testing.T) {
	repeated := func(head, part, tail string) string {
		return head + strings.Repeat(part, MaxTextBytes/len(part)-20) + tail
	}
	for _, text := range []string{
		"SELECT " + strings.Repeat("(", 1e6) + "1" + strings.Repeat(")", 1e6),
		repeated("SELECT ", "(", ""),
		repeated("SELECT 1", ")", ""),
		repeated("SELECT ", "NOT ", "1"),
		repeated("SELECT ", "- ", "1"),
		repeated("SELECT 1", "+1", ""),
		repeated("SELECT 1", "||(1", ""),
		repeated("SELECT 1", " AND 1", ""),
		repeated("SELECT ", "(SELECT ", ""),
		repeated("SELECT 1 FROM ", "(", "t"),
		repeated("SELECT 1 FROM ", "(SELECT 1 FROM ", "t"),
		repeated("SELECT ", "CASE ", ""),
		repeated("SELECT ", "f(", ""),
		repeated("SELECT 1 IN ", "(1 IN ", ""),
		repeated("", "WITH x AS (", ""),
		repeated("SELECT /*", "*", ""),
	} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%.40q... parses", text)
		}
		checkPartition(t, text)
	}
	for _, text := range []string{
		repeated("SELECT 1", ",1", ""),
		repeated("SELECT 1 IN (1", ",1", ")"),
		"SELECT 1" + strings.Repeat(" UNION SELECT 1", 499),
		repeated("VALUES (1)", ",(1)", ""),
		repeated("SELECT a AS b FROM t ORDER BY b", ",b", ""),
		"SELECT " + strings.Repeat("(", 400) + "1" + strings.Repeat(")", 400),
	} {
		n, err := Parse(text)
		if err != nil {
			t.Errorf("%.40q...: %v", text, err)
			continue
		}
		c := Canonical(n, nil)
		Distance(c, c.Children[0])
	}
}
