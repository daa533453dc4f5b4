package annotate

import (
	"maps"
	"strings"
	"testing"

	"caper/data"
	"caper/sql"

	"github.com/sqlc-dev/meyer/lexer"
	"github.com/sqlc-dev/meyer/token"
)

// seamsOf lists where a word stands right behind a closing quote or parenthesis,
// "'x'OR", as the closing byte and the word.
func seamsOf(text string) map[string]bool {
	seams := make(map[string]bool)
	tokens := lexer.Lex(text)
	for i, t := range tokens[1:] {
		before := tokens[i]
		if t.Kind == token.EOF || t.Pos != before.End || !strings.ContainsRune("'\"`])", rune(text[t.Pos-1])) {
			continue
		}
		if c := text[t.Pos] | 0x20; c >= 'a' && c <= 'z' {
			seams[text[t.Pos-1:t.Pos]+strings.ToUpper(text[t.Pos:t.End])] = true
		}
	}
	return seams
}

// TestSeams: on real predictions no text is written whose words touch a quote or
// parenthesis where those of the query that it was made from do not.
func TestSeams(t *testing.T) {
	skipWalk(t)
	for _, c := range []struct {
		bench string
		share int
	}{{"spider", 9}, {"bird", 9}} {
		t.Run(c.bench, func(t *testing.T) {
			bench := openShared(t, c.bench)
			rollouts := every(c.share, withRows(bench, data.ReadRollouts(shared(t, "predictions", c.bench+"_dev.jsonl"), bench, "dev")))
			_, err := Run(t.Context(), bench, rollouts, DefaultOptions(), func(tuple data.Tuple) error {
				own, made := tuple.SQLChosen, tuple.SQLRejected
				if tuple.Source == sourceCounterfactual {
					own, made = made, own
				}
				known := seamsOf(own)
				for seam := range maps.Keys(seamsOf(made)) {
					if !known[seam] {
						t.Errorf("%s: %s in %s\nmade from %s", tuple.Operator, seam, made, own)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestPatchPartsWords gives changes after which tokens meet that were apart.
func TestPatchPartsWords(t *testing.T) {
	for _, c := range []struct{ wrong, gold, want string }{
		{"SELECT a FROM t WHERE b IN ('x', 'y')", "SELECT a FROM t WHERE b = 'x' OR b = 'y'", "SELECT a FROM t WHERE b = 'x' OR b = 'y'"},
		{"SELECT sum(iif(a = 'x', 1, 0)) FROM t", "SELECT sum(CASE WHEN a = 'x' THEN 1 ELSE 0 END) FROM t", "SELECT sum(CASE WHEN a = 'x' THEN 1 ELSE 0 END) FROM t"},
		{"SELECT ROUND((CAST(COUNT(a) AS FLOAT) / COUNT(b) * 100), 0) FROM t", "SELECT CAST(COUNT(a) AS REAL) * 100 / (SELECT COUNT(b) FROM t) FROM t",
			"SELECT (CAST(COUNT(a) AS REAL) * 100 / (SELECT COUNT(b) FROM t)) FROM t"},
		{"SELECT count(*)OVER (ORDER BY a) FROM t", "SELECT count(*) OVER (ORDER BY b) FROM t", "SELECT count(*)OVER (ORDER BY b) FROM t"},
		{"SELECT a FROM t WHERE b IN (1, 2)ORDER BY a", "SELECT a FROM t WHERE b = 1 ORDER BY a", "SELECT a FROM t WHERE b = 1 ORDER BY a"},
		{"SELECT sum(a), b FROM t", "SELECT sum(a) OVER (ORDER BY b), b FROM t", "SELECT sum(a) OVER (ORDER BY b), b FROM t"},
		{"SELECT (CAST(sum(a) AS REAL)) FROM t", "SELECT CAST(sum(a) - count(b) AS REAL) FROM t", "SELECT (CAST(sum(a) - count(b) AS REAL)) FROM t"},
		{"SELECT sum(a) FROM t", "SELECT sum(a) OVER (ORDER BY b) FROM t", "SELECT sum(a) OVER (ORDER BY b) FROM t"},
	} {
		r := newRepair(statementOf(t, c.wrong, Top), statementOf(t, c.gold, Top))
		if got := r.from(0); got != c.want {
			t.Errorf("%s\n towards %s\n gives   %s\n want    %s", c.wrong, c.gold, got, c.want)
		}
	}
}

// TestFaultlessClauseIsNotBlamed: a projection that says what gold's says is right
// although gold's tables would make its bare column ambiguous; gold is restated.
func TestFaultlessClauseIsNotBlamed(t *testing.T) {
	gold := "SELECT T1.name FROM owner AS T1 JOIN pet AS T2 ON T1.id = T2.owner_id GROUP BY T1.id HAVING count(*) > 1 AND sum(T2.weight) > 10"
	tuples, _ := annotated(t, petBenchmark(t), petRollouts(gold,
		"SELECT name FROM owner WHERE id IN (SELECT id FROM pet GROUP BY id HAVING sum(weight) > 3)"), DefaultOptions())
	want := "SELECT name FROM (SELECT owner.name FROM owner JOIN pet ON owner.id = owner_id GROUP BY owner.id HAVING count(*) > 1 AND sum(weight) > 10)"
	if len(tuples) == 0 || tuples[len(tuples)-1].Clause != "FROM" || strings.TrimSpace(tuples[len(tuples)-1].SQLChosen) != want {
		t.Errorf("%+v", tuples)
	}
	for _, tuple := range tuples {
		if tuple.RootClause && tuple.EditCost == 0 {
			t.Errorf("%s is blamed at no cost", tuple.Clause)
		}
	}
}

// TestRootOfDoubleQuotedString: what SQLite reads as a string is one, a name in
// the same quotes is a column.
func TestRootOfDoubleQuotedString(t *testing.T) {
	for _, c := range []struct{ wrong, kind string }{
		{`SELECT name FROM owner WHERE city = "Oslo"`, string(sql.String)},
		{`SELECT "city" FROM owner WHERE city = 'Rome'`, string(sql.Column)},
	} {
		tuples, _ := annotated(t, petBenchmark(t), petRollouts("SELECT name FROM owner WHERE city = 'Rome'", c.wrong), DefaultOptions())
		if len(tuples) != 1 || tuples[0].Root.Kind != c.kind {
			t.Errorf("%s: want %s of %+v", c.wrong, c.kind, tuples)
		}
	}
}

// TestPairsDifferInWords: white space around a unit is no difference. The part of
// the first join reads the same in both; the join behind it is one too many.
func TestPairsDifferInWords(t *testing.T) {
	o := DefaultOptions()
	o.Granularity = Predicate
	wrong := statementOf(t, "SELECT a FROM t JOIN u ON t.x = u.x JOIN v ON u.y = v.y WHERE b = 1", Predicate)
	right := statementOf(t, "SELECT a FROM t JOIN u ON t.x = u.x WHERE b = 1", Predicate)
	root := wrong.tree.Child(sql.From).Children[1]
	pairs := o.pairs(data.Tuple{}, right, wrong, fault{root: root})
	for _, p := range pairs {
		if strings.TrimSpace(p.Chosen) == strings.TrimSpace(p.Rejected) {
			t.Errorf("%q and %q", p.Chosen, p.Rejected)
		}
	}
	if len(pairs) != 1 || pairs[0].Clause != "FROM" {
		t.Errorf("%+v", pairs)
	}
}
