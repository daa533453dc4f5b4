package annotate

import (
	"slices"
	"testing"

	"caper/annotate/style"
	"caper/sql"
)

// pets is the schema of the hand cases.
var pets = &sql.Schema{
	Tables: []sql.SchemaTable{
		{Name: "owner", Columns: []sql.SchemaColumn{
			{Name: "id", Type: "INTEGER", PrimaryKey: true}, {Name: "name", Type: "TEXT"}, {Name: "city", Type: "TEXT"}}},
		{Name: "pet", Columns: []sql.SchemaColumn{
			{Name: "id", Type: "INTEGER", PrimaryKey: true}, {Name: "owner_id", Type: "INTEGER"},
			{Name: "name", Type: "TEXT"}, {Name: "weight", Type: "REAL"}, {Name: "born", Type: "TEXT"}}},
		{Name: "clinic", Columns: []sql.SchemaColumn{{Name: "id", Type: "INTEGER"}, {Name: "title", Type: "TEXT"}, {Name: "day", Type: "DATE"}}},
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
		statement: s, scopes: sql.Resolve(s.tree, pets), style: style.Of(text), patchers: make(map[*sql.Node]*style.Patcher),
		values: func(*sql.SchemaTable, string) []string { return []string{"Ann", "Bob"} },
	}
}

// mutations lists all mutations of a query.
func (q *query) mutations() []mutation {
	var all []mutation
	own, foreigners := q.strata()
	for _, s := range slices.Concat(own, foreigners) {
		for _, w := range s.operators {
			all = append(all, w.list(q)...)
		}
	}
	return all
}

// TestOperators gives for each operator of the table in caper.md 1.4.3 the
// mutants that it makes of a query.
func TestOperators(t *testing.T) {
	shown := make(map[string]bool)
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
		{"select.count", "SELECT count(*) FROM owner", []string{"SELECT count(id) FROM owner", "SELECT count(name) FROM owner", "SELECT count(city) FROM owner"}},
		{"select.count", "select count(o.name) from owner o", []string{"select count(*) from owner o"}},
		{"select.filter", "SELECT count(*) FILTER (WHERE id > 1) FROM pet", []string{"SELECT count(*) FROM pet"}},
		{"select.filter", "SELECT count(*) FROM owner", []string{"SELECT count(*) FILTER (WHERE name = 'Bob') FROM owner", "SELECT count(*) FILTER (WHERE city = 'Bob') FROM owner"}},
		{"select.window", "select max(id) from owner", []string{
			"select max(id) over () from owner", "select max(id) over (partition by id) from owner",
			"select max(id) over (partition by name) from owner", "select max(id) over (partition by city) from owner",
		}},
		{"select.window", "SELECT max(id) FROM owner GROUP BY city", nil},
		{"select.literal", "SELECT weight * 100, round(weight, 1) FROM pet",
			[]string{
				"SELECT weight * 101, round(weight, 1) FROM pet", "SELECT weight * 1000, round(weight, 1) FROM pet", "SELECT weight * 99, round(weight, 1) FROM pet",
				"SELECT weight * 100, round(weight, 2) FROM pet", "SELECT weight * 100, round(weight, 10) FROM pet", "SELECT weight * 100, round(weight, 0) FROM pet",
			}},
		{"select.comparison", "SELECT CASE WHEN id = 1 THEN name ELSE born END FROM pet", []string{"SELECT CASE WHEN id != 1 THEN name ELSE born END FROM pet"}},
		{"select.case", "SELECT CASE WHEN id = 1 THEN 'a' WHEN id = 2 THEN 'b' ELSE 'c' END FROM pet",
			[]string{
				"SELECT CASE WHEN id = 1 THEN 'b' WHEN id = 2 THEN 'a' ELSE 'c' END FROM pet", "SELECT CASE WHEN id = 1 THEN 'a' WHEN id = 2 THEN 'c' ELSE 'b' END FROM pet",
				"SELECT CASE WHEN id = 2 THEN 'b' ELSE 'c' END FROM pet", "SELECT CASE WHEN id = 1 THEN 'a' ELSE 'c' END FROM pet",
			}},
		{"select.case", "SELECT IIF(id = 1, name, born) FROM pet", []string{"SELECT IIF(id = 1, born, name) FROM pet"}},
		{"select.arithmetic", "SELECT name || born FROM pet", []string{"SELECT born || name FROM pet"}},
		{"select.cast", "SELECT CAST(weight AS REAL) / 2 FROM pet", []string{"SELECT CAST(weight AS INTEGER) / 2 FROM pet", "SELECT weight / 2 FROM pet"}},
		{"select.function", "SELECT UPPER(name), SUBSTR(born, 1, 4) FROM pet",
			[]string{"SELECT LOWER(name), SUBSTR(born, 1, 4) FROM pet", "SELECT name, SUBSTR(born, 1, 4) FROM pet", "SELECT UPPER(name), born FROM pet"}},
		{"select.function", "SELECT name FROM owner", []string{"SELECT UPPER(name) FROM owner", "SELECT LOWER(name) FROM owner"}},
		{"select.function", "SELECT day FROM clinic", []string{"SELECT STRFTIME('%Y', day) FROM clinic"}},
		{"select.cast", "SELECT id / 2 FROM pet", []string{"SELECT CAST(id AS REAL) / 2 FROM pet"}},
		{"order_by.expression", "SELECT 1 FROM pet ORDER BY weight", []string{"SELECT 1 FROM pet ORDER BY CAST(weight AS TEXT)"}},
		{"select.function", "SELECT rank() OVER (ORDER BY weight) FROM pet",
			[]string{"SELECT row_number() OVER (ORDER BY weight) FROM pet", "SELECT dense_rank() OVER (ORDER BY weight) FROM pet"}},
		{"select.function", "SELECT strftime('%Y', born) FROM pet", []string{"SELECT strftime('%m', born) FROM pet", "SELECT strftime('%d', born) FROM pet"}},
		{"select.function", "SELECT date(born, '-3 months') FROM pet",
			[]string{
				"SELECT datetime(born, '-3 months') FROM pet", "SELECT date(born, '-3 days') FROM pet", "SELECT date(born, '-3 years') FROM pet", "SELECT date(born, '-4 months') FROM pet", "SELECT date(born, '+3 months') FROM pet",
			}},
		{"select.window", "SELECT sum(weight) OVER (PARTITION BY name, born ORDER BY id ROWS 1 PRECEDING) FROM pet",
			[]string{
				"SELECT sum(weight) OVER (ORDER BY id ROWS 1 PRECEDING) FROM pet",
				"SELECT sum(weight) OVER (PARTITION BY born ORDER BY id ROWS 1 PRECEDING) FROM pet",
				"SELECT sum(weight) OVER (PARTITION BY name ORDER BY id ROWS 1 PRECEDING) FROM pet",
				"SELECT sum(weight) OVER (PARTITION BY name, born ROWS 1 PRECEDING) FROM pet",
				"SELECT sum(weight) OVER (PARTITION BY name, born ORDER BY id DESC ROWS 1 PRECEDING) FROM pet",
				"SELECT sum(weight) OVER (PARTITION BY name, born ORDER BY id) FROM pet",
				"SELECT sum(weight) OVER (PARTITION BY name, born ORDER BY id RANGE 1 PRECEDING) FROM pet",
				"SELECT sum(weight) OVER (PARTITION BY name, born ORDER BY id ROWS 2 PRECEDING) FROM pet",
			}},
		{"window.definition", "SELECT sum(weight) OVER w FROM pet WINDOW w AS (PARTITION BY name)", []string{"SELECT sum(weight) OVER w FROM pet WINDOW w AS ()"}},
		{"select.item", "SELECT name, born FROM pet", []string{"SELECT born FROM pet", "SELECT name FROM pet"}},
		{"from.key", "SELECT 1 FROM owner JOIN pet ON owner.id = pet.owner_id", []string{"SELECT 1 FROM owner JOIN pet ON owner.id = pet.id"}},
		{"from.join", "SELECT 1 FROM owner INNER JOIN pet ON owner.id = owner_id", []string{"SELECT 1 FROM owner LEFT JOIN pet ON owner.id = owner_id"}},
		{"from.other_table", "SELECT id FROM owner", []string{"SELECT id FROM clinic"}},
		{"from.dropped_join", "SELECT count(*) FROM owner AS T1 JOIN pet AS T2 ON T1.id = T2.owner_id WHERE T1.id > 1", []string{"SELECT count(*) FROM owner AS T1 WHERE T1.id > 1"}},
		{"from.dropped_join", "SELECT T2.name FROM owner AS T1 JOIN pet AS T2 ON T1.id = T2.owner_id", nil},
		{"from.added_join", "SELECT count(*) FROM owner AS o", []string{"SELECT count(*) FROM owner AS o JOIN pet AS t1 ON o.id = t1.owner_id"}},
		{"from.added_join", "select max(weight) from pet where weight > 2", []string{"select max(weight) from pet join owner on pet.owner_id = owner.id where weight > 2"}},
		{"from.added_join", "SELECT name FROM pet", nil},
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
		{"where.literal", "SELECT 1 FROM pet WHERE substr(born, 6, 2) = '09'",
			[]string{
				"SELECT 1 FROM pet WHERE substr(born, 7, 2) = '09'", "SELECT 1 FROM pet WHERE substr(born, 60, 2) = '09'", "SELECT 1 FROM pet WHERE substr(born, 5, 2) = '09'",
				"SELECT 1 FROM pet WHERE substr(born, 6, 3) = '09'", "SELECT 1 FROM pet WHERE substr(born, 6, 20) = '09'", "SELECT 1 FROM pet WHERE substr(born, 6, 1) = '09'",
				"SELECT 1 FROM pet WHERE substr(born, 6, 2) = '10'", "SELECT 1 FROM pet WHERE substr(born, 6, 2) = '08'",
			}},
		{"where.pattern", `SELECT 1 FROM pet WHERE name LIKE "%Zoe%"`,
			[]string{`SELECT 1 FROM pet WHERE name LIKE "Zoe"`, `SELECT 1 FROM pet WHERE name LIKE "Zoe%"`, `SELECT 1 FROM pet WHERE name LIKE "%Zoe"`}},
		{"where.list", "SELECT 1 FROM pet WHERE id IN (1, 2)", []string{"SELECT 1 FROM pet WHERE id IN (2)", "SELECT 1 FROM pet WHERE id IN (1)"}},
		{"where.added_list_item", "SELECT 1 FROM pet WHERE name IN ('Zoe', 'Ann')", []string{"SELECT 1 FROM pet WHERE name IN ('Zoe', 'Ann', 'Bob')"}},
		{"where.comparison", "SELECT 1 FROM pet WHERE id IS 1 AND NOT EXISTS (SELECT 1)",
			[]string{"SELECT 1 FROM pet WHERE id IS NOT 1 AND NOT EXISTS (SELECT 1)", "SELECT 1 FROM pet WHERE id IS 1 AND EXISTS (SELECT 1)"}},
		{"where.expression", "SELECT 1 FROM pet WHERE weight / id > 2", []string{"SELECT 1 FROM pet WHERE weight * id > 2", "SELECT 1 FROM pet WHERE id / weight > 2", "SELECT 1 FROM pet WHERE CAST(weight AS REAL) / id > 2"}},
		{"where.expression", "select 1 from pet where cast(weight as int) = 1", []string{"select 1 from pet where cast(weight as real) = 1", "select 1 from pet where weight = 1"}},
		{"where.function", "SELECT 1 FROM pet WHERE lower(name) = 'ann'", []string{"SELECT 1 FROM pet WHERE upper(name) = 'ann'", "SELECT 1 FROM pet WHERE name = 'ann'"}},
		{"where.function", "SELECT 1 FROM pet WHERE strftime('%m', born) = '09'",
			[]string{"SELECT 1 FROM pet WHERE strftime('%d', born) = '09'", "SELECT 1 FROM pet WHERE strftime('%Y', born) = '09'"}},
		{"where.correlation", "SELECT 1 FROM owner AS o WHERE EXISTS (SELECT 1 FROM pet WHERE owner_id = o.id AND weight > 3)",
			[]string{"SELECT 1 FROM owner AS o WHERE EXISTS (SELECT 1 FROM pet WHERE weight > 3)"}},
		{"where.correlation", "SELECT 1 FROM owner AS o WHERE EXISTS (SELECT 1 FROM pet WHERE owner_id = o.id)",
			[]string{"SELECT 1 FROM owner AS o WHERE EXISTS (SELECT 1 FROM pet)"}},
		{"where.conjunct", "SELECT 1 FROM owner AS o WHERE EXISTS (SELECT 1 FROM pet WHERE owner_id = o.id AND weight > 3)",
			[]string{"SELECT 1 FROM owner AS o WHERE EXISTS (SELECT 1 FROM pet WHERE owner_id = o.id)"}},
		{"where.comparison", "WITH p AS (SELECT id FROM pet WHERE weight = 3) SELECT count(*) FROM p",
			[]string{"WITH p AS (SELECT id FROM pet WHERE weight != 3) SELECT count(*) FROM p"}},
		{"where.column", "SELECT 1 FROM owner WHERE name = 'x'", []string{"SELECT 1 FROM owner WHERE city = 'x'"}},
		{"where.conjunct", "SELECT 1 FROM pet WHERE id = 1 AND (weight > 2)", []string{"SELECT 1 FROM pet WHERE (weight > 2)", "SELECT 1 FROM pet WHERE id = 1"}},
		{"where.clause", "SELECT 1 FROM pet WHERE id = 1 ORDER BY id;", []string{"SELECT 1 FROM pet ORDER BY id;"}},
		{"where.clause", "SELECT 1 FROM pet WHERE id = 1;", []string{"SELECT 1 FROM pet"}},
		{"where.clause", "SELECT 1 FROM (SELECT 2 FROM pet WHERE id = 1 ) AS p", []string{"SELECT 1 FROM (SELECT 2 FROM pet ) AS p"}},
		{"group_by.key", "SELECT 1 FROM owner GROUP BY name", []string{"SELECT 1 FROM owner GROUP BY city"}},
		{"group_by.drop", "SELECT 1 FROM owner GROUP BY name, city", []string{"SELECT 1 FROM owner GROUP BY city", "SELECT 1 FROM owner GROUP BY name"}},
		{"group_by.added_key", "SELECT 1 FROM owner GROUP BY name", []string{"SELECT 1 FROM owner GROUP BY name, id", "SELECT 1 FROM owner GROUP BY name, city"}},
		{"group_by.clause", "SELECT 1 FROM pet GROUP BY id ORDER BY 1", []string{"SELECT 1 FROM pet ORDER BY 1"}},
		{"having.literal", "SELECT 1 FROM pet GROUP BY id HAVING count(*) BETWEEN 1 AND id",
			[]string{"SELECT 1 FROM pet GROUP BY id HAVING count(*) BETWEEN 2 AND id", "SELECT 1 FROM pet GROUP BY id HAVING count(*) BETWEEN 10 AND id", "SELECT 1 FROM pet GROUP BY id HAVING count(*) BETWEEN 0 AND id"}},
		{"having.condition", "SELECT 1 FROM pet GROUP BY id HAVING max(id) AND min(id)",
			[]string{"SELECT 1 FROM pet GROUP BY id HAVING max(id) OR min(id)", "SELECT 1 FROM pet GROUP BY id HAVING min(id)", "SELECT 1 FROM pet GROUP BY id HAVING max(id)"}},
		{"having.literal", "SELECT 1 FROM pet GROUP BY id HAVING count(*) > 0", []string{"SELECT 1 FROM pet GROUP BY id HAVING count(*) > 1"}},
		{"having.aggregate", "SELECT 1 FROM pet GROUP BY id HAVING SUM(weight) > 0", []string{"SELECT 1 FROM pet GROUP BY id HAVING AVG(weight) > 0"}},
		{"having.column", "SELECT 1 FROM owner GROUP BY id HAVING max(city) = 'x'", []string{"SELECT 1 FROM owner GROUP BY id HAVING max(name) = 'x'"}},
		{"having.clause", "SELECT 1 FROM pet GROUP BY id HAVING id > 1", []string{"SELECT 1 FROM pet GROUP BY id"}},
		{"having.aggregate", "SELECT 1 FROM pet GROUP BY id HAVING count(name) > 2", []string{"SELECT 1 FROM pet GROUP BY id HAVING count(DISTINCT name) > 2", "SELECT 1 FROM pet GROUP BY id HAVING count(*) > 2"}},
		{"having.comparison", "SELECT 1 FROM pet GROUP BY id HAVING count(*) >= 2",
			[]string{"SELECT 1 FROM pet GROUP BY id HAVING count(*) > 2", "SELECT 1 FROM pet GROUP BY id HAVING count(*) <= 2"}},
		{"order_by.direction", "SELECT 1 FROM pet ORDER BY id, name DESC", []string{"SELECT 1 FROM pet ORDER BY id DESC, name DESC", "SELECT 1 FROM pet ORDER BY id, name"}},
		{"order_by.key", "SELECT 1 FROM owner ORDER BY name ASC", []string{"SELECT 1 FROM owner ORDER BY city ASC"}},
		{"order_by.nulls", "SELECT 1 FROM pet ORDER BY id, name DESC NULLS FIRST",
			[]string{"SELECT 1 FROM pet ORDER BY id NULLS LAST, name DESC NULLS FIRST", "SELECT 1 FROM pet ORDER BY id, name DESC NULLS LAST"}},
		{"order_by.expression", "select id from pet group by id order by min(weight)", []string{"select id from pet group by id order by max(weight)"}},
		{"order_by.expression", "SELECT 1 FROM pet ORDER BY weight + id", []string{"SELECT 1 FROM pet ORDER BY weight - id"}},
		{"order_by.expression", "SELECT 1 FROM pet ORDER BY CAST(born AS TEXT)", []string{"SELECT 1 FROM pet ORDER BY born"}},
		{"order_by.clause", "SELECT 1 FROM pet ORDER BY id LIMIT 3", []string{"SELECT 1 FROM pet LIMIT 3"}},
		{"limit.clause", "SELECT 1 FROM pet ORDER BY id LIMIT 3", []string{"SELECT 1 FROM pet ORDER BY id"}},
		{"order_by.drop", "SELECT 1 FROM pet ORDER BY id, name", []string{"SELECT 1 FROM pet ORDER BY name", "SELECT 1 FROM pet ORDER BY id"}},
		{"order_by.added_key", "SELECT 1 FROM owner ORDER BY name DESC", []string{"SELECT 1 FROM owner ORDER BY name DESC, id", "SELECT 1 FROM owner ORDER BY name DESC, city"}},
		{"order_by.expression", "SELECT name FROM pet GROUP BY name ORDER BY count(born)", []string{"SELECT name FROM pet GROUP BY name ORDER BY count(DISTINCT born)", "SELECT name FROM pet GROUP BY name ORDER BY count(*)"}},
		{"limit.count", "SELECT id FROM pet LIMIT 3 OFFSET 2",
			[]string{
				"SELECT id FROM pet LIMIT 4 OFFSET 2", "SELECT id FROM pet LIMIT 2 OFFSET 2",
				"SELECT id FROM pet LIMIT 3", "SELECT id FROM pet LIMIT 3 OFFSET 3", "SELECT id FROM pet LIMIT 3 OFFSET 20", "SELECT id FROM pet LIMIT 3 OFFSET 1",
			}},
		{"limit.added_offset", "SELECT id FROM pet LIMIT 3", []string{"SELECT id FROM pet LIMIT 3 OFFSET 1", "SELECT id FROM pet LIMIT 3 OFFSET 2"}},
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
		{"setop.clause", "SELECT id FROM pet EXCEPT SELECT id FROM owner;", []string{"SELECT id FROM pet"}},
		{"setop.operand", "SELECT id FROM owner EXCEPT SELECT owner_id FROM pet",
			[]string{"SELECT id FROM owner EXCEPT SELECT id FROM owner WHERE name = 'Bob'", "SELECT id FROM owner EXCEPT SELECT id FROM owner WHERE city = 'Bob'"}},
		{"setop.operator", "SELECT id FROM pet EXCEPT SELECT id FROM owner", []string{"SELECT id FROM pet INTERSECT SELECT id FROM owner"}},
		{"setop.operator", "SELECT id FROM pet union SELECT id FROM owner", []string{"SELECT id FROM pet union ALL SELECT id FROM owner"}},
	} {
		shown[c.operator] = true
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
	for _, table := range []map[sql.Kind][]operator{operators, additions, foreign} {
		for _, list := range table {
			for _, op := range list {
				if !shown[op.name] {
					t.Errorf("%s has no case", op.name)
				}
			}
		}
	}
}
