package sql

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sharedData is the folder of test data beside the repository.
func sharedData(t testing.TB) string {
	dir := filepath.Join("..", "..", "shared", "data")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no shared test data: %v", err)
	}
	return dir
}

// goldQueries reads the gold SQL of Spider train and dev and of BIRD dev.
func goldQueries(t testing.TB) []goldQuery {
	dir := sharedData(t)
	var queries []goldQuery
	for _, file := range []string{"spider/train.json", "spider/dev.json", "bird/dev.json"} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		var records []struct {
			DBID  string          `json:"db_id"`
			Query string          `json:"query"`
			SQL   json.RawMessage // BIRD's query; in Spider, where it is spelled sql, a parse tree
		}
		if err := json.Unmarshal(text, &records); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, r := range records {
			if r.Query == "" {
				if err := json.Unmarshal(r.SQL, &r.Query); err != nil {
					t.Fatalf("%s: %v", file, err)
				}
			}
			queries = append(queries, goldQuery{file, r.DBID, r.Query})
		}
	}
	return queries
}

type goldQuery struct{ file, db, sql string }

// fixture reads the cases of a text file in testdata, one a line; blank lines
// and lines that begin with "--" are comments; \n, \t and \0 are escapes.
func fixture(t testing.TB, name string) []string {
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unescape := strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\0`, "\x00", `\\`, `\`)
	var cases []string
	for s := bufio.NewScanner(f); s.Scan(); {
		if line := s.Text(); line != "" && !strings.HasPrefix(line, "--") {
			cases = append(cases, unescape.Replace(line))
		}
	}
	return cases
}

// statements are varied statements that SQLite accepts.
func statements(t testing.TB) []string { return fixture(t, "statements.txt") }
