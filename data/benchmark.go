// Package data reads and writes what caper works on: benchmarks in their official
// layouts (questions, gold queries, databases and their schemas), the rollouts that
// models wrote for them, and the clause-level preference tuples made of those.
//
// Files of many records are JSON Lines, read and written as streams. Fields that a
// format does not know are kept. A broken line is an error that names file, line
// and field. Files are written whole or not at all.
package data

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"caper/sql"
	"caper/sqlexec"
)

// Benchmark is a folder of questions and databases. It is safe for concurrent use.
type Benchmark struct {
	// Name is the folder's name; rollouts and tuples carry it as dataset.
	Name string
	// Layout is "spider", "bird" or "synsql".
	Layout string
	Dir    string
	// Limits holds for databases that are opened after it is set.
	Limits sqlexec.Limits

	layout layout
	tables func() (map[string]*sql.Schema, error) // the tables files, read when first needed

	mu        sync.Mutex
	databases map[string]*sqlexec.Database
	variants  map[string][]*sqlexec.Database // of a database, which is the first
	schemas   map[string]*sql.Schema
	prompts   map[string]string     // the schemas as prompts say them
	questions map[string][]Question // by split, once read
}

// layout says where a benchmark keeps what.
type layout struct {
	name string
	rule sqlexec.Rule
	// marks are files of which one must be there for this layout to be detected.
	marks []string
	// tables are the files that describe schemas; each may be absent.
	tables []string
	// folders may hold ID/ID.sqlite.
	folders []string
}

// layouts in the order of detection, Spider's last: its marks are also in the others'
// folders.
var layouts = []layout{
	{
		name:    "bird",
		rule:    sqlexec.Bird,
		marks:   []string{"dev_tables.json", "train_tables.json", "test_tables.json"},
		tables:  []string{"dev_tables.json", "train_tables.json", "test_tables.json"},
		folders: []string{"dev_databases", "train_databases", "test_databases", "database", "databases"},
	},
	{
		name:    "synsql",
		rule:    sqlexec.TestSuite,
		marks:   []string{"data.json"},
		tables:  []string{"tables.json"},
		folders: []string{"databases", "database"},
	},
	{
		name:    "spider",
		rule:    sqlexec.TestSuite,
		marks:   []string{"tables.json", "test_tables.json"},
		tables:  []string{"tables.json", "test_tables.json"},
		folders: []string{"database", "test_database"},
	},
}

// OpenBenchmark opens the benchmark in dir. format is "spider", "bird", "synsql",
// or "auto" to tell the layout from the files that are there.
func OpenBenchmark(dir, format string) (*Benchmark, error) {
	if info, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("benchmark: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("benchmark %s: not a folder: name the one that holds its questions and databases", dir)
	}
	l, err := findLayout(dir, format)
	if err != nil {
		return nil, fmt.Errorf("benchmark %s: %w", dir, err)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("benchmark: %w", err)
	}
	b := &Benchmark{
		Name: filepath.Base(abs), Layout: l.name, Dir: dir, Limits: sqlexec.DefaultLimits(), layout: l,
		databases: map[string]*sqlexec.Database{}, schemas: map[string]*sql.Schema{}, prompts: map[string]string{},
	}
	b.tables = sync.OnceValues(b.readTables)
	return b, nil
}

// findLayout returns the layout that format names. The folder may lack its marks, if it
// has no other layout's.
func findLayout(dir, format string) (layout, error) {
	var names []string
	var found []layout
	for _, l := range layouts {
		names = append(names, l.name)
		if len(existing(dir, l.marks)) > 0 {
			found = append(found, l)
		}
	}
	if format == "auto" {
		return detected(dir, found)
	}
	isNamed := func(l layout) bool { return l.name == format }
	i := slices.IndexFunc(layouts, isNamed)
	if i < 0 {
		return layout{}, fmt.Errorf("format %q: want auto, %s", format, strings.Join(names, ", "))
	}
	if len(found) > 0 && !slices.ContainsFunc(found, isNamed) {
		other := found[0]
		return layout{}, fmt.Errorf("format %q: no %s is here, but %s as in the layout %s: name that, or auto",
			format, strings.Join(layouts[i].marks, " or "), filepath.Base(existing(dir, other.marks)[0]), other.name)
	}
	return layouts[i], nil
}

// detected chooses among the layouts whose marks are in dir. Questions alone are read
// as Spider's.
func detected(dir string, found []layout) (layout, error) {
	if len(found) > 0 {
		return found[0], nil
	}
	if len(existing(dir, []string{"dev.json", "train.json"})) > 0 {
		return layouts[len(layouts)-1], nil
	}
	return layout{}, errors.New("no benchmark here: want tables.json and dev.json (Spider), dev_tables.json and dev.json (BIRD), or data.json (SynSQL)")
}

// existing returns the paths of those names that are in dir.
func existing(dir string, names []string) (paths []string) {
	for _, name := range names {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// Rule returns the comparison rule of the benchmark's official evaluator.
func (b *Benchmark) Rule() sqlexec.Rule { return b.layout.rule }

// DatabasePath returns where the database's file is, or where it belongs if it is
// not there.
func (b *Benchmark) DatabasePath(dbID string) string {
	file := filepath.Join(dbID, dbID+".sqlite")
	for _, folder := range b.layout.folders {
		path := filepath.Join(b.Dir, folder, file)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	folder := b.layout.folders[0]
	if there := existing(b.Dir, b.layout.folders); len(there) > 0 {
		folder = filepath.Base(there[0])
	}
	return filepath.Join(b.Dir, folder, file)
}

// Database opens a database, once; Close closes it.
func (b *Benchmark) Database(dbID string) (*sqlexec.Database, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.database(dbID)
}

func (b *Benchmark) database(dbID string) (*sqlexec.Database, error) {
	if d := b.databases[dbID]; d != nil {
		return d, nil
	}
	if !isName(dbID) {
		return nil, fmt.Errorf("db_id %q: not the name of a database", dbID)
	}
	d, err := sqlexec.Open(b.DatabasePath(dbID), b.Limits)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missingDatabase{fmt.Sprintf("benchmark %s has no database %q: put its file at %s", b.Dir, dbID, b.DatabasePath(dbID))}
	} else if err != nil {
		return nil, err
	}
	b.databases[dbID] = d
	return d, nil
}

// missingDatabase is fs.ErrNotExist in the words of a benchmark.
type missingDatabase struct{ text string }

func (e missingDatabase) Error() string { return e.text }
func (e missingDatabase) Unwrap() error { return fs.ErrNotExist }

// CheckDatabases opens databases before they are needed, lest a run end halfway for
// want of one. The error tells of the first that cannot be used, and of how many.
func (b *Benchmark) CheckDatabases(dbIDs []string) error {
	var first error
	failed := 0
	for _, id := range dbIDs {
		if _, err := b.Database(id); err != nil {
			failed++
			first = cmp.Or(first, err)
		}
	}
	if failed == 0 {
		return nil
	}
	return fmt.Errorf("%d of the %d databases needed cannot be used: %w", failed, len(dbIDs), first)
}

// isName keeps ids, which come from files of any origin, inside the benchmark.
func isName(dbID string) bool {
	return dbID != "" && dbID != "." && dbID != ".." && !strings.ContainsAny(dbID, `/\`+"\x00")
}

// Schema returns the tables, columns and foreign keys of a database: those of its
// file, with the foreign keys that only the tables file declares added, or the
// tables file's alone where there is no database. The schema is shared: callers
// must not change it.
func (b *Benchmark) Schema(dbID string) (*sql.Schema, error) {
	described, err := b.tables()
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.schemas[dbID]; s != nil {
		return s, nil
	}
	s := described[dbID]
	d, err := b.database(dbID)
	switch {
	case err == nil:
		declared, err := d.Schema()
		if err != nil {
			return nil, err
		}
		s = withForeignKeys(declared, s)
	case s == nil:
		return nil, err
	}
	b.schemas[dbID] = s
	return s, nil
}

// DatabaseIDs lists the databases whose files are there, sorted.
func (b *Benchmark) DatabaseIDs() ([]string, error) {
	var ids []string
	for _, folder := range b.layout.folders {
		entries, err := os.ReadDir(filepath.Join(b.Dir, folder))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("benchmark %s: %w", b.Dir, err)
		}
		for _, e := range entries {
			if _, err := os.Stat(b.DatabasePath(e.Name())); err == nil {
				ids = append(ids, e.Name())
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// Described returns the schema of a database as the benchmark's tables file alone
// has it, or nil where there is none.
func (b *Benchmark) Described(dbID string) (*sql.Schema, error) {
	described, err := b.tables()
	return described[dbID], err
}

// Close closes the databases.
func (b *Benchmark) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for _, d := range b.databases {
		errs = append(errs, d.Close())
	}
	for _, v := range b.variants {
		for _, d := range v[1:] {
			errs = append(errs, d.Close())
		}
	}
	clear(b.databases)
	clear(b.variants)
	return errors.Join(errs...)
}
