package data

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	_ "github.com/mattn/go-sqlite3"

	capersql "caper/sql"
	"caper/sqlexec"
)

// write makes a file, and the folders it needs, in dir.
func write(t testing.TB, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func writeDatabase(t testing.TB, dir, name string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite3", write(t, dir, name, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	all := "PRAGMA synchronous = OFF; BEGIN; " + strings.Join(statements, "; ") + "; COMMIT"
	if _, err := db.Exec(all); err != nil {
		t.Fatalf("%s: %v", all, err)
	}
}

func open(t testing.TB, dir string) *Benchmark {
	t.Helper()
	b, err := OpenBenchmark(dir, "auto")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

const zooTables = `[{"db_id": "zoo",
  "table_names_original": ["animal", "keeper"], "table_names": ["animal", "keeper"],
  "column_names_original": [[-1, "*"], [0, "ID"], [0, "Net Worth"], [0, "keeper_id"], [1, "id"], [1, "order"]],
  "column_types": ["text", "number", "number", "number", "number", "others"],
  "primary_keys": [1, [4]], "foreign_keys": [[3, 4]]}]`

// spiderFolder is a benchmark of two questions in Spider's layout.
func spiderFolder(t testing.TB) string {
	dir := t.TempDir()
	write(t, dir, "tables.json", zooTables)
	write(t, dir, "dev.json", `[
	{"db_id": "zoo", "query": "SELECT count(*) FROM animal", "sql": {"select": []}, "question": "How many?"},
	{"db_id": "zoo", "query": "SELECT id FROM keeper", "question": "Which \"keepers\"?", "question_id": "k-7"}
]`)
	writeDatabase(t, dir, "database/zoo/zoo.sqlite",
		"CREATE TABLE Animal(id INTEGER PRIMARY KEY, `Net Worth` REAL, keeper_id INT)",
		"CREATE TABLE keeper(id INTEGER PRIMARY KEY, `order` VARCHAR(10))")
	return dir
}

func TestSpiderLayout(t *testing.T) {
	b := open(t, spiderFolder(t))
	if b.Layout != "spider" || b.Rule() != sqlexec.TestSuite {
		t.Errorf("layout %s, rule %s", b.Layout, b.Rule())
	}
	questions, err := b.Questions("dev")
	if err != nil {
		t.Fatal(err)
	}
	want := []Question{
		{Dataset: b.Name, ID: IndexID(0), DBID: "zoo", Question: "How many?", Gold: "SELECT count(*) FROM animal", Split: "dev"},
		{Dataset: b.Name, ID: NameID("k-7"), DBID: "zoo", Question: `Which "keepers"?`, Gold: "SELECT id FROM keeper", Split: "dev"},
	}
	if diff := cmp.Diff(want, questions, cmp.Comparer(func(a, b QuestionID) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	// The file's names and types, the tables file's foreign key.
	questions[0].Evidence = "a unit"
	prompt, err := b.Prompt(questions[0])
	if err != nil {
		t.Fatal(err)
	}
	if want := "Animal(id int pk, `Net Worth` real, keeper_id int -> keeper.id)\nkeeper(id int pk, `order` text)\n" +
		"evidence: a unit\nquestion: How many?\n"; prompt != want {
		t.Errorf("prompt:\n%s\nwant\n%s", prompt, want)
	}
	d1, err1 := b.Database("zoo")
	d2, err2 := b.Database("zoo")
	if err1 != nil || err2 != nil || d1 != d2 {
		t.Error("a database is opened once", err1, err2)
	}
}

func TestSchemaWithoutADatabase(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "tables.json", zooTables)
	s, err := open(t, dir).Schema("zoo")
	if err != nil {
		t.Fatal(err)
	}
	want := &capersql.Schema{
		Tables: []capersql.SchemaTable{
			{Name: "animal", Columns: []capersql.SchemaColumn{
				{Name: "ID", Type: "number", PrimaryKey: true}, {Name: "Net Worth", Type: "number"}, {Name: "keeper_id", Type: "number"}}},
			{Name: "keeper", Columns: []capersql.SchemaColumn{{Name: "id", Type: "number", PrimaryKey: true}, {Name: "order"}}},
		},
		ForeignKeys: []capersql.ForeignKey{{Table: "animal", Column: "keeper_id", RefTable: "keeper", RefColumn: "id"}},
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Error(diff)
	}
}

func TestOtherLayouts(t *testing.T) {
	bird := t.TempDir()
	write(t, bird, "dev_tables.json", "[]")
	write(t, bird, "dev.json", `[{"question_id": 5, "db_id": "zoo", "question": "Q", "evidence": "E", "SQL": "SELECT 1", "difficulty": "simple"}]`)
	writeDatabase(t, bird, "dev_databases/zoo/zoo.sqlite", "CREATE TABLE t(x)")
	synsql := t.TempDir()
	write(t, synsql, "tables.json", "[]")
	write(t, synsql, "data.json", `[{"db_id": "zoo", "question": "Q", "external_knowledge": "E", "sql": "SELECT 1", "cot": "..."}]`)
	writeDatabase(t, synsql, "databases/zoo/zoo.sqlite", "CREATE TABLE t(x)")
	for _, c := range []struct {
		dir, layout, split string
		rule               sqlexec.Rule
		want               Question
	}{
		{bird, "bird", "dev", sqlexec.Bird, Question{ID: IndexID(5), Difficulty: "simple"}},
		{synsql, "synsql", "train", sqlexec.TestSuite, Question{ID: IndexID(0)}},
	} {
		b := open(t, c.dir)
		q, err := b.Questions(c.split)
		if err != nil {
			t.Fatal(err)
		}
		c.want.Dataset, c.want.DBID, c.want.Question, c.want.Evidence = b.Name, "zoo", "Q", "E"
		c.want.Gold, c.want.Split = "SELECT 1", c.split
		if b.Layout != c.layout || b.Rule() != c.rule || len(q) != 1 || q[0] != c.want {
			t.Errorf("%s: layout %s, rule %s, %+v", c.layout, b.Layout, b.Rule(), q)
		}
		if _, err := b.Database("zoo"); err != nil {
			t.Error(err)
		}
	}
}

// A format's name decides where a folder has the marks of several layouts, or of none.
func TestNamedLayout(t *testing.T) {
	both, none := spiderFolder(t), t.TempDir()
	write(t, both, "dev_tables.json", "[]")
	write(t, none, "dev.json", "[]")
	for _, c := range []struct{ dir, format, want string }{
		{both, "auto", "bird"}, {both, "spider", "spider"}, {both, "bird", "bird"},
		{none, "auto", "spider"}, {none, "spider", "spider"}, {none, "bird", "bird"},
	} {
		if b, err := OpenBenchmark(c.dir, c.format); err != nil || b.Layout != c.want {
			t.Errorf("%s: %v, want layout %s", c.format, err, c.want)
		}
	}
}

func TestBenchmarkErrors(t *testing.T) {
	dir := spiderFolder(t)
	b := open(t, dir)
	write(t, dir, "bad.json", "[\n{\"db_id\": \"zoo\", \"question\": \"Q\"},\n\n{\"db_id\": 5, \"question\": \"Q\"}\n]")
	write(t, dir, "nodb.json", "[\n\n{\"question\": \"Q\"}]")
	write(t, dir, "cut.json", "[\n{\"db_id\": \"zoo\", \"question\": \"Q\"}")
	write(t, dir, "object.json", "{}")
	write(t, dir, "database/text/text.sqlite", "not a database")
	badTables := t.TempDir()
	write(t, badTables, "tables.json", strings.Replace(zooTables, "[[3, 4]]", "[[3, 40]]", 1))
	cutTables := t.TempDir()
	write(t, cutTables, "tables.json", zooTables[:40])
	bird := t.TempDir()
	write(t, bird, "dev_tables.json", "[]")
	write(t, bird, "dev.json", "[]")
	questions := func(split string) func() error {
		return func() error { _, err := b.Questions(split); return err }
	}
	database := func(id string) func() error {
		return func() error { _, err := b.Database(id); return err }
	}
	for _, c := range []struct {
		do    func() error
		parts []string
	}{
		{questions("nope"), []string{"no split", "nope.json"}},
		{questions("../dev"), []string{"no split"}},
		{questions("bad"), []string{"bad.json:4: db_id: want string, have number"}},
		{questions("nodb"), []string{"nodb.json:3: db_id: missing"}},
		{questions("cut"), []string{"cut.json:2: the file ends before the list does"}},
		{questions("object"), []string{"object.json:1: want a JSON list"}},
		{database("nope"), []string{`no database "nope"`, "database/nope/nope.sqlite"}},
		{database("../zoo"), []string{"not the name of a database"}},
		{database("text"), []string{"text.sqlite", "not a SQLite database"}},
		{func() error { _, err := OpenBenchmark(filepath.Join(dir, "nope"), "auto"); return err }, []string{"nope", "no such file"}},
		{func() error { _, err := OpenBenchmark(t.TempDir(), "auto"); return err }, []string{"no benchmark here"}},
		{func() error { _, err := OpenBenchmark(dir, "csv"); return err }, []string{`format "csv"`}},
		{func() error { _, err := OpenBenchmark(dir, "bird"); return err }, []string{`format "bird"`, "no dev_tables.json", "tables.json as in the layout spider"}},
		{func() error { _, err := OpenBenchmark(dir, "synsql"); return err }, []string{`format "synsql"`, "no data.json", "spider"}},
		{func() error { _, err := OpenBenchmark(bird, "spider"); return err }, []string{`format "spider"`, "dev_tables.json as in the layout bird"}},
		{func() error { _, err := open(t, cutTables).Schema("zoo"); return err }, []string{"tables.json:1: the file ends before the list does"}},
		{func() error { _, err := open(t, badTables).Schema("zoo"); return err }, []string{"tables.json:1: foreign_keys: zoo has no column 40"}},
		{func() error { _, err := b.Prompt(Question{DBID: "nope"}); return err }, []string{`no database "nope"`}},
	} {
		err := c.do()
		for _, part := range c.parts {
			if err == nil || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "\n") {
				t.Errorf("have %v, want one line with %q", err, part)
			}
		}
	}
}

// TestSpelledNamesAreRead: every keyword of SQLite and some odd names can be read
// back as columns in the prompt's spelling.
func TestSpelledNamesAreRead(t *testing.T) {
	names := strings.Fields(`ABORT ACTION ADD AFTER ALL ALTER ALWAYS ANALYZE AND AS ASC ATTACH AUTOINCREMENT BEFORE BEGIN
		BETWEEN BY CASCADE CASE CAST CHECK COLLATE COLUMN COMMIT CONFLICT CONSTRAINT CREATE CROSS CURRENT CURRENT_DATE
		CURRENT_TIME CURRENT_TIMESTAMP DATABASE DEFAULT DEFERRABLE DEFERRED DELETE DESC DETACH DISTINCT DO DROP EACH ELSE
		END ESCAPE EXCEPT EXCLUDE EXCLUSIVE EXISTS EXPLAIN FAIL FILTER FIRST FOLLOWING FOR FOREIGN FROM FULL GENERATED
		GLOB GROUP GROUPS HAVING IF IGNORE IMMEDIATE IN INDEX INDEXED INITIALLY INNER INSERT INSTEAD INTERSECT INTO IS
		ISNULL JOIN KEY LAST LEFT LIKE LIMIT MATCH MATERIALIZED NATURAL NO NOT NOTHING NOTNULL NULL NULLS OF OFFSET ON OR
		ORDER OTHERS OUTER OVER PARTITION PLAN PRAGMA PRECEDING PRIMARY QUERY RAISE RANGE RECURSIVE REFERENCES REGEXP
		REINDEX RELEASE RENAME REPLACE RESTRICT RETURNING RIGHT ROLLBACK ROW ROWS SAVEPOINT SELECT SET TABLE TEMP
		TEMPORARY THEN TIES TO TRANSACTION TRIGGER UNBOUNDED UNION UNIQUE UPDATE USING VACUUM VALUES VIEW VIRTUAL WHEN
		WHERE WINDOW WITH WITHOUT TRUE FALSE ROWID_ plain_1`)
	names = append(names, "Free Meal Count (K-12)", "2nd", "back`quote", `double"quote`, "Öl", "[x]", "a.b", "")
	dir := t.TempDir()
	var statements []string
	for i, name := range names {
		if name == "" {
			continue
		}
		quoted := "`" + strings.ReplaceAll(name, "`", "``") + "`"
		statements = append(statements, "CREATE TABLE "+quoted+"("+quoted+" TEXT)", "INSERT INTO "+quoted+" VALUES ('value "+names[i]+"')")
	}
	writeDatabase(t, dir, "names.sqlite", statements...)
	d, err := sqlexec.Open(filepath.Join(dir, "names.sqlite"), sqlexec.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, name := range names {
		if name == "" {
			continue
		}
		query := "SELECT " + spell(name) + " FROM " + spell(name) + " WHERE " + spell(name) + " <> ''"
		r, err := d.Query(context.Background(), query)
		if err != nil || len(r.Rows) != 1 || r.Rows[0][0] != "value "+name {
			t.Errorf("%s: %v %v", query, r, err)
		}
	}
}

// TestRealBenchmarks reads Spider dev and BIRD dev whole.
func TestRealBenchmarks(t *testing.T) {
	for _, c := range []struct {
		dir, layout string
		splits      map[string]int
	}{
		{"spider", "spider", map[string]int{"dev": 1034, "train": 7886}},
		{"bird", "bird", map[string]int{"dev": 1534, "mini_dev_sqlite": 500}},
	} {
		b := open(t, sharedData(t, c.dir))
		if b.Layout != c.layout {
			t.Errorf("%s: layout %s", c.dir, b.Layout)
		}
		for split, count := range c.splits {
			questions, err := b.Questions(split)
			if err != nil || len(questions) != count {
				t.Fatalf("%s %s: %d questions, %v", c.dir, split, len(questions), err)
			}
			for i, q := range questions {
				if i > 0 && q.DBID == questions[i-1].DBID && q.Evidence == "" {
					continue // questions of one database come together
				}
				prompt, err := b.Prompt(q)
				if err != nil || q.Gold == "" || strings.Contains(prompt, q.Gold) || !strings.HasSuffix(prompt, "question: "+q.Question+"\n") {
					t.Fatalf("%s: %+v: %v, prompt\n%s", c.dir, q, err, prompt)
				}
			}
		}
	}
}

// sharedData finds test data that lies beside the repository, if it is there.
func sharedData(t testing.TB, parts ...string) string {
	t.Helper()
	path := filepath.Join(slices.Concat([]string{"..", "..", "shared", "data"}, parts)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no test data: %v", err)
	}
	return path
}
