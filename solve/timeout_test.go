package solve

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"caper/data"
	"caper/sqlexec"
)

// ledger is the schema of testdata/slow.sql: without an index, as benchmarks ship them.
var ledger = []string{
	`CREATE TABLE customer(id INT, name TEXT, city TEXT, since TEXT)`,
	`CREATE TABLE product(id INT, name TEXT, category TEXT, price REAL)`,
	`CREATE TABLE orders(id INT, customer_id INT REFERENCES customer(id), day TEXT, total REAL, status TEXT)`,
	`CREATE TABLE item(id INT, order_id INT REFERENCES orders(id), product_id INT REFERENCES product(id), quantity INT, price REAL)`,
}

func slowQueries(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/slow.sql")
	if err != nil {
		t.Fatal(err)
	}
	queries := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(queries) != 30 {
		t.Fatalf("%d queries", len(queries))
	}
	return queries
}

// randomLedger fills the tables with few values, so that rows repeat and keys dangle,
// and with NULL anywhere.
func randomLedger(r *rand.Rand) []string {
	statements := append([]string(nil), ledger...)
	value := func(values ...string) string {
		if r.IntN(6) == 0 {
			return "NULL"
		}
		return values[r.IntN(len(values))]
	}
	ids := []string{"1", "2", "3", "4", "5", "6"}
	days := []string{"'2020-01-01'", "'2020-01-02'", "'2020-03-01'"}
	money := []string{"5", "100.5", "250", "501", "850", "950"}
	for range r.IntN(9) {
		statements = append(statements, fmt.Sprintf("INSERT INTO customer VALUES (%s, %s, %s, %s)", value(ids...), value("'Ann'", "'Bo'", "'Cy'"), value("'Rome'", "'Oslo'", "'Bonn'"), value(days...)))
	}
	for range r.IntN(12) {
		statements = append(statements, fmt.Sprintf("INSERT INTO orders VALUES (%s, %s, %s, %s, %s)", value(ids...), value(ids...), value(days...), value(money...), value("'open'", "'paid'")))
	}
	for range r.IntN(20) {
		statements = append(statements, fmt.Sprintf("INSERT INTO item VALUES (%d, %s, %s, %s, %s)", r.IntN(9), value(ids...), value(ids...), value("1", "2", "9", "12"), value(money...)))
	}
	for range r.IntN(6) {
		statements = append(statements, fmt.Sprintf("INSERT INTO product VALUES (%s, %s, %s, %s)", value(ids...), value("'ball'", "'doll'"), value("'toys'", "'books'"), value(money...)))
	}
	return statements
}

// rewritten is the equivalent rewrite of a query, "" where there is none.
func rewritten(t testing.TB, d oneDatabase, query string) string {
	t.Helper()
	w := workbench{schema: d.schema}
	x := w.read(Candidate{Rollout: data.Rollout{SQL: query}})
	if x.tree == nil {
		return ""
	}
	if mends := rewriteSlow(&x); len(mends) > 0 {
		return mends[0].sql
	}
	return ""
}

// Rewrites for speed give the same bag of rows, on databases where rows repeat, keys
// dangle and anything may be NULL.
func TestSlowRewritesAreEquivalent(t *testing.T) {
	databases := 60
	if testing.Short() {
		databases = 10
	}
	counted, rows := 0, 0
	for seed := range databases {
		d := makeDatabase(t, 0, randomLedger(rand.New(rand.NewPCG(uint64(seed), 7)))...)
		for _, query := range append(slowQueries(t), slowVariants...) {
			other := rewritten(t, d, query)
			if other == "" {
				continue
			}
			want, err := d.db.Query(context.Background(), query)
			if err != nil {
				t.Fatalf("%s: %v", query, err)
			}
			got, err := d.db.Query(context.Background(), other)
			if err != nil {
				t.Fatalf("%s\n  as %s: %v", query, other, err)
			}
			if !(sqlexec.Quirks{sqlexec.OrderIgnored}).Same(want, got, query) {
				t.Fatalf("seed %d: %s\n  gives %v\n  %s\n  gives %v", seed, query, want.Rows, other, got.Rows)
			}
			counted, rows = counted+1, rows+len(want.Rows)
		}
	}
	if counted < 30*databases || rows < counted {
		t.Errorf("%d comparisons of %d rows: too few to mean anything", counted, rows)
	}
}

// slowVariants are forms that are easily got wrong.
var slowVariants = []string{
	"SELECT name FROM customer c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id AND o.day = c.since)",
	"SELECT name FROM customer c WHERE NOT (c.since IN (SELECT day FROM orders o WHERE o.customer_id = c.id))",
	"SELECT name, EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id) FROM customer c",
	"SELECT name FROM customer c WHERE EXISTS (SELECT count(*) FROM orders o WHERE o.customer_id = c.id)",
	"SELECT name FROM customer c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id LIMIT 0)",
	"SELECT name FROM customer c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id GROUP BY o.day HAVING count(*) > 1)",
	"SELECT name FROM customer c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id OR o.total > 900)",
	"SELECT *, (SELECT count(*) FROM orders o WHERE o.customer_id = c.id) FROM customer c",
	"SELECT c.*, (SELECT count(*) FROM orders o WHERE o.customer_id = c.id) FROM customer c",
	"SELECT c.city, (SELECT count(*) FROM orders o WHERE o.customer_id = c.id), count(*) FROM customer c GROUP BY c.city, c.id",
	"SELECT c.name, (SELECT count(o.total) FROM orders o WHERE o.customer_id = c.id) + 1 FROM customer c WHERE c.id > 1",
	"SELECT c.name FROM customer c WHERE (SELECT sum(o.total) FROM orders o WHERE o.customer_id = c.id) IS NULL",
	"SELECT c.name FROM customer c WHERE c.city = (SELECT max(o.status) FROM orders o WHERE o.customer_id = c.id)",
	"SELECT c.name FROM customer c LEFT JOIN product p ON p.id = c.id WHERE (SELECT count(*) FROM orders o WHERE o.customer_id = p.id) = 0",
	"SELECT c.name FROM customer c WHERE c.id IN (SELECT id FROM product p WHERE EXISTS (SELECT 1 FROM item i WHERE i.product_id = p.id))",
	"SELECT o.id FROM orders o WHERE (SELECT count(*) FROM item i WHERE i.order_id = o.id AND EXISTS (SELECT 1 FROM product p WHERE p.id = i.product_id)) > 0",
	"SELECT c.name FROM customer c WHERE (SELECT count(*) FROM orders o WHERE o.day = c.id) = 0",
	"SELECT city FROM (SELECT DISTINCT city FROM customer ORDER BY city) WHERE city > 'C'",
	"SELECT group_concat(city) FROM (SELECT city FROM customer ORDER BY city)",
	"SELECT name FROM customer WHERE city IN (SELECT city FROM customer ORDER BY since LIMIT 2)",
}

// The same holds for what systems wrote about real databases.
func TestSlowRewritesOfPublishedQueries(t *testing.T) {
	bench := sharedBenchmark(t, "../../shared/data/spider")
	seen, counted := map[string]bool{}, 0
	for r, err := range data.ReadRollouts("../../shared/data/predictions/spider_dev.jsonl", bench, "dev") {
		if err != nil {
			t.Fatal(err)
		}
		db, err := bench.Database(r.DBID)
		if err != nil || seen[r.DBID+r.SQL] {
			continue
		}
		seen[r.DBID+r.SQL] = true
		schema, err := bench.Schema(r.DBID)
		if err != nil {
			t.Fatal(err)
		}
		other := rewritten(t, oneDatabase{db, schema}, r.SQL)
		if other == "" {
			continue
		}
		want, err := db.Query(context.Background(), r.SQL)
		if err != nil {
			continue
		}
		got, err := db.Query(context.Background(), other)
		if err != nil || !(sqlexec.Quirks{sqlexec.OrderIgnored}).Same(want, got, r.SQL) {
			t.Errorf("%s: %s\n  as %s: %v", r.DBID, r.SQL, other, err)
		}
		counted++
	}
	if counted < 15 {
		t.Errorf("only %d queries were rewritten", counted)
	}
	t.Logf("%d queries", counted)
}

// Tables without a condition are joined by their foreign key, which is no equivalent
// and said so.
func TestMissingJoinCondition(t *testing.T) {
	d := makeDatabase(t, 0, ledger...)
	for query, want := range map[string]string{
		"SELECT count(*) FROM customer, orders WHERE city = 'Rome'":            "SELECT count(*) FROM customer, orders WHERE city = 'Rome' AND customer.id = orders.customer_id",
		"SELECT count(*) FROM customer c JOIN orders o":                        "SELECT count(*) FROM customer AS c JOIN orders AS o WHERE c.id = o.customer_id",
		"SELECT count(*) FROM customer c, orders o WHERE c.id = o.customer_id": "",
		"SELECT count(*) FROM customer c, product p":                           "",
	} {
		w := workbench{schema: d.schema}
		x := w.read(Candidate{Rollout: data.Rollout{SQL: query}})
		got := ""
		if mends := addKeys(&x, d.schema); len(mends) > 0 {
			got = mends[0].sql
		}
		if got != want {
			t.Errorf("%s\n  gives %s\n  want  %s", query, got, want)
		}
	}
}

// A query that runs out of time is mended to one that does not, in a database that is
// just too large for it.
func TestTimeoutIsRepaired(t *testing.T) {
	const rows = 4000
	numbers := fmt.Sprintf("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < %d)", rows)
	d := makeDatabase(t, 400*time.Millisecond, append(ledger,
		"INSERT INTO customer "+numbers+" SELECT i, 'c' || i, 'Rome', '2020-01-01' FROM n",
		"INSERT INTO orders "+numbers+" SELECT i, i % 1000, '2020-01-01', i, 'open' FROM n, (SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6)")...)
	query := "SELECT c.name, (SELECT count(*) FROM orders o WHERE o.customer_id = c.id) FROM customer c"
	r, err := repairer(d).Repair(context.Background(), pool(rollout("a", query)))
	if err != nil {
		t.Fatal(err)
	}
	x := r.Candidates[0]
	if x.State != Clean || len(x.Repairs) != 1 || x.Repairs[0].State != TimedOut || len(x.Result.Rows) != rows {
		t.Errorf("%s after %+v", x.State, x.Repairs)
	}
}
