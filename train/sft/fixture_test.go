package sft

import (
	"context"
	stdsql "database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	_ "github.com/mattn/go-sqlite3"

	"caper/train/run"
	"caper/train/run/runtest"
)

func TestMain(m *testing.M) {
	code := runtest.Main(m, func(config string, o run.Options) error {
		c, err := LoadConfig(config, nil)
		if err == nil {
			_, err = Train(context.Background(), c, o)
		}
		return err
	})
	if dir, err := benchmark(); err == nil {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// volatile are the fields of metrics that measure time.
var volatile = []string{"tokens_per_second", "seconds"}

// benchmark is a folder of three questions to each of four databases, each asked three
// times: of a question that is held out the model has seen others. It is made once and never changed.
var benchmark = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "sft-test-")
	if err != nil {
		return "", err
	}
	return dir, writeBenchmark(dir)
})

func writeBenchmark(dir string) error {
	type question struct {
		DB       string `json:"db_id"`
		Question string `json:"question"`
		Query    string `json:"query"`
	}
	var questions []question
	for _, d := range []struct{ id, table, name, number string }{
		{"zoo", "animal", "species", "weight"}, {"port", "ship", "flag", "length"}, {"school", "pupil", "town", "age"}, {"farm", "field", "crop", "area"},
	} {
		folder := filepath.Join(dir, "database", d.id)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		db, err := stdsql.Open("sqlite3", filepath.Join(folder, d.id+".sqlite"))
		if err != nil {
			return err
		}
		_, err = db.Exec(fmt.Sprintf("CREATE TABLE %s(%s TEXT, %s INT); INSERT INTO %s VALUES ('a', 1), ('b', 2), ('c', 3)", d.table, d.name, d.number, d.table))
		db.Close()
		if err != nil {
			return err
		}
		for range 3 {
			questions = append(questions,
				question{d.id, "all " + d.name, fmt.Sprintf("SELECT %s FROM %s", d.name, d.table)},
				question{d.id, "largest " + d.number, fmt.Sprintf("SELECT max(%s) FROM %s", d.number, d.table)},
				question{d.id, d.name + " above 1", fmt.Sprintf("SELECT %s FROM %s WHERE %s > 1", d.name, d.table, d.number)})
		}
	}
	for name, content := range map[string]any{"train_spider.json": questions, "tables.json": []int{}} {
		text, err := json.Marshal(content)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// smallConfig returns a run of a few thousand weights whose steps take milliseconds: 22
// queries, 4 steps an epoch.
func smallConfig(t *testing.T, overrides ...string) Config {
	t.Helper()
	bench, err := benchmark()
	if err != nil {
		t.Fatal(err)
	}
	c, err := LoadConfig("", append([]string{
		"train.bench=" + bench, "train.out=" + filepath.Join(t.TempDir(), "run"),
		"model.hidden_size=32", "model.num_hidden_layers=2", "model.full_attention_interval=2", "model.intermediate_size=32",
		"model.num_attention_heads=2", "model.num_key_value_heads=1", "model.head_dim=8",
		"model.linear_num_key_heads=2", "model.linear_num_value_heads=2", "model.linear_key_head_dim=8", "model.linear_value_head_dim=8",
		"model.vocab_size=340", "model.logit_scale=0.2", "train.epochs=3", "train.batch_queries=6", "train.queries_together=3", "train.lr=1e-2", "train.threads=1",
		"train.holdout_databases=0.25", "train.holdout_questions=0.2", "train.max_new_tokens=24",
	}, overrides...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// opened returns a run that is ready for its first step.
func opened(t *testing.T, c Config) *sft {
	t.Helper()
	r, err := open(t.Context(), c, run.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.close)
	return r
}

// trained runs to the end.
func trained(t *testing.T, c Config, o run.Options) Outcome {
	t.Helper()
	outcome, err := Train(context.Background(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}
