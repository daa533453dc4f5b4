package fill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"caper/data"
	"caper/data/sample"
)

// An emptied copy of the built-in benchmark is filled again: nearly all gold
// returns rows, keys hold, and the same seed gives the same bytes.
func TestBuiltInBenchmark(t *testing.T) {
	o := sample.DefaultOptions()
	o.TrainDatabases, o.TestDatabases, o.NewWordsDatabases, o.LargeEvery = 8, 0, 0, 0
	dir := filepath.Join(t.TempDir(), "sample")
	if _, err := sample.Write(t.Context(), dir, o); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "database", "*", "*.sqlite"))
	if err != nil || len(files) != 8 {
		t.Fatalf("%d databases, %v", len(files), err)
	}
	for _, path := range files {
		empty(t, path)
	}
	filled := fill(t, dir, DefaultOptions())
	if filled.Databases != 8 || filled.Questions != 8*o.Questions || filled.GoldErrors != 0 || len(filled.Refused) > 0 {
		t.Errorf("summary %+v", filled.Summary)
	}
	if share := float64(filled.Informative) / float64(filled.Questions); share < 0.95 {
		t.Errorf("gold says something for %.3f of the questions, want 0.95: %+v", share, filled.Summary)
	}
	filled.checkKeys(t)

	again, other := fill(t, dir, DefaultOptions()), DefaultOptions()
	other.Seed = 2
	changed := fill(t, dir, other)
	for _, path := range files {
		name := filepath.Base(path)
		if !bytes.Equal(filled.read(t, name), again.read(t, name)) {
			t.Errorf("%s: the same seed gives other bytes", name)
		}
		if bytes.Equal(filled.read(t, name), changed.read(t, name)) {
			t.Errorf("%s: another seed gives the same bytes", name)
		}
	}
	rollouts := 0
	bench := filled.open(t)
	for r, err := range data.ReadRollouts(filepath.Join(filled.dir, "rollouts", "train.jsonl"), bench, "train") {
		if err != nil {
			t.Fatal(err)
		}
		if r.SQL != r.Gold || r.Source != "gold" {
			t.Fatalf("rollout %+v is not gold", r)
		}
		rollouts++
	}
	if rollouts != filled.Questions {
		t.Errorf("%d rollouts for %d questions", rollouts, filled.Questions)
	}
}

// Spider's training questions, on databases of which only the schema is public.
func TestSpider(t *testing.T) {
	shared := filepath.Join("..", "..", "..", "shared", "data", "spider")
	text, err := os.ReadFile(filepath.Join(shared, "train.json"))
	if err != nil {
		t.Skipf("needs Spider: %v", err)
	}
	var all, some []map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for _, q := range all {
		if id := q["db_id"].(string); id < "c" { // the first tenth
			some = append(some, q)
		}
	}
	dir := t.TempDir()
	writeJSON(t, filepath.Join(dir, "train.json"), some)
	if err := copyFile(filepath.Join(shared, "tables.json"), filepath.Join(dir, "tables.json")); err != nil {
		t.Fatal(err)
	}
	o := DefaultOptions()
	o.Databases = filepath.Join(shared, "database_schema_only")
	filled := fill(t, dir, o)
	t.Logf("%+v", filled.Summary)
	if share := float64(filled.Returning) / float64(filled.Questions); filled.Questions < 800 || share < 0.97 {
		t.Errorf("gold returns rows for %.3f of %d questions, want 0.97 of 800 or more", share, filled.Questions)
	}
	filled.checkKeys(t)
}

// Queries that rows at random have no chance to satisfy.
func TestWitness(t *testing.T) {
	const schema = `
		CREATE TABLE country (code TEXT PRIMARY KEY, name TEXT);
		CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT, age INT, country TEXT REFERENCES country, boss INT REFERENCES singer);
		CREATE TABLE concert (id INTEGER PRIMARY KEY, title TEXT, year INT, day DATE, price REAL);
		CREATE TABLE plays (singer INT REFERENCES singer, concert INT REFERENCES concert, fee INT, PRIMARY KEY (singer, concert));`
	for _, gold := range []string{
		`SELECT name FROM singer WHERE age > 7123 AND age < 7125 AND name LIKE 'Zq%x'`,
		`SELECT T1.name FROM singer AS T1 JOIN plays AS T2 ON T1.id = T2.singer JOIN concert AS T3 ON T2.concert = T3.id WHERE T3.title = 'Only One' AND T1.age = 8123 AND T2.fee BETWEEN 91234 AND 91235`,
		`SELECT country FROM singer GROUP BY country HAVING count(*) = 17`,
		`SELECT T1.name FROM singer AS T1 JOIN plays AS T2 ON T1.id = T2.singer GROUP BY T1.id HAVING count(DISTINCT T2.concert) > 12`,
		`SELECT country FROM singer WHERE age = 5001 INTERSECT SELECT country FROM singer WHERE age = 5002`,
		`SELECT name FROM concert JOIN plays ON concert.id = plays.concert JOIN singer ON singer.id = plays.singer WHERE title = 'A' INTERSECT SELECT name FROM concert JOIN plays ON concert.id = plays.concert JOIN singer ON singer.id = plays.singer WHERE title = 'B'`,
		`SELECT name FROM singer WHERE age = 6001 EXCEPT SELECT name FROM singer WHERE age <> 6001`,
		`SELECT name FROM singer WHERE age = 6002 AND id NOT IN (SELECT singer FROM plays)`,
		`SELECT name FROM singer AS s WHERE age = 6003 AND NOT EXISTS (SELECT 1 FROM plays WHERE plays.singer = s.id)`,
		`SELECT name FROM singer AS s WHERE age = 6004 AND EXISTS (SELECT 1 FROM plays WHERE plays.singer = s.id AND fee = 77001)`,
		`SELECT title FROM concert WHERE id IN (SELECT concert FROM plays WHERE fee = 77002) AND day = '1871-02-03'`,
		`SELECT title FROM concert WHERE price > (SELECT avg(price) FROM concert) AND year = 1777`,
		`SELECT s.name FROM singer s JOIN singer b ON s.boss = b.id WHERE b.name = 'The Boss' AND s.age > b.age AND s.country != b.country`,
		`SELECT name FROM singer WHERE boss = (SELECT id FROM singer WHERE name = 'Nobody Yet')`,
		`SELECT n FROM (SELECT name AS n, age AS a FROM singer) WHERE n = 'Derived' AND a = 4001`,
		`WITH old AS (SELECT id, name FROM singer WHERE age = 4002) SELECT old.name FROM old JOIN plays ON plays.singer = old.id WHERE fee = 4003`,
		`SELECT name FROM singer WHERE age IN (3001, 3002) AND (name = 'This' OR name = 'That') AND NOT country = 'FR'`,
		`SELECT code FROM singer JOIN country ON singer.country = country.code WHERE country.name = 'Utopia' AND boss IS NULL AND age = 4444`,
		`SELECT a.name FROM singer a JOIN country c ON c.code = a.country JOIN country USING (code) WHERE a.age = 4446 AND country.name = 'Erewhon'`,
		`SELECT sum(fee) FROM plays WHERE fee < -5000`,
		`SELECT country FROM singer GROUP BY country HAVING avg(age) > 9500 AND count(*) >= 1`,
	} {
		t.Run("", func(t *testing.T) {
			dir := benchmark(t, schema, gold)
			filled := fill(t, dir, DefaultOptions())
			if filled.Informative != 1 {
				t.Errorf("finds nothing: %s\n%+v", gold, filled.Summary)
			}
			filled.checkKeys(t)
		})
	}
}

// Schemas that make filling hard: rows go in, and constraints hold.
func TestHostileSchemas(t *testing.T) {
	for name, c := range map[string]struct{ schema, gold, refused string }{
		"view":            {schema: `CREATE TABLE a (x INT); CREATE VIEW v AS SELECT x + 1 AS y FROM a;`, gold: `SELECT y FROM v`},
		"trigger":         {schema: `CREATE TABLE a (x INT); CREATE TRIGGER no BEFORE INSERT ON a BEGIN SELECT raise(ABORT, 'no'); END;`, gold: `SELECT x FROM a`},
		"trigger deletes": {schema: `CREATE TABLE a (x INT); CREATE TRIGGER gone AFTER INSERT ON a BEGIN DELETE FROM a; END;`, gold: `SELECT x FROM a`},
		"generated":       {schema: `CREATE TABLE a (x INT, y INT AS (x * 2) STORED UNIQUE, z TEXT AS (x || '!')); CREATE TABLE b (y INT NOT NULL REFERENCES a (y));`, gold: `SELECT z FROM a JOIN b ON a.y = b.y`},
		"without rowid":   {schema: `CREATE TABLE a (x TEXT, y INT, PRIMARY KEY (y, x)) WITHOUT ROWID; CREATE TABLE b (p INT, q TEXT, FOREIGN KEY (p, q) REFERENCES a);`, gold: `SELECT q FROM b JOIN a ON p = y AND q = x`},
		"strict":          {schema: `CREATE TABLE a (x INT, y TEXT NOT NULL, z REAL, w ANY, b BLOB NOT NULL) STRICT;`, gold: `SELECT y FROM a WHERE x = 'no number' OR z > 3`},
		"cycle":           {schema: `CREATE TABLE a (x INTEGER PRIMARY KEY, y INT NOT NULL REFERENCES b); CREATE TABLE b (x INTEGER PRIMARY KEY, y INT NOT NULL REFERENCES a);`, gold: `SELECT a.x FROM a JOIN b ON a.y = b.x`},
		"self":            {schema: `CREATE TABLE a (x INTEGER PRIMARY KEY, y INT NOT NULL REFERENCES a);`, gold: `SELECT p.x FROM a p JOIN a q ON p.y = q.x`},
		"one to one":      {schema: `CREATE TABLE a (x TEXT PRIMARY KEY); CREATE TABLE b (x TEXT PRIMARY KEY REFERENCES a); CREATE TABLE c (x TEXT NOT NULL UNIQUE REFERENCES b);`, gold: `SELECT x FROM c`},
		"overlapping":     {schema: `CREATE TABLE a (x INT, y INT, PRIMARY KEY (x, y)); CREATE TABLE c (y INTEGER PRIMARY KEY); CREATE TABLE b (x INT, y INT, FOREIGN KEY (x, y) REFERENCES a, FOREIGN KEY (y) REFERENCES c);`, gold: `SELECT x FROM b`},
		"mismatch":        {schema: `CREATE TABLE a (x INT); CREATE TABLE b (y INT REFERENCES a (x));`, gold: `SELECT y FROM b JOIN a ON x = y`},
		"to nowhere":      {schema: `CREATE TABLE b (y INT REFERENCES gone (x), z INT);`, gold: `SELECT z FROM b`},
		"partly nowhere":  {schema: `CREATE TABLE b (x INT NOT NULL UNIQUE, y INT UNIQUE, z INT, FOREIGN KEY (x, y) REFERENCES gone (p, q));`, gold: `SELECT x FROM b WHERE z IS NOT NULL`},
		"only nowhere":    {schema: `CREATE TABLE a (x INT); CREATE TABLE b (y INT NOT NULL REFERENCES gone (x));`, gold: `SELECT x FROM a`, refused: "t: table b stays empty: column y refers to table gone, which does not exist"},
		"check":           {schema: `CREATE TABLE a (x INT CHECK (x BETWEEN 900 AND 905), s TEXT CHECK (s IN ('on', 'off')));`, gold: `SELECT s FROM a WHERE x = 903`},
		"checked never":   {schema: `CREATE TABLE a (x INT); CREATE TABLE b (y INT, CHECK (y IS NULL AND y IS NOT NULL));`, gold: `SELECT x FROM a`, refused: "t: table b stays empty: CHECK constraint failed"},
		"row id of text":  {schema: `CREATE TABLE a (x INTEGER PRIMARY KEY);`, gold: `SELECT x FROM a WHERE x <> 'abc'`},
		"one value":       {schema: `CREATE TABLE a (x INT UNIQUE CHECK (x = 5));`, gold: `SELECT x FROM a`},
		"odd names":       {schema: `CREATE TABLE "a ""b" ("select" INT PRIMARY KEY, "x y" TEXT, "rowid" INT); CREATE TABLE [é] ([ü] INT REFERENCES "a ""b");`, gold: `SELECT "x y" FROM "a ""b"`},
		"partial index":   {schema: `CREATE TABLE a (x INT, y INT); CREATE UNIQUE INDEX i ON a (x) WHERE y > 0; CREATE UNIQUE INDEX k ON a (x + y);`, gold: `SELECT x FROM a`},
		"no columns used": {schema: `CREATE TABLE a (x);`, gold: `SELECT 1 FROM a WHERE x IS NOT NULL`},
		"autoincrement":   {schema: `CREATE TABLE a (x INTEGER PRIMARY KEY AUTOINCREMENT, y TEXT DEFAULT 'd' COLLATE NOCASE UNIQUE);`, gold: `SELECT y FROM a`},
		"wide":            {schema: "CREATE TABLE p (x INTEGER PRIMARY KEY); CREATE TABLE a (" + wide(1500) + ", FOREIGN KEY (c0) REFERENCES p);", gold: `SELECT c1499 FROM a`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := benchmark(t, c.schema, c.gold)
			filled := fill(t, dir, DefaultOptions())
			if filled.Returning != 1 {
				t.Errorf("%s returns nothing: %+v", c.gold, filled.Summary)
			}
			if got := strings.Join(filled.Refused, "; "); !strings.HasPrefix(got, c.refused) || c.refused == "" && got != "" {
				t.Errorf("refused %q, want %q", got, c.refused)
			}
			filled.checkKeys(t)
			if old, now := objects(t, filepath.Join(dir, "database", "t", "t.sqlite")), objects(t, filled.path("t.sqlite")); old != now {
				t.Errorf("the schema was\n%s\nand is\n%s", old, now)
			}
		})
	}
}

func wide(n int) string {
	columns := make([]string, n)
	for i := range columns {
		columns[i] = fmt.Sprintf("c%d INT", i)
	}
	return strings.Join(columns, ", ")
}

// Queries that cannot or must not be satisfied end, and spoil nothing for others.
func TestHostileGold(t *testing.T) {
	dir := benchmark(t, `CREATE TABLE a (x INTEGER PRIMARY KEY, y TEXT)`,
		`SELECT y FROM a WHERE y = 'fine'`,
		`SELECT y FROM a WHERE x = 1 AND x = 2`,
		`SELECT y FROM a WHERE x <> x`,
		`SELECT y FROM a WHERE y LIKE '`+strings.Repeat("%a_", 2000)+`'`,
		`SELECT y FROM a GROUP BY y HAVING count(*) > 100000000000`,
		`WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT * FROM r JOIN r AS s) SELECT y FROM a WHERE x IN r`,
		`WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r`,
		`WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r JOIN a ON r.n = a.x WHERE y = 'counted'`,
		`SELECT y FROM a WHERE x IN (`+strings.Repeat("'b', ", 9000)+`'c')`,
		`DELETE FROM a`, `SELECT`, `SELECT y FROM nowhere`, `SELECT z FROM a`, ``, "SELECT \x00")
	bench, err := data.OpenBenchmark(dir, "auto")
	if err != nil {
		t.Fatal(err)
	}
	defer bench.Close()
	bench.Limits.Timeout = 50 * time.Millisecond
	s, err := Write(t.Context(), bench, filepath.Join(t.TempDir(), "out"), DefaultOptions())
	if err != nil || s.Returning == 0 || s.Rows < DefaultOptions().Rows {
		t.Errorf("%+v, %v", s, err)
	}
}

// A database that SQLite cannot fill, here for a module that it lacks, is copied as it
// is and named; the others are filled.
func TestUnreadable(t *testing.T) {
	dir := benchmark(t, `CREATE TABLE a (x INT); CREATE TRIGGER r AFTER INSERT ON a BEGIN SELECT 1; END;
		PRAGMA writable_schema = 1;
		UPDATE sqlite_schema SET sql = 'CREATE TABLE a (x INT CHECK (absent(x) > 0))' WHERE type = 'table';
		INSERT INTO sqlite_schema VALUES ('table', 'v', 'v', 0, 'CREATE VIRTUAL TABLE v USING absent (y)');`, `SELECT x FROM a`)
	path := filepath.Join(dir, "database", "u", "u.sqlite")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, path).Exec(`CREATE TABLE a (x INT)`); err != nil {
		t.Fatal(err)
	}
	writeJSON(t, filepath.Join(dir, "train.json"), []map[string]string{
		{"db_id": "t", "question": "?", "query": `SELECT x FROM a`}, {"db_id": "u", "question": "?", "query": `SELECT x FROM a`},
	})
	filled := fill(t, dir, DefaultOptions())
	from := filepath.Join(dir, "database", "t", "t.sqlite")
	if filled.Databases != 2 || filled.Returning != 1 || len(filled.Refused) != 1 ||
		!strings.HasPrefix(filled.Refused[0], "t: "+from+" is copied as it is: ") || strings.Contains(filled.Refused[0], ".tmp") {
		t.Errorf("%+v", filled.Summary)
	}
	if old, err := os.ReadFile(from); err != nil || !bytes.Equal(old, filled.read(t, "t.sqlite")) {
		t.Errorf("the copy differs, %v", err)
	}
}

// The summary's rows are those of the files, also where witnesses add many.
func TestRowsCounted(t *testing.T) {
	dir := benchmark(t, `CREATE TABLE a (x INTEGER PRIMARY KEY, y INT, z INT)`,
		`SELECT y FROM a WHERE z = 70002 GROUP BY y HAVING count(*) = 17`, `SELECT z FROM a WHERE x = 3 AND y < 0 AND z = 70001`)
	o := DefaultOptions()
	o.Rows = MaxRows
	filled := fill(t, dir, o)
	if got := value(t, filled.path("t.sqlite"), `SELECT count(*) FROM a`); got != int64(filled.Rows) || filled.Rows <= maxLoaded {
		t.Errorf("%v rows, want more than maxLoaded; the summary says %d", got, filled.Rows)
	}
}

// Gold that passes a limit is no gold that returns rows.
func TestEndlessGold(t *testing.T) {
	dir := benchmark(t, `CREATE TABLE a (x INT);
		CREATE VIEW endless AS WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r`, `SELECT n FROM endless`)
	bench, err := data.OpenBenchmark(dir, "auto")
	if err != nil {
		t.Fatal(err)
	}
	defer bench.Close()
	bench.Limits.Rows = 100
	s, err := Write(t.Context(), bench, filepath.Join(t.TempDir(), "out"), DefaultOptions())
	if err != nil || s.Returning != 0 || s.GoldErrors != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// Whoever stops the command finds nothing half done.
func TestInterrupted(t *testing.T) {
	bench, err := data.OpenBenchmark(benchmark(t, `CREATE TABLE a (x INT)`, `SELECT x FROM a`), "auto")
	if err != nil {
		t.Fatal(err)
	}
	defer bench.Close()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	out := t.TempDir()
	if _, err := Write(ctx, bench, filepath.Join(out, "filled"), DefaultOptions()); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if entries, err := os.ReadDir(out); err != nil || len(entries) > 0 {
		t.Errorf("%v is left behind, %v", entries, err)
	}
}

// Rows that are there stay, and get company only in other tables.
func TestPartlyFilled(t *testing.T) {
	const full = `CREATE TABLE a (x INTEGER PRIMARY KEY, y TEXT); INSERT INTO a VALUES (7, 'seven'), (8, NULL);`
	dir := benchmark(t, full+`CREATE TABLE b (x INT NOT NULL REFERENCES a, z TEXT);`, `SELECT z FROM a JOIN b ON a.x = b.x WHERE y = 'seven' AND z = 'here'`)
	filled := fill(t, dir, DefaultOptions())
	if filled.Informative != 1 {
		t.Errorf("%+v", filled.Summary)
	}
	filled.checkKeys(t)
	if got := value(t, filled.path("t.sqlite"), `SELECT group_concat(x || coalesce(y, '-')) FROM a`); got != "7seven,8-" {
		t.Errorf("the rows of a are %v", got)
	}

	dir = benchmark(t, full, `SELECT y FROM a`)
	filled = fill(t, dir, DefaultOptions())
	old, err := os.ReadFile(filepath.Join(dir, "database", "t", "t.sqlite"))
	if err != nil || filled.Unchanged != 1 || filled.Rows != 0 || !bytes.Equal(old, filled.read(t, "t.sqlite")) {
		t.Errorf("a full database changed: %+v, %v", filled.Summary, err)
	}
}

// Where there is no file, the description makes one.
func TestDescribedOnly(t *testing.T) {
	dir := t.TempDir()
	writeJSON(t, filepath.Join(dir, "tables.json"), []any{map[string]any{
		"db_id": "t", "table_names_original": []string{"shop", "sale"},
		"column_names_original": []any{[]any{-1, "*"}, []any{0, "id"}, []any{0, "name"}, []any{1, "shop_id"}, []any{1, "day"}},
		"column_types":          []string{"text", "number", "text", "number", "time"},
		"primary_keys":          []int{1}, "foreign_keys": [][2]int{{3, 1}},
	}})
	writeJSON(t, filepath.Join(dir, "train.json"), []map[string]string{{"db_id": "t", "question": "?",
		"query": `SELECT name FROM shop JOIN sale ON shop.id = sale.shop_id WHERE day = '2001-02-03' AND name = 'Corner'`}})
	filled := fill(t, dir, DefaultOptions())
	if filled.Informative != 1 {
		t.Errorf("%+v", filled.Summary)
	}
	filled.checkKeys(t)
}

func TestWrongUse(t *testing.T) {
	dir := benchmark(t, `CREATE TABLE a (x INT)`, `SELECT x FROM a`)
	path := filepath.Join(dir, "database", "t", "t.sqlite")
	for _, c := range []struct {
		name, want string
		spoil      func(o *Options, out string) error
	}{
		{"no such split", `no split "dev"`, func(o *Options, _ string) error { o.Split = "dev"; return nil }},
		{"rows", "want 1 to 1000", func(o *Options, _ string) error { o.Rows = 0; return nil }},
		{"out in use", "is not empty", func(_ *Options, out string) error {
			return os.MkdirAll(filepath.Join(out, "something"), 0o755)
		}},
		{"no database", "no tables file describes it", func(*Options, string) error { return os.Rename(path, path+".away") }},
		{"damaged", "not a SQLite database", func(*Options, string) error { return os.WriteFile(path, []byte("hello, I am text"), 0o644) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, out := DefaultOptions(), filepath.Join(t.TempDir(), "out")
			if err := c.spoil(&o, out); err != nil {
				t.Fatal(err)
			}
			bench, err := data.OpenBenchmark(dir, "auto")
			if err != nil {
				t.Fatal(err)
			}
			defer bench.Close()
			if _, err := Write(t.Context(), bench, out, o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if entries, _ := filepath.Glob(out + ".tmp*"); len(entries) > 0 {
				t.Errorf("%v is left behind", entries)
			}
		})
	}
}
