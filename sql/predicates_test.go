package sql

import (
	"strings"
	"testing"
)

// TestPredicates cuts statements at the marks: "|" stands in front of each unit
// of the outermost block but the first, and inner lists the others' texts.
func TestPredicates(t *testing.T) {
	for _, c := range []struct{ marked, inner string }{
		{"SELECT DISTINCT a |, b AS x |FROM t |JOIN u ON t.i = u.i |AND (t.j = u.j) |, v |WHERE a > 1 |AND b BETWEEN 2 AND 3 |AND (c OR d AND e) |LIMIT 1 OFFSET 2;", ""},
		{"SELECT a |FROM t |WHERE ((a) |AND ((b + 1) * 2 > c) |AND (d))", ""},
		{"SELECT a |FROM (t |JOIN u USING (i)) |LEFT JOIN (v |JOIN w ON 1 |AND 2) ON 3 |GROUP BY (a) |, b |HAVING max(c) > 1 |AND 2 |ORDER BY a DESC |, (b)", ""},
		{"-- a, b\nSELECT sum(a) OVER w |, count(b) FILTER (WHERE c AND d) |FROM t |WINDOW w AS (ORDER BY e, f) |, v AS ()", ""},
		{"WITH a AS (SELECT 1, 2) |, b(x) AS (VALUES (1), (2)) |SELECT 3 |UNION SELECT 4, 5 |EXCEPT SELECT 6 |ORDER BY 1 |, 2 -- done",
			"SELECT 1|, 2|VALUES (1), (2)|SELECT 4|, 5|SELECT 6"},
		{"SELECT (SELECT x, y) |FROM (SELECT p, q FROM r WHERE s AND t) |WHERE a IN (SELECT b FROM c WHERE d IN (SELECT e FROM f)) |AND g",
			"SELECT x|, y|SELECT p|, q |FROM r |WHERE s |AND t|SELECT b |FROM c |WHERE d IN (SELECT e FROM f)|SELECT e |FROM f"},
	} {
		text := strings.ReplaceAll(c.marked, "|", "")
		var outer, inner []string
		for _, u := range Predicates(mustParse(t, text), text) {
			if part := text[u.Start:u.End]; u.Depth == 0 {
				outer = append(outer, part)
			} else {
				inner = append(inner, part)
			}
		}
		if got := strings.Join(outer, "|"); got != c.marked {
			t.Errorf("want %q\n got %q", c.marked, got)
		}
		if got := strings.Join(inner, "|"); got != c.inner {
			t.Errorf("%q\n\twant inside %q\n\t        got %q", text, c.inner, got)
		}
	}
}

// TestPredicatesPartition checks on all gold that units of one block follow each
// other without gap, refine the clauses, and hold the nodes that stand for them.
func TestPredicatesPartition(t *testing.T) {
	units := 0
	check := func(text string) {
		n, err := Parse(text)
		if err != nil {
			return
		}
		list := Predicates(n, text)
		units += len(list)
		checkPredicates(t, n, text, list)
	}
	for _, text := range statements(t) {
		check(text)
	}
	for _, q := range goldQueries(t) {
		check(q.sql)
	}
	t.Logf("%d units", units)
}

func checkPredicates(t *testing.T, n *Node, text string, list []Unit) {
	t.Helper()
	clauses := Clauses(text)
	at, starts := 0, map[int]ClauseKind{} // of the outermost units
	blocks := map[*Node]int{}             // the end of each inner block's last unit
	for _, u := range list {
		if u.Start >= u.End {
			t.Fatalf("%q: empty unit at %d", text, u.Start)
		}
		if u.Node.Start < u.Start || u.Node.Start >= u.End {
			t.Fatalf("%q: %q does not hold the start of its node", text, text[u.Start:u.End])
		}
		if u.Depth == 0 {
			if u.Start != at {
				t.Fatalf("%q: unit at %d does not follow %d", text, u.Start, at)
			}
			at, starts[u.Start] = u.End, u.Kind
			continue
		}
		b := u.Node.Block()
		for b.Parent.IsBlock() { // an operand's units are its compound's
			b = b.Parent
		}
		if end, found := blocks[b]; found && end != u.Start || !found && b.Start != u.Start {
			t.Fatalf("%q: inner unit %q has a gap before it", text, text[u.Start:u.End])
		}
		blocks[b] = u.End
	}
	if at != clauses[len(clauses)-1].End {
		t.Fatalf("%q: units end at %d", text, at)
	}
	for _, c := range clauses {
		if starts[c.Start] != c.Kind {
			t.Fatalf("%q: no unit starts with clause %s", text, c.Kind)
		}
	}
	inner := 0
	Walk(n, func(m *Node) bool {
		if m.IsBlock() && m != n && !m.Parent.IsBlock() {
			if inner++; blocks[m] != m.End {
				t.Fatalf("%q: the units of %q end at %d", text, m.Text(text), blocks[m])
			}
		}
		return true
	})
	if inner != len(blocks) {
		t.Fatalf("%q: %d inner blocks, units in %d", text, inner, len(blocks))
	}
}
