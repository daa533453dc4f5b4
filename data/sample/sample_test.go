package sample

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode"
)

// shared holds the default benchmark, written once for all tests.
var shared = sync.OnceValues(func() (Summary, error) {
	return Write(context.Background(), filepath.Join(workFolder, "bench"), DefaultOptions())
})

var workFolder string

func TestMain(m *testing.M) {
	var err error
	if workFolder, err = os.MkdirTemp("", "caper-sample-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(workFolder)
	os.Exit(code)
}

// bench returns the folder of the default benchmark.
func bench(t *testing.T) string {
	t.Helper()
	if _, err := shared(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(workFolder, "bench")
}

func split(t *testing.T, name string) []planned {
	t.Helper()
	questions, err := readSplit(bench(t), name)
	if err != nil {
		t.Fatal(err)
	}
	return questions
}

var connections sync.Map

// connect opens a database of the benchmark for reading, once for all tests.
func connect(t *testing.T, id string) *sql.DB {
	t.Helper()
	if c, ok := connections.Load(id); ok {
		return c.(*sql.DB)
	}
	connection, err := sql.Open("sqlite3", "file:"+databasePath(bench(t), id)+"?mode=ro&immutable=1")
	if err != nil {
		t.Fatal(err)
	}
	connections.Store(id, connection)
	return connection
}

func small() Options {
	return Options{Seed: 7, TrainDatabases: 4, TestDatabases: 2, NewWordsDatabases: 2, Questions: 6, DevQuestions: 2, LargeEvery: 3, LargeRows: 500}
}

// contents maps each file below dir to its hash.
func contents(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	hashes := map[string][32]byte{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		hashes[name] = sha256.Sum256(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return hashes
}

func TestSameSeedSameBytes(t *testing.T) {
	write := func(seed uint64) map[string][32]byte {
		dir := filepath.Join(t.TempDir(), "bench")
		o := small()
		o.Seed = seed
		if _, err := Write(t.Context(), dir, o); err != nil {
			t.Fatal(err)
		}
		if _, err := WriteRollouts(t.Context(), dir, RolloutOptions{Seed: seed, Samples: 1}); err != nil {
			t.Fatal(err)
		}
		return contents(t, dir)
	}
	first, again, differently := write(7), write(7), write(8)
	if len(first) != len(again) {
		t.Fatalf("%d files, then %d", len(first), len(again))
	}
	for name, hash := range first {
		if again[name] != hash {
			t.Errorf("%s differs between two runs of one seed", name)
		}
	}
	if first["train.json"] == differently["train.json"] {
		t.Error("another seed gave the same train.json")
	}
}

func TestWriteLeavesAFullFolderAlone(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "notes"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(t.Context(), dir, small()); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("have %v, want an error that says the folder is not empty", err)
	}
	if beside, _ := filepath.Glob(dir + ".tmp-*"); len(beside) > 0 {
		t.Errorf("left %v behind", beside)
	}
}

func TestImpossibleOptions(t *testing.T) {
	for _, change := range []func(*Options){
		func(o *Options) { o.TrainDatabases = 0 },
		func(o *Options) { o.TestDatabases = -1 },
		func(o *Options) { o.Questions = 0 },
		func(o *Options) { o.DevQuestions = 1000 },
		func(o *Options) { o.LargeRows = -5 },
	} {
		o := small()
		change(&o)
		if _, err := Write(t.Context(), filepath.Join(t.TempDir(), "bench"), o); err == nil {
			t.Errorf("%+v: want an error", o)
		}
	}
}

func TestSizesAndConstructs(t *testing.T) {
	bench(t)
	s, _ := shared()
	o := DefaultOptions()
	if o.TrainDatabases+o.TestDatabases < 60 || o.NewWordsDatabases < 6 || s.Databases < 66 {
		t.Errorf("%d databases: too few", s.Databases)
	}
	total := 0
	for _, n := range s.Questions {
		total += n
	}
	if total < 3000 {
		t.Errorf("%d questions: too few", total)
	}
	for _, construct := range []string{
		"no join", "one join", "two joins", "three joins", "left join",
		"count", "sum", "avg", "min", "max", "distinct", "group by", "having", "order by", "limit",
		"like", "between", "in list", "is null", "comparison", "or", "arithmetic", "case",
		"in subquery", "scalar subquery", "exists", "from subquery", "cte", "window", "having twice", "limit of sorted rows",
		"UNION", "UNION ALL", "INTERSECT", "EXCEPT",
	} {
		if s.Constructs[construct] < 20 {
			t.Errorf("%q occurs in %d queries, want 20 at least", construct, s.Constructs[construct])
		}
	}
}

// Databases agree with tables.json, and their foreign keys hold.
func TestDatabasesMatchTheirDescription(t *testing.T) {
	schemas, err := readSchemas(bench(t))
	if err != nil {
		t.Fatal(err)
	}
	large := 0
	for id, s := range schemas {
		connection := connect(t, id)
		for _, tab := range s.tables {
			var columns []string
			for _, row := range rowsOf(t, connection, "SELECT name FROM pragma_table_info('"+tab.name+"')") {
				columns = append(columns, text(row[0]))
			}
			var want []string
			for _, c := range tab.columns {
				want = append(want, c.name)
			}
			if strings.Join(columns, " ") != strings.Join(want, " ") {
				t.Errorf("%s.%s has columns %v, tables.json says %v", id, tab.name, columns, want)
			}
			keys := rowsOf(t, connection, `SELECT "table", "from", "to" FROM pragma_foreign_key_list('`+tab.name+`')`)
			if len(keys) != len(tab.parents()) {
				t.Errorf("%s.%s declares %d foreign keys, tables.json %d", id, tab.name, len(keys), len(tab.parents()))
			}
			if n := rowsOf(t, connection, "SELECT count(*) FROM "+tab.name)[0][0].(int64); n >= 20000 {
				large++
			}
		}
		if broken := rowsOf(t, connection, "PRAGMA foreign_key_check"); len(broken) > 0 {
			t.Errorf("%s: %d rows break a foreign key, first %v", id, len(broken), broken[0])
		}
	}
	if large == 0 {
		t.Error("no table of 20,000 rows")
	}
}

func rowsOf(t *testing.T, connection *sql.DB, query string) [][]any {
	t.Helper()
	rows, err := run(context.Background(), connection, query, 1<<20)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return rows
}

func text(v any) string {
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	return fmt.Sprint(v)
}

func TestGoldRunsAndReturnsRows(t *testing.T) {
	total, empty := 0, 0
	for _, name := range Splits {
		for _, q := range split(t, name) {
			rows, err := run(context.Background(), connect(t, q.question.DBID), q.question.Query, 1)
			if err != nil {
				t.Fatalf("%s: %s: %v", q.question.DBID, q.question.Query, err)
			}
			total++
			if len(rows) == 0 {
				empty++
			}
		}
	}
	if empty*20 > total {
		t.Errorf("%d of %d gold queries return nothing", empty, total)
	}
}

// Dirt that real data has: missing values, repeats, mixed case, letters beyond
// ASCII.
func TestValuesArePlausible(t *testing.T) {
	var missing, foreign, lower, upper, repeated int
	for _, d := range designDatabases(DefaultOptions())[:20] {
		d.fill(randomFor(1, "rows", d.schema.id))
		for c, tab := range d.schema.tables {
			seen := map[any]bool{}
			for _, row := range d.rows[c] {
				for i, v := range row {
					s, isText := v.(string)
					switch {
					case v == nil:
						missing++
					case isText && strings.IndexFunc(s, func(r rune) bool { return r > unicode.MaxASCII }) >= 0:
						foreign++
					case isText && s == strings.ToLower(s):
						lower++
					case isText:
						upper++
					}
					if tab.columns[i].attribute != nil && seen[v] {
						repeated++
					}
					seen[v] = true
				}
			}
		}
	}
	if min(missing, foreign, lower, upper, repeated) < 100 {
		t.Errorf("missing %d, beyond ASCII %d, lower case %d, with capitals %d, repeated %d: want 100 of each at least",
			missing, foreign, lower, upper, repeated)
	}
}

// wordsIn lists the words of a text, in lower case.
func wordsIn(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(c rune) bool { return !unicode.IsLetter(c) })
}

func TestSplitsAreDisjoint(t *testing.T) {
	schemas, err := readSchemas(bench(t))
	if err != nil {
		t.Fatal(err)
	}
	databases := map[string]map[string]bool{} // split, database
	names := map[string]map[string]bool{}     // split, word of a schema
	for _, name := range Splits {
		databases[name], names[name] = map[string]bool{}, map[string]bool{}
		for _, q := range split(t, name) {
			databases[name][q.question.DBID] = true
			for _, w := range schemas[q.question.DBID].words() {
				names[name][w] = true
			}
		}
	}
	for id := range databases[Test] {
		if databases[Train][id] || databases[Dev][id] || databases[NewWords][id] {
			t.Errorf("test database %s is in another split too", id)
		}
	}
	for id := range databases[Dev] {
		if !databases[Train][id] {
			t.Errorf("dev database %s is not in train", id)
		}
	}
	for w := range names[Test] {
		if !names[Train][w] {
			t.Errorf("the test split's word %q is in no train database", w)
		}
	}
	train := map[string]bool{}
	for _, q := range split(t, Train) {
		train[q.question.Question] = true
	}
	for _, q := range split(t, Dev) {
		if train[q.question.Question] {
			t.Errorf("dev question %q is in train too", q.question.Question)
		}
	}
}

// No word of a newwords table, column or value occurs anywhere in the other
// splits, their question templates included.
func TestNewWordsAreNew(t *testing.T) {
	known := map[string]bool{}
	for _, name := range []string{Train, Dev, Test} {
		for _, q := range split(t, name) {
			for _, w := range wordsIn(q.question.Question + " " + q.question.Query) {
				known[w] = true
			}
		}
	}
	for _, w := range vocabularyWords(knownWords) {
		known[w] = true
	}
	for _, w := range vocabularyWords(unknownWords) {
		if known[w] {
			t.Errorf("%q is not new", w)
		}
	}
}

func vocabularyWords(v *vocabulary) []string {
	words := []string{v.key}
	for _, c := range v.classes {
		words = append(words, c.nouns...)
	}
	for _, a := range v.attributes {
		words = append(append(append(words, a.name), a.words...), a.second...)
	}
	return wordsIn(strings.Join(words, " "))
}

// The question speaks of every table, column and literal of its query, so that
// it determines the query.
func TestQuestionsSayEverything(t *testing.T) {
	for _, name := range Splits {
		for _, q := range split(t, name) {
			spoken := q.question.Question
			say := func(what string) {
				if !strings.Contains(spoken, what) {
					t.Errorf("%q does not say %q of %s", spoken, what, q.question.Query)
				}
			}
			q.plan.Query.blocks(func(b *Query) {
				say(b.Subject)
				b.ownTerms(func(term *Term) {
					if c := term.Column; c.Name != "*" && c.Name != TallyName && attributeNamed(c.Name) != nil {
						say(c.Name)
					}
				})
				for _, k := range b.Group {
					say(k.Name)
				}
				for _, c := range append(append([]Condition(nil), b.Where...), b.Having...) {
					for _, v := range c.Values {
						say(v)
					}
				}
				if b.Limit > 1 {
					say(fmt.Sprint(b.Limit))
				}
			})
		}
	}
}
