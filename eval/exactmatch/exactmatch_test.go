package exactmatch

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"caper/sql"
)

// concerts is a schema of two tables that a foreign key connects.
func concerts() *Schema {
	s := &sql.Schema{Tables: []sql.SchemaTable{
		{Name: "Stadium", Columns: []sql.SchemaColumn{{Name: "Stadium_ID"}, {Name: "Name"}, {Name: "Capacity"}}},
		{Name: "concert", Columns: []sql.SchemaColumn{{Name: "concert_ID"}, {Name: "Stadium_ID"}, {Name: "Year"}}},
	}}
	s.ForeignKeys = []sql.ForeignKey{{Table: "concert", Column: "Stadium_ID", RefTable: "Stadium", RefColumn: "Stadium_ID"}}
	return NewSchema(s, s)
}

func TestTokens(t *testing.T) {
	for query, want := range map[string]string{
		"SELECT count(*) FROM t;":             "select|count|(|*|)|from|t|;",
		"a >= 1 AND b! =2":                    "a|>=|1|and|b|!|=2",
		"a = 'It is' AND b LIKE \"%x y%\"":    `a|=|"It is"|and|b|like|"%x y%"`,
		"a=1":                                 "a=1",
		"f(a,b), 1,2, c":                      "f|(|a|,|b|)|,|1,2|,|c",
		"t1.name, `x` -- y":                   "t1.name|,|`|x|`|--|y",
		"cannot t.":                           "can|not|t|.",
		"a..b x.y":                            "a|..|b|x.y",
		"WHERE name = 'x'AND b":               `where|name|=|__val_1__and|b`,
		"x BETWEEN 1 AND 2 ORDER BY y  DESC ": "x|between|1|and|2|order|by|y|desc",
	} {
		tokens, err := tokenize(query)
		if have := strings.Join(tokens, "|"); err != nil || have != want {
			t.Errorf("%s: %s %v, want %s", query, have, err, want)
		}
	}
	if _, err := tokenize("a = 'it's'"); err == nil {
		t.Error("three quotes were read")
	}
}

// TestCompare has pairs that are the same but for one thing, and the quirk that
// overlooks it; "" is a difference that counts.
func TestCompare(t *testing.T) {
	s := concerts()
	for _, c := range []struct {
		gold, pred string
		quirk      Quirk
	}{
		{"SELECT name FROM stadium WHERE capacity > 1", "SELECT name FROM stadium WHERE capacity > 2", ValuesDropped},
		{"SELECT name FROM stadium WHERE capacity > 1", "SELECT name FROM stadium WHERE capacity >= 1", ""},
		{"SELECT DISTINCT name FROM stadium", "SELECT name FROM stadium", DistinctDropped},
		{"SELECT count(DISTINCT name) FROM stadium", "SELECT count(name) FROM stadium", DistinctDropped},
		{"SELECT name FROM stadium LIMIT 1", "SELECT name FROM stadium LIMIT 3", LimitValueDropped},
		{"SELECT name FROM stadium LIMIT 1", "SELECT name FROM stadium", ""},
		{"SELECT name FROM stadium ORDER BY name ASC, capacity DESC", "SELECT name FROM stadium ORDER BY name, capacity DESC", "same"},
		{"SELECT name FROM stadium ORDER BY name ASC, capacity DESC", "SELECT name FROM stadium ORDER BY name DESC, capacity DESC", OneDirection},
		{"SELECT name FROM stadium ORDER BY name, capacity", "SELECT name FROM stadium ORDER BY capacity, name", ""},
		{"SELECT name, capacity FROM stadium", "SELECT capacity, name FROM stadium", "same"},
		{"SELECT max(capacity), min(capacity) FROM stadium", "SELECT min(capacity), max(capacity) FROM stadium", "same"},
		{"SELECT max(capacity) FROM stadium", "SELECT min(capacity) FROM stadium", ""},
		{
			"SELECT T1.name FROM stadium AS T1 JOIN concert AS T2 ON T1.stadium_id = T2.stadium_id",
			"SELECT T1.name FROM stadium AS T1 JOIN concert AS T2 ON T1.stadium_id = T2.concert_id", "same", // both sides are expressions; the value is dropped
		},
		{
			"SELECT T2.stadium_id FROM stadium AS T1 JOIN concert AS T2 ON T1.stadium_id = T2.stadium_id",
			"SELECT T1.stadium_id FROM stadium AS T1 JOIN concert AS T2 ON T1.stadium_id = T2.stadium_id", ForeignKeysMerged,
		},
		{
			"SELECT T1.name FROM stadium AS T1 JOIN concert AS T2 ON T1.stadium_id = T2.stadium_id",
			"SELECT T1.name FROM stadium AS T1 JOIN concert AS T2", JoinConditionsIgnored,
		},
		{"SELECT name FROM stadium", "SELECT name FROM stadium UNION SELECT name FROM stadium", ""},
		{"SELECT name FROM stadium UNION SELECT name FROM stadium", "SELECT name FROM stadium EXCEPT SELECT name FROM stadium", ""},
		{
			"SELECT name FROM stadium WHERE capacity > 1 AND name = 'a' OR name = 'b' AND name = 'c'",
			"SELECT name FROM stadium WHERE capacity > 1 OR name = 'a' OR name = 'b' AND name = 'c'", AndOrAsSet,
		},
		{"SELECT count(*) FROM stadium", "SELECT count(*) FROM concert", ""},
		{
			"SELECT name FROM stadium WHERE stadium_id IN (SELECT stadium_id FROM concert LIMIT 1)",
			"SELECT name FROM stadium WHERE stadium_id IN (SELECT stadium_id FROM concert LIMIT 2)", NestedLimitDropped,
		},
	} {
		gold, pred := parse(t, s, c.gold), parse(t, s, c.pred)
		all := TestSuite.Quirks()
		if have, want := Compare(gold, pred, s, all).Exact, c.quirk != ""; have != want {
			t.Errorf("%s\n%s\nexact is %v", c.gold, c.pred, have)
		}
		if c.quirk == "" || c.quirk == "same" {
			continue
		}
		if !slices.Contains(all, c.quirk) {
			t.Fatalf("no quirk %s", c.quirk)
		}
		if Compare(gold, pred, s, all.Without(c.quirk)).Exact {
			t.Errorf("%s\n%s\nexact without %s", c.gold, c.pred, c.quirk)
		}
	}
}

func parse(t *testing.T, s *Schema, query string) *Query {
	t.Helper()
	q, err := TestSuite.Parse(s, query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return q
}

func TestSingleTable(t *testing.T) {
	s := concerts()
	gold, pred := parse(t, s, "SELECT count(*) FROM stadium"), parse(t, s, "SELECT count(*) FROM concert")
	if !Compare(gold, pred, s, First.Quirks()).Exact || Compare(gold, pred, s, Spider.Quirks()).Exact {
		t.Error("only the first release leaves a single table unchecked")
	}
}

func TestUnreadable(t *testing.T) {
	s := concerts()
	for _, query := range []string{
		"", "SELECT", "SELECT name", "SELECT name FROM nowhere", "SELECT nothing FROM stadium", "SELECT name FROM stadium WHERE capacity=1",
		"SELECT name FROM stadium INNER JOIN concert", "SELECT name FROM stadium AS concert", "SELECT t.name FROM stadium", "SELECT a.b.c FROM stadium",
		"SELECT name FROM stadium WHERE capacity > (SELECT", "SELECT name FROM stadium WHERE name IS NOT NULL", "(((", "SELECT (((((( FROM stadium",
		"SELECT name FROM stadium AS", strings.Repeat("(SELECT name FROM ", 5000), "SELECT name FROM stadium LIMIT",
	} {
		if q, err := TestSuite.Parse(s, query); err == nil {
			t.Errorf("%.80s was read: %+v", query, q)
		}
	}
	if _, err := Spider.Parse(s, "SELECT name FROM stadium LIMIT x"); err == nil {
		t.Error("the spider script reads numbers only behind LIMIT")
	}
}

func TestHardness(t *testing.T) {
	s := concerts()
	for query, want := range map[string]Hardness{
		"SELECT name FROM stadium":                                                                              Easy,
		"SELECT name FROM stadium WHERE capacity > 1":                                                           Easy,
		"SELECT name, capacity FROM stadium WHERE capacity > 1":                                                 Medium,
		"SELECT name FROM stadium ORDER BY capacity LIMIT 1":                                                    Medium,
		"SELECT name FROM stadium WHERE capacity > (SELECT avg(capacity) FROM stadium)":                         Hard,
		"SELECT name FROM stadium UNION SELECT name FROM stadium":                                               Hard,
		"SELECT name FROM stadium WHERE capacity > 1 ORDER BY capacity LIMIT 1":                                 Hard,
		"SELECT name FROM stadium WHERE capacity > 1 GROUP BY name ORDER BY capacity LIMIT 1":                   Extra,
		"SELECT name FROM stadium WHERE capacity > 1 UNION SELECT name FROM stadium WHERE name = 'a'":           Hard,
		"SELECT name FROM stadium WHERE capacity > 1 AND name = 'a' UNION SELECT name FROM stadium":             Extra,
		"SELECT name FROM stadium WHERE name NOT LIKE 'a' AND name NOT LIKE 'b'":                                Hard,
		"SELECT T1.name FROM stadium AS T1 JOIN concert AS T2 ON T1.stadium_id = T2.stadium_id WHERE year = 1":  Medium,
		"SELECT max(capacity), min(capacity) FROM stadium GROUP BY name, capacity":                              Hard,
		"SELECT name FROM stadium GROUP BY name HAVING count(*) > 1 AND max(capacity) > 2 OR min(capacity) > 3": Medium,
	} {
		if have := parse(t, s, query).Hardness(); have != want {
			t.Errorf("%s: %s, want %s", query, have, want)
		}
	}
}

// TestForeignKeyGroups: a key joins the first group with one of its ends; the later
// key that connects two groups does not merge them.
func TestForeignKeyGroups(t *testing.T) {
	column := func(names ...string) (columns []sql.SchemaColumn) {
		for _, n := range names {
			columns = append(columns, sql.SchemaColumn{Name: n})
		}
		return columns
	}
	s := &sql.Schema{Tables: []sql.SchemaTable{{Name: "A", Columns: column("x", "y")}, {Name: "B", Columns: column("x", "y")}}}
	key := func(t1, c1, t2, c2 string) {
		s.ForeignKeys = append(s.ForeignKeys, sql.ForeignKey{Table: t1, Column: c1, RefTable: t2, RefColumn: c2})
	}
	key("B", "x", "A", "x")
	key("B", "y", "A", "y")
	key("A", "x", "A", "y")
	// The third key joins the first group, and a.y, now in both, is named by the last.
	want := map[string]string{"a.x": "a.x", "b.x": "a.x", "a.y": "a.y", "b.y": "a.y"}
	if diff := cmp.Diff(want, NewSchema(s, s).merged); diff != "" {
		t.Error(diff)
	}
}

// queries draws texts of the parser's own words, most of which it cannot read.
func queries(t *rapid.T) string {
	words := slices.Concat(clauseWords, joinWords, whereOperators, aggregates, []string{
		"(", ")", ",", ";", "and", "or", "by", "having", "desc", "distinct", "*", "-", "'x'", "1", "stadium", "concert", "name", "capacity",
		"t1", "t1.name", "concert.year", ".",
	})
	return "select " + strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 1, 25).Draw(t, "words"), " ")
}

// readable draws queries that the parser reads.
func readable(t *rapid.T) string {
	column := rapid.SampledFrom([]string{"name", "capacity", "stadium_id", "count(*)", "max(capacity)"})
	q := "SELECT " + strings.Join(rapid.SliceOfN(column, 1, 3).Draw(t, "items"), ", ") + " FROM stadium"
	where := rapid.SampledFrom([]string{"name = 'a'", "capacity > 1", "capacity NOT IN (SELECT year FROM concert)", "name LIKE 'b'"})
	for i, c := range rapid.SliceOfN(where, 0, 3).Draw(t, "where") {
		q += " " + []string{"WHERE", "AND", "OR"}[min(i, 2)] + " " + c
	}
	q += rapid.SampledFrom([]string{"", " GROUP BY name", " GROUP BY name HAVING count(*) > 1"}).Draw(t, "group")
	q += rapid.SampledFrom([]string{"", " ORDER BY name DESC", " ORDER BY name, capacity LIMIT 3"}).Draw(t, "order")
	return q + rapid.SampledFrom([]string{"", " UNION SELECT name FROM stadium", " EXCEPT SELECT name FROM stadium"}).Draw(t, "operand")
}

func TestProperties(t *testing.T) {
	s := concerts()
	rapid.Check(t, func(t *rapid.T) {
		TestSuite.Parse(s, queries(t)) // must not panic
		a, errA := Spider.Parse(s, readable(t))
		b, errB := Spider.Parse(s, readable(t))
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if !Compare(a, a, s, nil).Exact {
			t.Fatal("a query does not match itself")
		}
		strict, official := Compare(a, b, s, nil), Compare(a, b, s, Spider.Quirks())
		if strict.Exact && !official.Exact {
			t.Fatal("overlooking something makes a match none")
		}
		if back := Compare(b, a, s, Spider.Quirks()); back.Exact != official.Exact {
			t.Fatal("exact match is not symmetric")
		}
	})
}

func FuzzParse(f *testing.F) {
	s := concerts()
	for _, seed := range []string{"SELECT name FROM stadium", "select (((", "'", "SELECT a.b FROM x AS", "SELECT * FROM (SELECT name FROM stadium)"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		for _, script := range []Script{Spider, TestSuite} {
			if q, err := script.Parse(s, query); err == nil {
				q.Hardness()
				Compare(q, q, s, script.Quirks())
			}
		}
	})
}

func TestReport(t *testing.T) {
	r := NewReport()
	parts := make([]Part, len(PartNames))
	parts[0] = Part{true, 1, 1}
	r.Add(Easy, Score{true, parts})
	parts = slices.Clone(parts)
	parts[0], parts[2] = Part{false, 2, 1}, Part{false, 1, 0}
	r.Add(Easy, Score{false, parts})
	easy := r.Levels[Easy]
	if easy.Count != 2 || easy.Share() != 0.5 {
		t.Errorf("%+v", easy)
	}
	for i, want := range map[int]PartReport{0: {0.5, 0.5, 0.5}, 2: {0, 0, 1}, 3: {0, 0, 1}} {
		if have := easy.Part(i); have != want {
			t.Errorf("%s: %+v, want %+v", PartNames[i], have, want)
		}
	}
}
