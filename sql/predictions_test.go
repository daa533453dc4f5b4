package sql

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// predictions calls visit with every sampled query on Spider and BIRD dev.
// wrong says that its result was found to differ from gold's.
func predictions(t testing.TB, visit func(file, db, gold, text string, wrong bool)) {
	for _, file := range []string{"spider_dev.jsonl", "bird_dev.jsonl"} {
		f, err := os.Open(filepath.Join(sharedData(t), "predictions", file))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<24)
		for lines.Scan() {
			var question struct {
				DBID  string `json:"db_id"`
				Gold  string
				Preds map[string]struct {
					SQL string
					Set *int
				}
			}
			if err := json.Unmarshal(lines.Bytes(), &question); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for _, p := range question.Preds {
				visit(file, question.DBID, question.Gold, p.SQL, p.Set != nil && *p.Set == 0)
			}
		}
	}
}

// TestCanonicalIsSound checks that a query that ran and gave another result than
// gold has another canonical form.
func TestCanonicalIsSound(t *testing.T) {
	t.Parallel()
	schemas := spiderSchemas(t)
	equal := 0
	predictions(t, func(_, db, gold, text string, wrong bool) {
		n, err := Parse(text)
		if err != nil {
			return
		}
		c := Canonical(n, schemas[db])
		checkOrigins(t, n, c)
		if !Equal(c, Canonical(mustParse(t, gold), schemas[db])) {
			return
		}
		equal++
		if wrong {
			t.Errorf("%s\n%s\n\tdiffer in their results but not in canonical form", gold, text)
		}
	})
	t.Logf("%d predictions have gold's canonical form", equal)
}
