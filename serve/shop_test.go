package serve

import (
	"bytes"
	"context"
	stdsql "database/sql"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3" // makes the database

	"caper/data"
	"caper/engine"
	"caper/model"
	"caper/model/qwen35"
	"caper/model/tokenizer"
	"caper/solve"
)

// hostile is a text that would run as a script, were it taken for markup.
const hostile = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`

// shop makes the test's database. A cell is hostile, one turns the direction of writing
// round, one is long, one is bytes, one is more than a browser's numbers hold.
var shop = []string{
	`CREATE TABLE maker(id INTEGER PRIMARY KEY, name TEXT, country TEXT, founded INTEGER)`,
	`CREATE TABLE car(id INTEGER PRIMARY KEY, maker_id INTEGER REFERENCES maker(id), model TEXT, price REAL)`,
	`INSERT INTO maker VALUES (1, 'Volvo', 'Sweden', 1927), (2, 'Fiat', 'Italy', 1899), (3, 'Saab', 'Sweden', 1945), (4, 'Renault', 'France', 1899)`,
	`INSERT INTO car VALUES (1, 1, 'Amazon', 10.5), (2, 2, 'Panda', 5), (3, 2, 'Tipo', 7.25), (4, 3, '900', 12), (5, 4, 'R4', 4.5)`,
	`CREATE TABLE odd(id INTEGER PRIMARY KEY, value)`,
	`INSERT INTO odd VALUES (1, '` + strings.ReplaceAll(hostile, "'", "''") + `'), (2, 'a' || char(8238) || 'b'), (3, replace(hex(zeroblob(5000)), '0', 'x')),
		(4, x'00ff'), (5, 9007199254740993), (6, NULL), (7, 0.5), (8, 9e999)`,
}

// writeBench writes a benchmark with the one database.
func writeBench(t *testing.T) *data.Benchmark {
	t.Helper()
	dir := t.TempDir()
	folder := filepath.Join(dir, "database", "shop")
	if err := os.MkdirAll(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	db, err := stdsql.Open("sqlite3", filepath.Join(folder, "shop.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range shop {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	tables := `[{"db_id":"shop","table_names_original":["maker","car","odd"],"column_names_original":[[-1,"*"],[0,"id"]],"column_types":["text","number"],"foreign_keys":[],"primary_keys":[]}]`
	if err := os.WriteFile(filepath.Join(dir, "tables.json"), []byte(tables), 0o666); err != nil {
		t.Fatal(err)
	}
	bench, err := data.OpenBenchmark(dir, "auto")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bench.Close() })
	bench.Limits.Timeout, bench.Limits.Rows, bench.Limits.Bytes = 2*time.Second, 10_000, 8<<20
	return bench
}

// scripted writes, for each question, the queries that it holds.
type scripted map[string][]string

func (g scripted) Generate(_ context.Context, q data.Question) ([]solve.Candidate, solve.Cost, error) {
	var all []solve.Candidate
	for i, text := range g[q.Question] {
		all = append(all, solve.Candidate{Rollout: data.Rollout{DBID: q.DBID, Question: q.Question, Source: []string{"ada", "bob", "eve"}[i%3], Sample: i / 3, SQL: text}})
	}
	return all, solve.Cost{Calls: 1, TokensIn: 100, TokensOut: 10 * len(all)}, nil
}

// stalled never writes anything.
type stalled struct{}

func (stalled) Generate(ctx context.Context, _ data.Question) ([]solve.Candidate, solve.Cost, error) {
	<-ctx.Done()
	return nil, solve.Cost{}, ctx.Err()
}

// Questions of the scripted generator.
const (
	askMakers  = "Which makers are from Sweden?"
	askNothing = "Which makers are from Peru?"
	askBroken  = "What is the horsepower of each car?"
	askForever = "How many chains of five cars are there?"
	askOdd     = "Show the odd values."
)

const forever = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"

var scripts = scripted{
	askMakers: {
		"SELECT name FROM maker WHERE country = 'Sweden'",
		"SELECT m.name FROM maker AS m WHERE m.country = 'sweden'",
		"SELECT nam FROM maker WHERE country = 'Sweden'",
		"SELECT name, founded FROM maker WHERE country = 'Sweden' ORDER BY founded",
		"DROP TABLE maker",
	},
	askNothing: {"SELECT name FROM maker WHERE country = 'Peru'", "SELECT m.name FROM maker AS m WHERE m.country = 'Peru'", "SELECT name FROM maker WHERE country LIKE 'Peru'"},
	askBroken:  {"SELECT horsepower FROM engine", "SELECT c.horsepower, FROM car AS c"},
	askForever: {forever, forever + " -- again"},
	askOdd:     {"SELECT id, value FROM odd ORDER BY id"},
}

// shopService is a service on the shop with the scripted generator and no reward model.
func shopService(t *testing.T) *Service {
	t.Helper()
	bench := writeBench(t)
	return &Service{
		Bench: bench, Generators: []solve.Generator{scripts}, Select: solve.DefaultOptions(), Limits: DefaultLimits(),
		Repairer: &solve.Repairer{Examiner: solve.NewExaminer(bench, 16<<20), RepairOptions: solve.DefaultRepairOptions()},
	}
}

// rewardModel is a reward model that has learnt nothing.
func rewardModel(t *testing.T, bench *data.Benchmark) *solve.RewardJudge {
	t.Helper()
	words, err := tokenizer.Train(slices.Values([]string{askMakers, scripts[askMakers][0]}), tokenizer.TrainOptions{VocabSize: 300, Added: []string{"<|im_end|>", "<|clause|>"}})
	if err != nil {
		t.Fatal(err)
	}
	shape := qwen35.Defaults()
	shape.VocabSize, shape.HiddenSize, shape.IntermediateSize, shape.Layers = 300, 32, 64, 2
	shape.Heads, shape.KVHeads, shape.HeadDim = 2, 1, 16
	shape.KeyHeads, shape.ValueHeads, shape.KeyDim, shape.ValueDim = 2, 2, 16, 16
	shape.InitRange, shape.Tied = 0.3, true
	shape.LayerTypes = qwen35.LayerTypes(2, 2)
	m, err := model.New(model.Config{Text: shape, ClauseToken: "<|clause|>", EndToken: "<|im_end|>", Reward: true}, engine.CPU(2), 4)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.SetTokenizer(words); err != nil {
		t.Fatal(err)
	}
	scorer, err := model.NewScorer(m, 0)
	if err != nil {
		t.Fatal(err)
	}
	return solve.NewRewardJudge(scorer, bench.Prompt)
}

// serving runs a service until the test ends.
func serving(t *testing.T, s *Service) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	return server
}

// request sends one request and returns its status and the JSON document of the answer. A
// header is "Name: value".
func request(t *testing.T, method, url, body string, headers ...string) (int, map[string]any) {
	t.Helper()
	r, err := http.NewRequest(method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
		if name == "Host" {
			r.Host = value
		}
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatalf("%s %s: status %d, and no JSON: %.200q", method, url, response.StatusCode, text)
	}
	return response.StatusCode, document
}

// asked is the body of a question on the shop.
func asked(question string, candidates ...string) string {
	text, _ := json.Marshal(map[string]any{"db_id": "shop", "question": question, "candidates": candidates})
	return string(text)
}
