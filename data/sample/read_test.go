package sample

import (
	"encoding/json"
	"testing"

	"caper/data"
	"caper/sql"
)

// Every gold query of a benchmark is read back as the value it was made from, whatever the
// style it is printed in; those with a window are refused.
func TestReadQueryIsTheWayBack(t *testing.T) {
	dir := t.TempDir() + "/bench"
	o := DefaultOptions()
	o.TrainDatabases, o.TestDatabases, o.NewWordsDatabases, o.LargeEvery = 30, 4, 2, 0
	if _, err := Write(t.Context(), dir, o); err != nil {
		t.Fatal(err)
	}
	bench, err := data.OpenBenchmark(dir, "spider")
	if err != nil {
		t.Fatal(err)
	}
	defer bench.Close()
	read, windows := 0, 0
	for _, split := range Splits {
		questions, err := readSplit(dir, split)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range questions {
			schema, err := bench.Schema(p.question.DBID)
			if err != nil {
				t.Fatal(err)
			}
			for _, style := range []Style{{}, {Aliases: true}, {Flip: true}, {Inner: true}, {Lower: true}} {
				text := p.plan.Query.SQL(style)
				tree, err := sql.Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				q, err := ReadQuery(tree, schema)
				if p.plan.Query.Window != nil {
					if windows++; err == nil {
						t.Errorf("%s: a window is read as %s", text, q.SQL(Style{}))
					}
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", text, err)
					continue
				}
				read++
				want, _ := json.Marshal(p.plan.Query)
				have, _ := json.Marshal(q)
				if string(have) != string(want) {
					t.Errorf("%s:\n%s read as\n%s", text, want, have)
				}
			}
		}
	}
	if read < 3000 || windows == 0 {
		t.Errorf("only %d queries read, %d with a window", read, windows)
	}
}

// What a question would not tell is refused: two queries of different results would have
// the same question.
func TestReadQueryRefusesWhatIsNotSaid(t *testing.T) {
	schema := &sql.Schema{
		Tables: []sql.SchemaTable{
			{Name: "singer", Columns: []sql.SchemaColumn{{Name: "id"}, {Name: "age"}, {Name: "city"}}},
			{Name: "concert", Columns: []sql.SchemaColumn{{Name: "id"}, {Name: "year"}, {Name: "singer_id"}}},
		},
		ForeignKeys: []sql.ForeignKey{{Table: "concert", Column: "singer_id", RefTable: "singer", RefColumn: "id"}},
	}
	for text, said := range map[string]bool{
		"SELECT city FROM singer WHERE age > 3":                                                          true,
		"SELECT city FROM singer WHERE age > 3 AND (age < 9 OR city = 'x')":                              false,
		"SELECT count(*) FROM singer":                                                                    true,
		"SELECT count(*) FROM singer ORDER BY age":                                                       false,
		"SELECT count(*) FROM singer LIMIT 1":                                                            false,
		"SELECT city, count(*) FROM singer GROUP BY city":                                                true,
		"SELECT count(*) FROM singer GROUP BY city":                                                      false,
		"SELECT city, age, count(*) FROM singer GROUP BY city":                                           false,
		"SELECT year FROM concert JOIN singer ON concert.singer_id = singer.id":                          false,
		"SELECT year, city FROM concert JOIN singer ON concert.singer_id = singer.id":                    true,
		"SELECT year, city FROM concert JOIN singer ON concert.id = singer.id":                           false,
		"SELECT age FROM singer WHERE id IN (SELECT singer_id FROM concert)":                             true,
		"SELECT age FROM singer WHERE id IN (SELECT year FROM concert)":                                  false,
		"SELECT age FROM singer WHERE age > (SELECT avg(age) FROM singer)":                               true,
		"SELECT singer.age, concert.year FROM singer LEFT JOIN concert ON singer.id = concert.singer_id": true,
		"SELECT singer.age, concert.year FROM singer LEFT JOIN concert ON singer.id = concert.singer_id WHERE singer.age > (SELECT avg(age) FROM singer)": false,
		"SELECT age FROM singer LIMIT 3 OFFSET 1":                                                  false,
		"SELECT age FROM singer WHERE upper(city) = 'A'":                                           false,
		"SELECT age FROM singer WHERE city LIKE 'a%b'":                                             false,
		"SELECT T1.age FROM singer AS T1 JOIN singer AS T2 ON T1.id = T2.id":                       false,
		"SELECT age FROM singer UNION SELECT year FROM concert":                                    true,
		"SELECT age FROM singer UNION SELECT count(*) FROM concert":                                false,
		"SELECT age FROM (SELECT city, count(*) AS tally FROM singer GROUP BY city)":               false,
		"SELECT max(tally) FROM (SELECT city, count(*) AS tally FROM singer GROUP BY city)":        true,
		"SELECT max(tally), 1 FROM (SELECT city, count(*) AS tally FROM singer GROUP BY city)":     false,
		"WITH chosen AS (SELECT * FROM singer WHERE age > 3) SELECT city FROM chosen ORDER BY age": true,
		"WITH other AS (SELECT * FROM singer WHERE age > 3) SELECT city FROM other":                false,
	} {
		tree, err := sql.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if q, err := ReadQuery(tree, schema); (err == nil) != said {
			t.Errorf("%s: read as %v, %v", text, q, err)
		}
	}
}
