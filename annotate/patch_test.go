package annotate

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"caper/annotate/style"
	"caper/sql"
)

// TestPatchKeepsStyle rewrites one clause of a query towards another and expects
// the changed words alone to change, in the query's own style.
func TestPatchKeepsStyle(t *testing.T) {
	for _, c := range []struct{ wrong, gold, want string }{
		{"select a from t where b=1", "SELECT a FROM t WHERE b != 1", "select a from t where b!=1"},
		{"SELECT a FROM t WHERE b <> 1 AND c = 2", "SELECT a FROM t WHERE b != 1 AND c != 2", "SELECT a FROM t WHERE b <> 1 AND c <> 2"},
		{"select a  from t", "SELECT DISTINCT a FROM t", "select distinct a  from t"},
		{"SELECT count( a ) FROM t", "SELECT COUNT(DISTINCT a) FROM t", "SELECT count( DISTINCT a ) FROM t"},
		{"SELECT count(DISTINCT a) FROM t", "SELECT count(a) FROM t", "SELECT count(a) FROM t"},
		{"SELECT a FROM t INNER JOIN u ON t.x = u.x", "SELECT a FROM t LEFT JOIN u ON t.x = u.x", "SELECT a FROM t LEFT JOIN u ON t.x = u.x"},
		{"SELECT a FROM t INNER JOIN u ON t.x = u.x", "SELECT a FROM t JOIN u ON t.x = u.y", "SELECT a FROM t INNER JOIN u ON t.x = u.y"},
		{"SELECT a FROM t ORDER BY a ASC", "SELECT a FROM t ORDER BY a DESC", "SELECT a FROM t ORDER BY a DESC"},
		{"SELECT a FROM t ORDER BY a ASC", "SELECT a FROM t ORDER BY b", "SELECT a FROM t ORDER BY b ASC"},
		{"SELECT a FROM t WHERE (b = 1) AND (c = 2)", "SELECT a FROM t WHERE c = 2", "SELECT a FROM t WHERE (c = 2)"},
		{"SELECT a FROM t WHERE (b = 1) AND (c = 2)", "SELECT a FROM t WHERE b = 1 AND c > 2", "SELECT a FROM t WHERE (b = 1) AND (c > 2)"},
		{"SELECT a, b FROM t", "SELECT max(b) FROM t", "SELECT MAX(b) FROM t"},
		{"SELECT a FROM t JOIN u ON t.x = u.x", "SELECT a FROM w JOIN t ON w.y = t.z", "SELECT a FROM w JOIN t ON w.y = t.z"},
		{"select a from t where c = 2 and 1 < b", "SELECT a FROM t WHERE b > 1 AND c = 3", "select a from t where c = 3 and 1 < b"},
		{"SELECT a FROM t JOIN u ON u.x = t.x WHERE t.b IN (3, 1)", "SELECT a FROM t JOIN u ON t.x = u.x AND t.y = u.y WHERE t.b IN (1, 2, 3)", "SELECT a FROM t JOIN u ON u.x = t.x AND t.y = u.y WHERE t.b IN (3, 1, 2)"},
		{`SELECT a FROM t WHERE b = "x"`, "SELECT a FROM t WHERE b = 'y z'", `SELECT a FROM t WHERE b = "y z"`},
		{"SELECT a\nFROM t\nWHERE b = 1\n  AND c = 2", "SELECT a FROM t WHERE b = 1", "SELECT a\nFROM t\nWHERE b = 1"},
		{"SELECT a, b\nFROM t", "SELECT a FROM t", "SELECT a\nFROM t"},
		{"SELECT a FROM t WHERE lower(b) = 1", "SELECT a FROM t WHERE b = 1", "SELECT a FROM t WHERE b = 1"},
		{"SELECT a FROM t INNER JOIN u ON t.x = u.x INNER JOIN v ON u.y = v.y", "SELECT a FROM t JOIN u ON t.x = u.z JOIN v ON u.y = v.y",
			"SELECT a FROM t INNER JOIN u ON t.x = u.z INNER JOIN v ON u.y = v.y"},
		{"select a from t as t1 join u as t2 on t1.x = t2.x", "SELECT a FROM t AS t1", "select a from t as t1"},
	} {
		wrong, gold := statementOf(t, c.wrong, Top), statementOf(t, c.gold, Top)
		r := newRepair(wrong, gold)
		got := r.from(0)
		if got != c.want {
			t.Errorf("%s\n towards %s\n gives   %s\n want    %s", c.wrong, c.gold, got, c.want)
		}
		if s := statementOf(t, got, Top); !sql.Equal(sql.Canonical(s.tree, nil), sql.Canonical(renameLike(gold, wrong), nil)) && c.wrong[len(c.wrong)-1] != '"' {
			t.Errorf("%s reads otherwise than %s", got, c.gold)
		}
	}
}

// TestRepairReadsAsGold: whatever the two queries, repairing all clauses of one
// gives a text that reads as the other, and repairing none gives the text itself.
func TestRepairReadsAsGold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := [2]string{anyBlock(t, 1), anyBlock(t, 1)}
		if rapid.Bool().Draw(t, "lower") {
			texts[0] = strings.ToLower(texts[0])
		}
		wrong, _ := parse(texts[0], nil, Top)
		gold, _ := parse(texts[1], nil, Top)
		r := newRepair(wrong, gold)
		repaired, ok := parse(r.from(0), nil, Top)
		want := r.renamed[0] // in its tree
		for want.Parent != nil {
			want = want.Parent
		}
		if !ok || !style.ReadsAs(repaired.tree, want) {
			t.Fatalf("%q towards %q gives %q", texts[0], texts[1], r.from(0))
		}
		for k := range r.slots { // no property but that it ends well
			r.only(k)
		}
		restatements(gold, wrong)
		if got := r.from(len(r.slots)); got != texts[0] {
			t.Fatalf("%q became %q", texts[0], got)
		}
	})
}

func statementOf(t *testing.T, text string, g Granularity) *statement {
	t.Helper()
	s, ok := parse(text, nil, g)
	if !ok {
		t.Fatalf("cannot parse %q", text)
	}
	return s
}
