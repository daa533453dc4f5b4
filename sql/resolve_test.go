package sql

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestResolveNames lists, for each query, what its columns mean in the order of
// the text: instance.column, "^" for each block further out, "=" for an output,
// quotes for a string, "?" for nothing, "!" for ambiguous, "|" for coalesced.
func TestResolveNames(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"SELECT name, T.age FROM singer AS T", "singer.Name singer.Age"},
		{"SELECT singer.name FROM singer AS T", "?"},
		{"SELECT name FROM singer, stadium", "singer.Name!"},
		{"SELECT capacity FROM singer, stadium", "stadium.Capacity"},
		{"SELECT a.name, b.name FROM singer a, singer b", "singer.Name singer#2.Name"},
		{"SELECT stadium_id FROM stadium NATURAL JOIN concert", "stadium.Stadium_ID"},
		{"SELECT stadium_id FROM stadium JOIN concert USING (stadium_id)", "stadium.Stadium_ID"},
		{"SELECT name FROM singer WHERE age > (SELECT avg(age) FROM singer)", "singer.Name singer.Age singer.Age"},
		{"SELECT name FROM singer AS s WHERE EXISTS (SELECT 1 FROM concert WHERE year = age AND s.name = 'x')", "singer.Name concert.Year ^singer.Age ^singer.Name"},
		{"SELECT 1 FROM singer WHERE age IN (SELECT capacity FROM stadium WHERE name = 'x')", "singer.Age stadium.Capacity stadium.Name"},
		{"SELECT n FROM (SELECT name AS n FROM singer) AS d WHERE d.n = 'x'", "derived.n singer.Name derived.n"},
		{"SELECT name FROM (SELECT * FROM singer)", "derived.Name"},
		{"SELECT 1 FROM singer WHERE EXISTS (SELECT 1 FROM (SELECT age AS a) AS d WHERE d.a = 1)", "^singer.Age derived.a"},
		{"WITH x(a, b) AS (SELECT name, age FROM singer) SELECT a, y.b FROM x AS y", "singer.Name singer.Age cte1.a cte1.b"},
		{"WITH RECURSIVE n(i) AS (VALUES (1) UNION SELECT i + 1 FROM n) SELECT i FROM n", "cte1.i cte1.i"},
		{"WITH RECURSIVE n AS (SELECT 1 AS i UNION SELECT i + 1 FROM n) SELECT i FROM n", "cte1.i cte1.i"},
		{"WITH a AS (SELECT p FROM b), b AS (SELECT age AS p FROM singer) SELECT p FROM a", "cte2.p singer.Age cte1.p"},
		{"WITH x AS (SELECT (SELECT b FROM x) AS b) SELECT b FROM x", "cte1. cte1.b"},
		{"SELECT column2 FROM (VALUES (1, 2))", "derived.column2"},
		{"SELECT g.age, year FROM (singer, concert) AS g", "derived.Age derived.Year"},
		{"SELECT age FROM concert JOIN (singer JOIN stadium ON singer.name = stadium.name) ON age = capacity",
			"singer.Age singer.Name stadium.Name singer.Age stadium.Capacity"},
		{"SELECT stadium_id, concert.stadium_id FROM stadium RIGHT JOIN concert USING (stadium_id)", "concert.Stadium_ID concert.Stadium_ID"},
		{"SELECT stadium_id FROM stadium FULL JOIN concert USING (stadium_id)", "stadium.Stadium_ID|"},
		{"SELECT year, name, d.Stadium_ID FROM (SELECT * FROM stadium NATURAL JOIN concert) AS d", "derived.Year derived.Name derived.Stadium_ID"},
		{"SELECT y.Stadium_ID FROM (SELECT concert.* FROM stadium NATURAL JOIN concert) AS y", "derived.Stadium_ID"},
		{"SELECT value, j.key, json FROM json_each('[1]') AS j", "json_each.value json_each.key json_each.json"},
		{"SELECT name AS n FROM singer JOIN concert ON n = year", "singer.Name =name concert.Year"},
		{"SELECT name FROM singer WHERE EXISTS (SELECT 1 FROM concert WHERE rowid = 1)", "singer.Name concert."},
		{"SELECT main.singer.name, temp.singer.name FROM singer", "singer.Name ?"},
		{"WITH x AS (SELECT 1 AS a) SELECT a FROM (WITH y AS (SELECT 2 AS a) SELECT a FROM y)", "derived.a cte2.a"},
		{"SELECT age AS a FROM singer AS s WHERE EXISTS (SELECT 1 FROM concert WHERE a > 1)", "singer.Age ^=age"},
		// aliases
		{"SELECT age AS a FROM singer ORDER BY a", "singer.Age =age"},
		{"SELECT -age AS age FROM singer ORDER BY age, age + 1", "singer.Age =-age singer.Age"},
		{"SELECT -age AS age FROM singer WHERE age > 1 GROUP BY age", "singer.Age singer.Age singer.Age"},
		{"SELECT age AS a FROM singer WHERE a > 1 GROUP BY a HAVING a < 3", "singer.Age =age =age =age"},
		{"SELECT age AS a, a + 1 FROM singer", "singer.Age ?"},
		{"SELECT name AS x FROM singer UNION SELECT name FROM stadium ORDER BY x, name", "singer.Name stadium.Name =name =name"},
		{"SELECT * FROM singer UNION SELECT * FROM stadium ORDER BY age", "singer.Age"},
		{"SELECT sum(age) OVER (ORDER BY a), age AS a FROM singer", "singer.Age ? singer.Age"},
		// double quotes
		{`SELECT "name", "Airline" FROM singer WHERE "nobody" = name`, `singer.Name "Airline" "nobody" singer.Name`},
		{"SELECT `nobody`, [nobody], singer.\"nobody\" FROM singer", "? ? singer."},
		{`SELECT name AS "n" FROM singer ORDER BY "n"`, "singer.Name =name"},
		// unknown
		{"SELECT x, T.y FROM unknown AS T", "unknown. unknown."},
		{"SELECT x FROM unknown, other", "?"},
		{"SELECT age FROM unknown, singer", "singer.Age"},
		{"SELECT age FROM singer WHERE EXISTS (SELECT 1 FROM unknown WHERE age = x)", "singer.Age ^singer.Age unknown."},
		{"SELECT rowid FROM singer", "singer."},
		{"SELECT x FROM singer", "?"},
		{"SELECT x", "?"},
	} {
		n := mustParse(t, c.text)
		scopes := Resolve(n, concerts)
		var columns []*Node
		Walk(n, func(n *Node) bool {
			if n.Kind == Column {
				columns = append(columns, n)
			}
			return true
		})
		slices.SortStableFunc(columns, func(a, b *Node) int { return a.Start - b.Start })
		var got []string
		for _, column := range columns {
			got = append(got, meaning(column, scopes.Binding(column)))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s\n\tgot  %s\n\twant %s", c.text, strings.Join(got, " "), c.want)
		}
		Canonical(n, concerts) // must end, also on circular definitions
	}
}

func meaning(n *Node, b Binding) string {
	switch b.Meaning {
	case MeansString:
		return fmt.Sprintf("%q", n.Value)
	case MeansOutput:
		return strings.Repeat("^", b.Level) + "=" + Render(b.Expr)
	case MeansNothing:
		return "?"
	}
	name := strings.Repeat("^", b.Level) + b.Source.Instance + "."
	if b.Column >= 0 {
		name += b.Source.ColumnName(b.Column)
	}
	if b.Ambiguous {
		name += "!"
	}
	if b.Coalesced {
		name += "|"
	}
	return name
}

func TestAffinity(t *testing.T) {
	for expr, want := range map[string]Affinity{
		"age": AffinityInteger, "singer.country": AffinityText, "capacity": AffinityReal, "year": AffinityNumeric,
		"'x'": AffinityText, `"nobody"`: AffinityText, "1": AffinityInteger, "1.5": AffinityReal, "0xe": AffinityInteger,
		"x'00'": AffinityBlob, "NULL": AffinityNone, "count(*)": AffinityInteger, "avg(age)": AffinityNumeric,
		"max(country)": AffinityText, "age + 1": AffinityNumeric, "age || 1": AffinityText, "age > 1": AffinityInteger,
		"CAST(age AS text)": AffinityText, "(SELECT year FROM concert)": AffinityNumeric, "(SELECT n FROM d)": AffinityReal,
		"country COLLATE nocase": AffinityText, "group_concat(age)": AffinityText, "lower(country)": AffinityNone,
	} {
		n := mustParse(t, "WITH d AS (SELECT capacity AS n FROM stadium) SELECT "+expr+" FROM singer, stadium, concert")
		scopes := Resolve(n, concerts)
		if got := scopes.Affinity(n.Child(Projection).Children[0].Children[0]); got != want {
			t.Errorf("%s has affinity %q, want %q", expr, got, want)
		}
	}
	for declared, want := range map[string]Affinity{
		"BIGINT": AffinityInteger, "varchar(20)": AffinityText, "CLOB": AffinityText, "": AffinityBlob, "blob": AffinityBlob,
		"double precision": AffinityReal, "float": AffinityReal, "DATE": AffinityNumeric, "bool": AffinityNumeric,
		"FLOATING POINT": AffinityInteger, // SQLite's own surprise: it holds INT
	} {
		if got := TypeAffinity(declared); got != want {
			t.Errorf("type %q has affinity %q, want %q", declared, got, want)
		}
	}
}

func TestDependencies(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"SELECT name FROM singer", "name>singer"},
		{"SELECT T1.name, T2.year FROM singer AS T1 JOIN concert T2", "T1.name>singer AS T1, T2.year>concert T2"},
		{"SELECT country, count(*) AS n FROM singer GROUP BY country HAVING count(*) > 2 ORDER BY n",
			"country>singer, country>singer, count(*)>count(*), n>count(*)"},
		{"SELECT name FROM singer GROUP BY country HAVING country = 'x' ORDER BY count(*), country",
			"name>singer, country>singer, country>singer, country>country, country>singer, country>country"},
		{"SELECT d.n FROM (SELECT name AS n FROM singer) AS d", "d.n>(SELECT name AS n FROM singer) AS d, name>singer"},
		{"SELECT name FROM singer ORDER BY 1", "name>singer, 1>name"},
		{"SELECT 1 FROM singer HAVING 1 = 1", ""},
	} {
		n := mustParse(t, c.text)
		var got []string
		for _, d := range Dependencies(n, Resolve(n, concerts)) {
			got = append(got, d.From.Text(c.text)+">"+d.To.Text(c.text))
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s\n\tgot  %s\n\twant %s", c.text, strings.Join(got, ", "), c.want)
		}
	}
}
