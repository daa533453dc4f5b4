package annotate

import (
	"slices"
	"testing"

	"caper/sql"
	"caper/sqlexec"
)

// pets is the schema of the hand cases.
var pets = &sql.Schema{
	Tables: []sql.SchemaTable{
		{Name: "owner", Columns: []sql.SchemaColumn{
			{Name: "id", Type: "INTEGER", PrimaryKey: true}, {Name: "name", Type: "TEXT"}, {Name: "city", Type: "TEXT"}}},
		{Name: "pet", Columns: []sql.SchemaColumn{
			{Name: "id", Type: "INTEGER", PrimaryKey: true}, {Name: "owner_id", Type: "INTEGER"},
			{Name: "name", Type: "TEXT"}, {Name: "weight", Type: "REAL"}, {Name: "born", Type: "TEXT"}}},
	},
	ForeignKeys: []sql.ForeignKey{{Table: "pet", Column: "owner_id", RefTable: "owner", RefColumn: "id"}},
}

// petQuery binds a query to the schema of the hand cases; every text column has
// the values Ann and Bob.
func petQuery(t *testing.T, text string) *query {
	t.Helper()
	s, ok := parse(text, pets, Nested)
	if !ok {
		t.Fatalf("cannot parse %q", text)
	}
	return &query{
		statement: s, scopes: sql.Resolve(s.tree, pets), style: styleOf(text),
		run: func(string) (*sqlexec.Result, error) {
			return &sqlexec.Result{Rows: [][]sqlexec.Value{{"Ann"}, {"Bob"}}}, nil
		},
	}
}

// TestOperators gives for each operator of the table in caper.md 1.4.3 the
// mutants that it makes of a query.
func TestOperators(t *testing.T) {
	for _, c := range []struct {
		operator, query string
		want            []string
	}{
		{"select.column", "select name from owner", []string{"select city from owner"}},
		{"select.table", "SELECT T1.name FROM owner AS T1 JOIN pet AS T2 ON T1.id = T2.owner_id",
			[]string{"SELECT T2.name FROM owner AS T1 JOIN pet AS T2 ON T1.id = T2.owner_id"}},
		{"select.aggregate", "SELECT max(weight) , COUNT(name) FROM pet",
			[]string{"SELECT MIN(weight) , COUNT(name) FROM pet", "SELECT max(weight) , COUNT(DISTINCT name) FROM pet"}},
		{"select.distinct", "SELECT name FROM pet", []string{"SELECT DISTINCT name FROM pet"}},
		{"select.distinct", "SELECT DISTINCT name FROM pet", []string{"SELECT name FROM pet"}},
		{"select.arithmetic", "SELECT weight - id FROM pet", []string{"SELECT weight + id FROM pet", "SELECT id - weight FROM pet"}},
		{"select.case", "SELECT CASE WHEN id = 1 THEN name ELSE born END FROM pet",
			[]string{
				"SELECT CASE WHEN id = 1 THEN born ELSE name END FROM pet",
				"SELECT CASE WHEN id != 1 THEN name ELSE born END FROM pet",
				"SELECT CASE WHEN id = 2 THEN name ELSE born END FROM pet",
				"SELECT CASE WHEN id = 10 THEN name ELSE born END FROM pet",
				"SELECT CASE WHEN id = 0 THEN name ELSE born END FROM pet",
				"SELECT CASE WHEN id = -1 THEN name ELSE born END FROM pet",
			}},
		{"select.item", "SELECT name, born FROM pet", []string{"SELECT born FROM pet", "SELECT name FROM pet"}},
		{"from.key", "SELECT 1 FROM owner JOIN pet ON owner.id = pet.owner_id", []string{"SELECT 1 FROM owner JOIN pet ON owner.id = pet.id"}},
		{"from.join", "SELECT 1 FROM owner INNER JOIN pet ON owner.id = owner_id", []string{"SELECT 1 FROM owner LEFT JOIN pet ON owner.id = owner_id"}},
		{"from.table", "SELECT count(*) FROM pet", []string{"SELECT count(*) FROM owner"}},
		{"from.table", "SELECT T1.name FROM pet AS T1", []string{"SELECT T1.name FROM owner AS T1"}},
		{"from.table", "SELECT T1.weight FROM pet AS T1", nil},
		{"from.table", "SELECT pet.name FROM pet", nil},
		{"where.comparison", "SELECT 1 FROM pet WHERE weight<2", []string{"SELECT 1 FROM pet WHERE weight<=2", "SELECT 1 FROM pet WHERE weight>2"}},
		{"where.comparison", "select 1 from pet where name like 'A%' and born is not null",
			[]string{"select 1 from pet where name not like 'A%' and born is not null", "select 1 from pet where name like 'A%' and born is null"}},
		{"where.comparison", "SELECT 1 FROM pet WHERE id IN (1, 2)", []string{"SELECT 1 FROM pet WHERE id NOT IN (1, 2)"}},
		{"where.bound", "SELECT 1 FROM pet WHERE weight BETWEEN 2 AND 10",
			[]string{
				"SELECT 1 FROM pet WHERE weight BETWEEN 3 AND 10", "SELECT 1 FROM pet WHERE weight BETWEEN 20 AND 10", "SELECT 1 FROM pet WHERE weight BETWEEN 1 AND 10",
				"SELECT 1 FROM pet WHERE weight BETWEEN 2 AND 11", "SELECT 1 FROM pet WHERE weight BETWEEN 2 AND 100", "SELECT 1 FROM pet WHERE weight BETWEEN 2 AND 9",
			}},
		{"where.connective", "SELECT 1 FROM pet WHERE (id = 1 OR id = 2) AND weight > 3",
			[]string{"SELECT 1 FROM pet WHERE id = 1 OR id = 2 OR weight > 3", "SELECT 1 FROM pet WHERE id = 1 AND id = 2 AND weight > 3"}},
		{"where.literal", `SELECT 1 FROM pet WHERE name = "Zoe"`, []string{`SELECT 1 FROM pet WHERE name = "Ann"`, `SELECT 1 FROM pet WHERE name = "Bob"`}},
		{"where.literal", "SELECT 1 FROM pet WHERE name LIKE '%Zoe%'", []string{"SELECT 1 FROM pet WHERE name LIKE '%Ann%'", "SELECT 1 FROM pet WHERE name LIKE '%Bob%'"}},
		{"where.literal", "SELECT 1 FROM pet WHERE '2020-02-28' < born",
			[]string{
				"SELECT 1 FROM pet WHERE '2020-02-29' < born", "SELECT 1 FROM pet WHERE '2020-02-27' < born",
				"SELECT 1 FROM pet WHERE '2020-03-28' < born", "SELECT 1 FROM pet WHERE '2021-02-28' < born",
				"SELECT 1 FROM pet WHERE 'Ann' < born", "SELECT 1 FROM pet WHERE 'Bob' < born",
			}},
		{"where.column", "SELECT 1 FROM owner WHERE name = 'x'", []string{"SELECT 1 FROM owner WHERE city = 'x'"}},
		{"where.conjunct", "SELECT 1 FROM pet WHERE id = 1 AND (weight > 2)", []string{"SELECT 1 FROM pet WHERE (weight > 2)", "SELECT 1 FROM pet WHERE id = 1"}},
		{"where.clause", "SELECT 1 FROM pet WHERE id = 1 ORDER BY id;", []string{"SELECT 1 FROM pet ORDER BY id;"}},
		{"where.clause", "SELECT 1 FROM pet WHERE id = 1;", []string{"SELECT 1 FROM pet"}},
		{"where.clause", "SELECT 1 FROM (SELECT 2 FROM pet WHERE id = 1 ) AS p", []string{"SELECT 1 FROM (SELECT 2 FROM pet ) AS p"}},
		{"group_by.key", "SELECT 1 FROM owner GROUP BY name", []string{"SELECT 1 FROM owner GROUP BY city"}},
		{"group_by.drop", "SELECT 1 FROM owner GROUP BY name, city", []string{"SELECT 1 FROM owner GROUP BY city", "SELECT 1 FROM owner GROUP BY name"}},
		{"having.comparison", "SELECT 1 FROM pet GROUP BY id HAVING count(*) >= 2",
			[]string{"SELECT 1 FROM pet GROUP BY id HAVING count(*) > 2", "SELECT 1 FROM pet GROUP BY id HAVING count(*) <= 2"}},
		{"order_by.direction", "SELECT 1 FROM pet ORDER BY id, name DESC", []string{"SELECT 1 FROM pet ORDER BY id DESC, name DESC", "SELECT 1 FROM pet ORDER BY id, name"}},
		{"order_by.key", "SELECT 1 FROM owner ORDER BY name ASC", []string{"SELECT 1 FROM owner ORDER BY city ASC"}},
		{"limit.count", "SELECT 1 FROM pet LIMIT 1", []string{"SELECT 1 FROM pet LIMIT 2", "SELECT 1 FROM pet LIMIT 3"}},
		{"limit.count", "SELECT 1 FROM pet LIMIT 5", []string{"SELECT 1 FROM pet LIMIT 6", "SELECT 1 FROM pet LIMIT 4"}},
		{"select.added_item", "SELECT count(*), id, name, city FROM owner", nil},
		{"select.added_item", "SELECT T1.id, name FROM owner AS T1 GROUP BY T1.id",
			[]string{"SELECT T1.id, name, city FROM owner AS T1 GROUP BY T1.id", "SELECT T1.id, name, COUNT(*) FROM owner AS T1 GROUP BY T1.id"}},
		{"where.added", "SELECT T1.weight FROM pet AS T1 GROUP BY T1.name",
			[]string{
				"SELECT T1.weight FROM pet AS T1 WHERE T1.name = 'Bob' GROUP BY T1.name",
				"SELECT T1.weight FROM pet AS T1 WHERE T1.born = 'Bob' GROUP BY T1.name",
			}},
		{"where.added", "select 1 from owner join pet on owner.id = owner_id;",
			[]string{
				"select 1 from owner join pet on owner.id = owner_id where owner.name = 'Bob';",
				"select 1 from owner join pet on owner.id = owner_id where city = 'Bob';",
				"select 1 from owner join pet on owner.id = owner_id where pet.name = 'Bob';",
				"select 1 from owner join pet on owner.id = owner_id where born = 'Bob';",
			}},
		{"where.added", `SELECT name FROM owner WHERE "x" = id EXCEPT SELECT name FROM pet`, nil},
		{"where.added", "SELECT city FROM owner\nUNION SELECT name FROM pet",
			[]string{"SELECT city FROM owner\nWHERE name = 'Bob'\nUNION SELECT name FROM pet", "SELECT city FROM owner\nWHERE city = 'Bob'\nUNION SELECT name FROM pet"}},
		{"where.added_conjunct", "SELECT 1 FROM owner WHERE id = 1 OR id = 2", nil},
		{"where.added_conjunct", `SELECT 1 FROM owner WHERE (name = "Zoe")`,
			[]string{`SELECT 1 FROM owner WHERE (name = "Zoe") AND name = "Bob"`, `SELECT 1 FROM owner WHERE (name = "Zoe") AND city = "Bob"`}},
		{"where.added_conjunct", "SELECT 1 FROM owner WHERE id = 1 AND (id = 2 OR id = 3)",
			[]string{"SELECT 1 FROM owner WHERE id = 1 AND (id = 2 OR id = 3) AND name = 'Bob'", "SELECT 1 FROM owner WHERE id = 1 AND (id = 2 OR id = 3) AND city = 'Bob'"}},
		{"group_by.added", "SELECT count(*) FROM owner\n  WHERE id = 1",
			[]string{
				"SELECT count(*) FROM owner\n  WHERE id = 1\n  GROUP BY id", "SELECT count(*) FROM owner\n  WHERE id = 1\n  GROUP BY name",
				"SELECT count(*) FROM owner\n  WHERE id = 1\n  GROUP BY city",
			}},
		{"having.added", "SELECT 1 FROM pet", nil},
		{"order_by.added", "SELECT id FROM owner LIMIT 1",
			[]string{
				"SELECT id FROM owner ORDER BY id LIMIT 1", "SELECT id FROM owner ORDER BY id DESC LIMIT 1",
				"SELECT id FROM owner ORDER BY name LIMIT 1", "SELECT id FROM owner ORDER BY name DESC LIMIT 1",
				"SELECT id FROM owner ORDER BY city LIMIT 1", "SELECT id FROM owner ORDER BY city DESC LIMIT 1",
			}},
		{"limit.added", "SELECT id FROM pet WHERE (weight > 2) ; ",
			[]string{
				"SELECT id FROM pet WHERE (weight > 2) LIMIT 1 ; ", "SELECT id FROM pet WHERE (weight > 2) LIMIT 3 ; ",
				"SELECT id FROM pet WHERE (weight > 2) LIMIT 5 ; ", "SELECT id FROM pet WHERE (weight > 2) LIMIT 10 ; ",
			}},
		{"limit.added", "select 1 from pet union select 2 from pet where id in (select id from owner limit 1)",
			[]string{
				"select 1 from pet union select 2 from pet where id in (select id from owner limit 1) limit 1",
				"select 1 from pet union select 2 from pet where id in (select id from owner limit 1) limit 3",
				"select 1 from pet union select 2 from pet where id in (select id from owner limit 1) limit 5",
				"select 1 from pet union select 2 from pet where id in (select id from owner limit 1) limit 10",
			}},
		{"setop.added", "SELECT id FROM owner WHERE name = 'Zoe'",
			[]string{
				"SELECT id FROM owner WHERE name = 'Zoe' EXCEPT SELECT id FROM owner WHERE name = 'Bob'",
				"SELECT id FROM owner WHERE name = 'Zoe' INTERSECT SELECT id FROM owner WHERE name = 'Bob'",
				"SELECT id FROM owner WHERE name = 'Zoe' UNION SELECT id FROM owner WHERE name = 'Bob'",
				"SELECT id FROM owner WHERE name = 'Zoe' EXCEPT SELECT id FROM owner WHERE city = 'Bob'",
				"SELECT id FROM owner WHERE name = 'Zoe' INTERSECT SELECT id FROM owner WHERE city = 'Bob'",
				"SELECT id FROM owner WHERE name = 'Zoe' UNION SELECT id FROM owner WHERE city = 'Bob'",
			}},
		{"setop.operator", "SELECT id FROM pet EXCEPT SELECT id FROM owner", []string{"SELECT id FROM pet INTERSECT SELECT id FROM owner"}},
		{"setop.operator", "SELECT id FROM pet union SELECT id FROM owner", []string{"SELECT id FROM pet union ALL SELECT id FROM owner"}},
	} {
		q := petQuery(t, c.query)
		var got []string
		for _, m := range q.mutations() {
			if m.operator != c.operator {
				continue
			}
			mutant, f, ok := q.mutate(m, Nested)
			if !ok {
				t.Errorf("%s of %s cannot be written", c.operator, c.query)
				continue
			}
			if f.root == nil || f.root.Start > f.root.End || f.root.End > len(mutant.text) {
				t.Errorf("%s of %s: root %+v lies outside the mutant", c.operator, c.query, f.root)
			}
			got = append(got, mutant.text)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s of %s\n gives %q\n want  %q", c.operator, c.query, got, c.want)
		}
	}
}
