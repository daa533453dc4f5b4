package solve

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"caper/sql"
	"caper/sqlexec"
)

// maxDomain is how many distinct values of a column are looked at. Columns with more
// hold texts or measurements that nobody cites from memory.
const maxDomain = 5000

// domain is the distinct values of a column, NULL left out. Where there are more than
// maxDomain it is not whole, and says nothing of what is absent.
type domain struct {
	texts   []string // as literals say them
	numbers bool     // all are numbers
	whole   bool
}

// domains reads the domain of each column once. It is safe for concurrent use.
type domains struct {
	mu    sync.Mutex
	known map[domainKey]*domainOnce
}

type domainKey struct{ path, table, column string }

type domainOnce struct {
	once sync.Once
	domain
	err error
}

// of returns the values of a base table's column.
func (d *domains) of(ctx context.Context, db *sqlexec.Database, table, column string) (domain, error) {
	key := domainKey{db.Path(), strings.ToLower(table), strings.ToLower(column)}
	d.mu.Lock()
	if d.known == nil {
		d.known = map[domainKey]*domainOnce{}
	}
	entry := d.known[key]
	if entry == nil {
		entry = &domainOnce{}
		d.known[key] = entry
	}
	d.mu.Unlock()
	entry.once.Do(func() { entry.domain, entry.err = readDomain(ctx, db, table, column) })
	return entry.domain, entry.err
}

// readDomain gives up, without an error, on a column that takes too long.
func readDomain(ctx context.Context, db *sqlexec.Database, table, column string) (domain, error) {
	name := quoteName(column)
	result, err := db.Query(ctx, fmt.Sprintf("SELECT DISTINCT %s FROM %s WHERE %s IS NOT NULL LIMIT %d", name, quoteName(table), name, maxDomain+1))
	if err != nil {
		return domain{}, notFailure(err)
	}
	out := domain{whole: len(result.Rows) <= maxDomain && !result.Truncated, numbers: len(result.Rows) > 0}
	for _, row := range result.Rows {
		switch v := row[0].(type) {
		case string:
			out.texts, out.numbers = append(out.texts, strings.Clone(v)), false
		case int64:
			out.texts = append(out.texts, strconv.FormatInt(v, 10))
		case float64:
			out.texts = append(out.texts, strconv.FormatFloat(v, 'f', -1, 64))
		}
	}
	return out, nil
}

// plainText is a text without what people spell differently: case and space.
func plainText(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }

// literalSimilarity is how alike a literal and a value must be to be taken for it.
const literalSimilarity = 0.75

// match finds the one value that a literal which is none of them stands for: the same
// but for case and space; then one that has the literal among its words, or is most of
// the literal's; then the most similar.
func (d domain) match(literal string) (value, how string, ok bool) {
	plain := plainText(literal)
	for _, way := range []struct {
		how   string
		least float64
		score func(string) float64
	}{
		{"the same but for case and space", 1, func(v string) float64 { return truth(plainText(v) == plain) }},
		{"in its words", 1, func(v string) float64 {
			value := plainText(v)
			return truth(hasWords(value, plain) || hasWords(plain, value) && 2*len(value) >= len(plain))
		}},
		{"spelled alike", literalSimilarity, func(v string) float64 { return similarity(plainText(v), plain) }},
	} {
		if way.least < 1 && strings.ContainsAny(plain, "0123456789") {
			break // another digit is another thing, not another spelling
		}
		if i := bestOf(d.texts, way.least, way.score); i >= 0 {
			return d.texts[i], way.how, true
		}
	}
	return "", "", false
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// hasWords reports that a text has another of three letters or more, whole words of it.
func hasWords(text, part string) bool {
	const least = 3
	return len(part) >= least && strings.Contains(" "+text+" ", " "+part+" ")
}

// values are those of a base table's column.
func (w *workbench) values(table, column string) (domain, error) {
	return w.domains.of(w.ctx, w.db, table, column)
}

// exists reports that a column has a value for which a comparison with a literal holds.
func (w *workbench) exists(table, column, operator, literal string) (bool, error) {
	result, err := w.query(fmt.Sprintf("SELECT 1 FROM %s WHERE %s %s %s LIMIT 1", quoteName(table), quoteName(column), operator, literal))
	if err != nil {
		return false, notFailure(err)
	}
	return len(result.Rows) > 0, nil
}

// baseColumn follows a column through sub-queries to the base table that it is read
// from.
func baseColumn(scopes *sql.Scopes, n *sql.Node) (table *sql.SchemaTable, column *sql.SchemaColumn, ok bool) {
	b := scopes.Binding(n)
	if b.Meaning == sql.MeansOutput && b.Expr.Kind == sql.Column {
		b = scopes.Binding(b.Expr)
	}
	if b.Meaning != sql.MeansColumn || b.Column < 0 {
		return nil, nil, false
	}
	source, i := b.Source, b.Column
	for source.Table == nil {
		output := source.Columns[i]
		if output.Expr != nil {
			if output.Expr.Kind != sql.Column {
				return nil, nil, false
			}
			return baseColumn(scopes, output.Expr)
		}
		if output.Source == nil {
			return nil, nil, false
		}
		source, i = output.Source, output.Column
	}
	return source.Table, &source.Table.Columns[i], true
}
