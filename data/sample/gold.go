package sample

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// compose finds the questions of every split. A query is kept when it runs,
// returns between 1 and maxRows rows that are not all NULL, returns the same
// whatever order SQLite visits rows in (so that the gold result is a fact about
// the data), and is new in this database.
func (d *database) compose(connection *sql.DB, seed uint64) error {
	const maxRows, tries, triesOfAShape = 1000, 400, 16
	seen := map[string]bool{}
	for _, split := range Splits {
		for i := range d.splits[split] {
			r := randomFor(seed, "question", d.schema.id, split, fmt.Sprint(i))
			b := &builder{r, d}
			found, shape := false, b.shape()
			if split == Train && i == d.splits[split]-1 {
				shape = b.lastShape(seed, shape)
			}
			for t := 1; t <= tries && !found; t++ {
				if t%triesOfAShape == 0 {
					shape = b.shape()
				}
				q, ok := shape()
				if !ok {
					continue
				}
				e := example{split: split, query: q, style: goldStyle(r), question: q.Question(r)}
				text := q.SQL(Style{})
				if seen[text] || seen[e.question] {
					continue
				}
				ok, err := wellDefined(connection, q.SQL(e.style), maxRows)
				if err != nil {
					return fmt.Errorf("gold query %s: %w", text, err)
				}
				if ok {
					seen[text], seen[e.question] = true, true
					d.examples = append(d.examples, e)
					found = true
				}
			}
			if !found {
				return fmt.Errorf("no new question for split %s after %d tries: ask for fewer questions a database", split, tries)
			}
		}
	}
	return nil
}

func wellDefined(connection *sql.DB, query string, maxRows int) (bool, error) {
	forward, err := run(context.Background(), connection, query, maxRows)
	if err != nil || len(forward) == 0 || len(forward) > maxRows {
		return false, err
	}
	informative := false
	for _, row := range forward {
		for _, v := range row {
			informative = informative || v != nil
		}
	}
	if !informative {
		return false, nil
	}
	if _, err := connection.Exec("PRAGMA reverse_unordered_selects = ON"); err != nil {
		return false, err
	}
	backward, err := run(context.Background(), connection, query, maxRows)
	if err != nil {
		return false, err
	}
	if _, err := connection.Exec("PRAGMA reverse_unordered_selects = OFF"); err != nil {
		return false, err
	}
	return sameRows(forward, backward, strings.Contains(query, "ORDER BY")), nil
}

// run returns at most limit+1 rows of a query.
func run(ctx context.Context, connection *sql.DB, query string, limit int) ([][]any, error) {
	cursor, err := connection.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer cursor.Close()
	columns, err := cursor.Columns()
	if err != nil {
		return nil, err
	}
	var rows [][]any
	for len(rows) <= limit && cursor.Next() {
		row, targets := make([]any, len(columns)), make([]any, len(columns))
		for c := range row {
			targets[c] = &row[c]
		}
		if err := cursor.Scan(targets...); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, cursor.Err()
}

// sameRows compares two results as lists or as bags.
func sameRows(a, b [][]any, ordered bool) bool {
	if len(a) != len(b) {
		return false
	}
	count := map[string]int{}
	for i := range a {
		x, y := fmt.Sprintf("%#v", a[i]), fmt.Sprintf("%#v", b[i])
		if ordered && x != y {
			return false
		}
		count[x]++
		count[y]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}
