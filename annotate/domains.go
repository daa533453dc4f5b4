package annotate

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"caper/sql"
	"caper/sqlexec"
)

// Bounds of the look-up of a column's values.
const (
	domainRows   = 2000 // rows read
	domainValues = 12   // distinct values kept
	domainLength = 60   // bytes of a value that can stand in a query
)

// domains samples the values that columns hold, each column once.
type domains struct {
	mu    sync.Mutex
	known map[domainKey][]string
}

type domainKey struct {
	database      *sqlexec.Database
	table, column string
}

// values samples the distinct values of a table's column, in the order of its
// rows. The look-up reads a bounded number of rows.
func (e *executor) values(ctx context.Context, table *sql.SchemaTable, column string) []string {
	key := domainKey{e.database, table.Name, column}
	if values, ok := e.domains.get(key); ok {
		return values
	}
	result, err := e.cache.Query(ctx, e.database, fmt.Sprintf(
		"SELECT DISTINCT v FROM (SELECT %s AS v FROM %s LIMIT %d) WHERE v IS NOT NULL AND length(v) BETWEEN 1 AND %d LIMIT %d",
		quoteName(column), quoteName(table.Name), domainRows, domainLength, domainValues))
	if err != nil {
		return nil
	}
	var values []string
	for _, row := range result.Rows {
		switch v := row[0].(type) {
		case string:
			if utf8.ValidString(v) {
				values = append(values, strings.Clone(v)) // not the whole result
			}
		case int64:
			values = append(values, strconv.FormatInt(v, 10))
		case float64:
			values = append(values, strconv.FormatFloat(v, 'f', -1, 64))
		}
	}
	e.domains.put(key, values)
	return values
}

func (d *domains) get(key domainKey) (values []string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	values, ok = d.known[key]
	return values, ok
}

func (d *domains) put(key domainKey, values []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil {
		d.known = make(map[domainKey][]string)
	}
	d.known[key] = values
}

func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
