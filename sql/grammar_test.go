package sql

import (
	"math/rand/v2"
	"strconv"
	"strings"
)

// writer draws random statements from SQLite's SELECT grammar. Names mostly exist
// where they are used, so that most statements prepare and run on the database
// of toys_test.go.
type writer struct {
	*rand.Rand
	text   strings.Builder
	tables []toySource   // of the schema
	common []toySource   // WITH tables in view
	scopes [][]toySource // sources in view, innermost block last
	depth  int           // of blocks and expressions that may still nest
	alias  int
}

// toySource is something with a name and columns: a table, or a source in FROM.
type toySource struct {
	name    string
	columns []string
}

// writeStatement draws one statement over the given tables.
func writeStatement(rng *rand.Rand, tables []toySource) string {
	w := &writer{Rand: rng, tables: tables, depth: 1 + rng.IntN(4)}
	w.query(1 + rng.IntN(3))
	if w.chance(10) {
		w.put(";")
	}
	return w.text.String()
}

func (w *writer) chance(percent int) bool { return w.IntN(100) < percent }

// one draws one of the alternatives.
func one[T any](rng *rand.Rand, alternatives ...T) T {
	return alternatives[rng.IntN(len(alternatives))]
}

// put writes tokens with white space, or now and then a comment, before each.
func (w *writer) put(tokens ...string) {
	for _, t := range tokens {
		w.text.WriteString(w.space())
		if w.chance(5) {
			t = strings.ToLower(t)
		}
		w.text.WriteString(t)
	}
}

func (w *writer) space() string {
	if w.chance(95) {
		return " "
	}
	return one(w.Rand, "\n", "\t", "  ", " /* a, (b */ ", " -- it's\n")
}

// maybe calls f with the given probability.
func (w *writer) maybe(percent int, f func()) {
	if w.chance(percent) {
		f()
	}
}

// list calls f for each of one to most elements with commas between.
func (w *writer) list(most int, f func()) {
	for i := range 1 + w.IntN(most) {
		if i > 0 {
			w.put(",")
		}
		f()
	}
}

// nested calls f one level deeper.
func (w *writer) nested(f func()) {
	w.depth--
	f()
	w.depth++
}

func (w *writer) name(name string) {
	switch w.IntN(14) {
	case 0:
		name = quoted(name, `"`)
	case 1:
		name = quoted(name, "`")
	case 2:
		name = "[" + name + "]"
	case 3:
		name = strings.ToUpper(name)
		fallthrough
	default:
		name = quoteName(name)
	}
	w.text.WriteString(" " + name)
}

func (w *writer) fresh() string {
	w.alias++
	return one(w.Rand, "t", "x", "Rank", "key", "a b") + strconv.Itoa(w.alias)
}

// query writes a statement or sub-query of the given number of columns.
func (w *writer) query(columns int) {
	common := len(w.common)
	w.maybe(12, w.with)
	names, values := w.core(columns)
	for w.chance(12) {
		w.put(one(w.Rand, "UNION", "UNION ALL", "INTERSECT", "EXCEPT"))
		_, values = w.core(columns)
		names = nil
	}
	if values { // takes neither ORDER BY nor LIMIT
		w.common = w.common[:common]
		return
	}
	w.maybe(25, func() {
		w.put("ORDER BY")
		w.list(2, func() {
			switch {
			case len(names) == 0 || w.chance(40):
				w.put(strconv.Itoa(1 + w.IntN(columns)))
			default:
				w.name(names[w.IntN(len(names))])
			}
			w.direction()
		})
	})
	w.maybe(15, func() {
		w.put("LIMIT", one(w.Rand, "3", "1", "10", "-1", "2 + 1", "(2)"))
		w.maybe(30, func() { w.put(one(w.Rand, "OFFSET", ","), "1") })
	})
	w.common = w.common[:common]
}

func (w *writer) direction() {
	w.maybe(15, func() { w.put("COLLATE", one(w.Rand, "NOCASE", "binary", `"rtrim"`)) })
	w.maybe(40, func() { w.put(one(w.Rand, "ASC", "DESC")) })
	w.maybe(15, func() { w.put("NULLS", one(w.Rand, "FIRST", "LAST")) })
}

func (w *writer) with() {
	w.put("WITH")
	recursive := w.chance(30)
	if recursive {
		w.put("RECURSIVE")
	}
	w.list(2, func() {
		s := toySource{name: w.fresh()}
		n := 1 + w.IntN(2)
		for range n {
			s.columns = append(s.columns, w.fresh())
		}
		w.name(s.name)
		w.put("(")
		for i, c := range s.columns {
			if i > 0 {
				w.put(",")
			}
			w.name(c)
		}
		w.put(")", "AS", one(w.Rand, "", "", "MATERIALIZED", "NOT MATERIALIZED"), "(")
		if recursive && n == 1 {
			w.put("SELECT 1", one(w.Rand, "UNION", "UNION ALL"), "SELECT")
			w.name(s.columns[0])
			w.put("+ 1", "FROM")
			w.name(s.name)
			w.put("WHERE")
			w.name(s.columns[0])
			w.put("<", "5")
		} else {
			w.nested(func() { w.query(n) })
		}
		w.put(")")
		w.common = append(w.common, s)
	})
}

// core writes one SELECT block or VALUES and returns the aliases it gives.
func (w *writer) core(columns int) (aliases []string, values bool) {
	if w.chance(4) {
		w.put("VALUES")
		w.list(3, func() { w.row(columns) })
		return nil, true
	}
	from := w.text.String() // FROM is drawn first: the projection needs its names
	w.text.Reset()
	var sources []toySource
	if w.chance(95) {
		sources = w.from()
	}
	fromText := w.text.String()
	w.text.Reset()
	w.text.WriteString(from)

	w.scopes = append(w.scopes, sources)
	aggregates := w.chance(30)
	w.put("SELECT", one(w.Rand, "", "", "", "", "DISTINCT", "ALL"))
	for i := range columns {
		if i > 0 {
			w.put(",")
		}
		if aggregates && w.chance(60) {
			w.aggregate()
		} else {
			w.expr()
		}
		w.maybe(40, func() {
			aliases = append(aliases, w.fresh())
			w.put(one(w.Rand, "AS", ""))
			w.name(aliases[len(aliases)-1])
		})
	}
	w.text.WriteString(fromText)
	w.maybe(50, func() { w.put("WHERE"); w.expr() })
	if aggregates {
		w.maybe(70, func() { w.put("GROUP BY"); w.list(2, w.column) })
		w.maybe(30, func() { w.put("HAVING"); w.aggregate(); w.put(one(w.Rand, ">", "<=", "IS NOT"), "1") })
	}
	w.maybe(4, func() {
		w.put("WINDOW w1 AS (")
		w.window()
		w.put(")")
	})
	w.scopes = w.scopes[:len(w.scopes)-1]
	return aliases, false
}

func (w *writer) row(columns int) {
	w.put("(")
	for i := range columns {
		if i > 0 {
			w.put(",")
		}
		w.literal()
	}
	w.put(")")
}

// from writes a FROM clause and returns the sources it brings into view.
func (w *writer) from() (sources []toySource) {
	w.put("FROM")
	if w.chance(8) {
		w.put("(")
		sources = w.sources()
		w.put(")")
		w.maybe(50, func() { w.put("JOIN"); sources = append(sources, w.source()) })
		return sources
	}
	return w.sources()
}

func (w *writer) sources() []toySource {
	sources := []toySource{w.source()}
	for w.chance(35) && len(sources) < 4 {
		w.put(one(w.Rand, ",", "JOIN", "JOIN", "INNER JOIN", "LEFT JOIN", "LEFT OUTER JOIN", "RIGHT JOIN", "FULL OUTER JOIN",
			"CROSS JOIN", "NATURAL JOIN", "NATURAL LEFT JOIN"))
		natural := strings.Contains(w.text.String()[max(0, w.text.Len()-20):], "NATURAL")
		if w.chance(6) {
			w.put("(")
			sources = append(sources, w.source())
			w.put("JOIN")
			sources = append(sources, w.source())
			w.put(")")
		} else {
			sources = append(sources, w.source())
		}
		switch {
		case natural:
		case w.chance(15):
			w.put("USING (", one(w.Rand, "id", "name", "ID", `"name"`), ")")
		case w.chance(75):
			w.put("ON")
			w.scopes = append(w.scopes, sources)
			w.nested(w.comparison)
			w.maybe(20, func() { w.put("AND"); w.nested(w.comparison) })
			w.scopes = w.scopes[:len(w.scopes)-1]
		}
	}
	return sources
}

// source writes one source.
func (w *writer) source() toySource {
	switch {
	case w.chance(4):
		s := toySource{w.fresh(), []string{"key", "value", "type"}}
		w.put(one(w.Rand, "json_each", "json_tree"), "(", one(w.Rand, `'[1,2]'`, `'{"a":1}'`), ")", "AS")
		w.name(s.name)
		return s
	case w.chance(10) && w.depth > 0:
		n := 1 + w.IntN(2)
		s := toySource{name: w.fresh()}
		w.put("(", "SELECT")
		inner := w.tables[w.IntN(len(w.tables))]
		for i := range n {
			if i > 0 {
				w.put(",")
			}
			w.name(inner.columns[w.IntN(len(inner.columns))])
			s.columns = append(s.columns, w.fresh())
			w.put("AS")
			w.name(s.columns[i])
		}
		w.put("FROM")
		w.name(inner.name)
		w.put(")", one(w.Rand, "AS", ""))
		w.name(s.name)
		return s
	}
	tables := append(w.tables[:len(w.tables):len(w.tables)], w.common...)
	table := tables[w.IntN(len(tables))]
	w.maybe(3, func() {
		if len(table.columns) > 2 { // no common table
			w.put("main", ".")
		}
	})
	isSinger := table.name == "singer"
	w.name(table.name)
	w.maybe(60, func() {
		table.name = w.fresh()
		w.put(one(w.Rand, "AS", ""))
		w.name(table.name)
	})
	w.maybe(3, func() {
		if isSinger {
			w.put(one(w.Rand, "INDEXED BY by_age", "NOT INDEXED"))
		} else {
			w.put("NOT INDEXED")
		}
	})
	return table
}

// column writes a column that is in view, mostly.
func (w *writer) column() {
	var scope []toySource
	if len(w.scopes) > 0 {
		scope = w.scopes[len(w.scopes)-1]
		if len(w.scopes) > 1 && w.chance(15) {
			scope = w.scopes[w.IntN(len(w.scopes))]
		}
	}
	if len(scope) == 0 {
		w.literal()
		return
	}
	s := scope[w.IntN(len(scope))]
	if w.chance(2) {
		w.put(one(w.Rand, "rowid", "oid", `"nobody"`, "nobody"))
		return
	}
	if len(scope) > 1 || w.chance(40) {
		w.name(s.name)
		w.text.WriteString(one(w.Rand, ".", ".", ".", " . "))
	}
	w.name(s.columns[w.IntN(len(s.columns))])
}

func (w *writer) literal() {
	w.put(one(w.Rand, "1", "0", "2", "30", "1.5", ".5", "1e1", "0x1F", "1_000", "'x'", "'it''s'", "''", `"Paris"`, "x'ab01'", "NULL", "TRUE",
		"false", "CURRENT_DATE", "-1", "+2", "'20'", "9223372036854775808", "-9223372036854775808"))
}

func (w *writer) comparison() {
	w.column()
	w.put(one(w.Rand, "=", "=", "==", "<>", "!=", "<", ">="))
	w.column()
}

// subquery writes a parenthesised query.
func (w *writer) subquery(columns int) {
	w.put("(")
	w.nested(func() { w.query(columns) })
	w.put(")")
}

func (w *writer) aggregate() {
	w.put(one(w.Rand, "count(*)", "count (*)", "COUNT(1)"))
	if w.chance(60) {
		w.text.WriteString(" + ")
		w.put(one(w.Rand, "count", "sum", "avg", "min", "MAX", "total", `"sum"`), "(", one(w.Rand, "", "", "DISTINCT", "ALL"))
		w.column()
		w.put(")")
		w.maybe(15, func() { w.put("FILTER (WHERE"); w.nested(w.comparison); w.put(")") })
	}
}

func (w *writer) window() {
	w.maybe(50, func() { w.put("PARTITION BY"); w.list(2, w.column) })
	w.maybe(70, func() {
		w.put("ORDER BY")
		w.column()
		w.direction()
		w.maybe(40, func() {
			w.put(one(w.Rand, "ROWS", "GROUPS"), one(w.Rand, "UNBOUNDED PRECEDING", "BETWEEN 1 PRECEDING AND CURRENT ROW",
				"BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", "BETWEEN 1 + 1 PRECEDING AND 2 FOLLOWING", "CURRENT ROW"))
			w.maybe(40, func() { w.put("EXCLUDE", one(w.Rand, "NO OTHERS", "CURRENT ROW", "GROUP", "TIES")) })
		})
	})
}
