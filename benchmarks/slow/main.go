// Command slow measures how many of the slow queries in solve/testdata/slow.sql finish
// behind repair, on a database of a million cells without an index that it makes.
//
//	go run ./benchmarks/slow
package main

import (
	"context"
	stdsql "database/sql"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "github.com/mattn/go-sqlite3"

	"caper/data"
	"caper/solve"
	"caper/sql"
	"caper/sqlexec"
)

func main() {
	queries := flag.String("queries", "solve/testdata/slow.sql", "one query a line")
	timeout := flag.Duration("timeout", 5*time.Second, "limit of one query")
	scale := flag.Int("scale", 30_000, "customers; orders are 4 times, items 8 times as many")
	flag.Parse()
	if err := run(*queries, *timeout, *scale); err != nil {
		fmt.Fprintln(os.Stderr, "slow:", err)
		os.Exit(1)
	}
}

type ledger struct {
	db     *sqlexec.Database
	schema *sql.Schema
}

func (l ledger) Database(string) (*sqlexec.Database, error) { return l.db, nil }
func (l ledger) Schema(string) (*sql.Schema, error)         { return l.schema, nil }

func run(queries string, timeout time.Duration, scale int) error {
	text, err := os.ReadFile(queries)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "slow")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "ledger.sqlite")
	if err := build(path, scale); err != nil {
		return err
	}
	limits := sqlexec.DefaultLimits()
	limits.Timeout = timeout
	l := ledger{}
	if l.db, err = sqlexec.Open(path, limits); err != nil {
		return err
	}
	defer l.db.Close()
	if l.schema, err = l.db.Schema(); err != nil {
		return err
	}
	repairer := &solve.Repairer{Examiner: solve.NewExaminer(l, 256<<20), RepairOptions: solve.DefaultRepairOptions()}
	slow, mended, equivalent := 0, 0, 0
	for i, query := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		began := time.Now()
		c := solve.Candidate{Rollout: data.Rollout{QuestionID: data.IndexID(i), SQL: query}}
		r, err := repairer.Repair(context.Background(), solve.NewPool(data.Question{ID: data.IndexID(i)}, []solve.Candidate{c}))
		if err != nil {
			return err
		}
		x := r.Candidates[0]
		word := string(x.State)
		if x.State == solve.TimedOut || len(x.Repairs) > 0 && x.Repairs[0].State == solve.TimedOut {
			slow++
			if len(x.Repairs) > 0 {
				mended++
				word = fmt.Sprintf("by %s, %.0f ms, %d rows", x.Repairs[0].By, float64(x.Result.Elapsed.Microseconds())/1000, len(x.Result.Rows))
				if x.Repairs[0].By == "rewrite" {
					equivalent++
				}
			}
		} else {
			word = fmt.Sprintf("not slow: %s after %.1f s", x.State, time.Since(began).Seconds())
		}
		fmt.Printf("%2d  %s\n      %s\n", i+1, word, query)
	}
	fmt.Printf("%d queries take longer than %v; %d finish behind repair, %d of them by an equivalent rewrite\n", slow, timeout, mended, equivalent)
	return nil
}

func build(path string, scale int) error {
	db, err := stdsql.Open("sqlite3", path)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, s := range []string{
		`CREATE TABLE customer(id INT, name TEXT, city TEXT, since TEXT)`,
		`CREATE TABLE product(id INT, name TEXT, category TEXT, price REAL)`,
		`CREATE TABLE orders(id INT, customer_id INT REFERENCES customer(id), day TEXT, total REAL, status TEXT)`,
		`CREATE TABLE item(id INT, order_id INT REFERENCES orders(id), product_id INT REFERENCES product(id), quantity INT, price REAL)`,
		`INSERT INTO customer WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < %[1]d)
			SELECT i, 'customer ' || i, CASE i * 7919 %% 5 WHEN 0 THEN 'Rome' WHEN 1 THEN 'Oslo' WHEN 2 THEN 'Bonn' ELSE 'Lima' END, date('2019-01-01', '+' || (i %% 900) || ' days') FROM n`,
		`INSERT INTO product WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < %[1]d / 4)
			SELECT i, 'product ' || i, CASE i %% 3 WHEN 0 THEN 'toys' WHEN 1 THEN 'books' ELSE 'tools' END, i * 37 %% 100 FROM n`,
		`INSERT INTO orders WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < %[1]d * 4)
			SELECT i, 1 + i * 7907 %% (%[1]d * 5 / 4), date('2019-01-01', '+' || (i * 31 %% 900) || ' days'), i * 7907 %% 1000, CASE i %% 4 WHEN 0 THEN 'open' ELSE 'paid' END FROM n`,
		`INSERT INTO item WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < %[1]d * 8)
			SELECT i, 1 + i * 7919 %% (%[1]d * 5), 1 + i * 7879 %% (%[1]d / 4), 1 + i * 31 %% 10, i * 7907 %% 1000 FROM n`,
	} {
		if strings.HasPrefix(s, "INSERT") {
			s = fmt.Sprintf(s, scale)
		}
		if _, err := db.Exec(s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}
