package style

import (
	"testing"

	"caper/sql"
)

// clauses parses a query and returns its clauses.
func clauses(t *testing.T, text string) []*sql.Node {
	t.Helper()
	tree, err := sql.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return sql.ClauseNodes(tree)
}

// A clause patched towards itself keeps every byte; towards another it says what that
// says, in its own style.
func TestPatch(t *testing.T) {
	for _, c := range []struct{ source, towards, want string }{
		{"where b=1", "WHERE b != 1", "where b!=1"},
		{"WHERE (b = 1) AND (c = 2)", "WHERE c = 2", "WHERE (c = 2)"},
		{"WHERE b <> 1 -- all\n AND c = 2", "WHERE b != 3 AND c = 2", "WHERE b <> 3 -- all\n AND c = 2"},
		{"WHERE b = \"x\"", "WHERE b = 'y'", "WHERE b = \"y\""},
		{"where `Big`  in (1,2)", "WHERE Big IN (1, 2, 3)", "where `Big`  in (1,2,3)"},
	} {
		query := "select A from T " + c.source
		own, other := clauses(t, query)[2], clauses(t, "SELECT A FROM T "+c.towards)[2]
		p := NewPatcher(own.Text(query), own, Of(query))
		if have := p.Patch(own); have != c.source {
			t.Errorf("%q towards itself is %q", c.source, have)
		}
		have := p.Patch(other)
		if have != c.want {
			t.Errorf("%q towards %q\nhave %q\nwant %q", c.source, c.towards, have, c.want)
		}
		if again := p.Patch(own); again != c.source {
			t.Errorf("%q is %q after another patch", c.source, again)
		}
	}
}

func TestWrite(t *testing.T) {
	tree := clauses(t, "SELECT count(*), Name FROM T WHERE b != 'x' AND c IN (1, 2)")
	for _, c := range []struct {
		like   string
		clause int
		want   string
	}{
		{"select max(a) from t where b<>1", 2, "where b<>'x' and c in (1, 2)"},
		{"SELECT a ,b FROM t WHERE b = \"y\"", 2, "WHERE b != \"x\" AND c IN (1 ,2)"},
		{"SELECT MAX(A) FROM `T`", 0, "SELECT COUNT(*), Name"},
	} {
		if have := Of(c.like).Write(tree[c.clause]); have != c.want {
			t.Errorf("like %s\nhave %s\nwant %s", c.like, have, c.want)
		}
	}
}
