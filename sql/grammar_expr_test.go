package sql

// expr writes an expression of any kind.
func (w *writer) expr() {
	if w.depth <= 0 || w.chance(25) {
		if w.chance(75) {
			w.column()
		} else {
			w.literal()
		}
		return
	}
	w.nested(w.operation)
}

// operation writes an expression with an operator.
func (w *writer) operation() {
	switch w.IntN(24) {
	case 0, 1, 2:
		w.expr()
		w.put(one(w.Rand, "=", "==", "<>", "!=", "<", "<=", ">", ">=", "IS", "IS NOT", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"))
		w.expr()
	case 3, 4:
		w.expr()
		w.put(one(w.Rand, "AND", "OR"))
		w.expr()
	case 5:
		w.put(one(w.Rand, "NOT", "-", "+", "~", "- -"))
		w.expr()
	case 6, 7:
		w.expr()
		w.put(one(w.Rand, "+", "-", "*", "/", "%", "||", "&", "|", "<<", ">>"))
		w.expr()
	case 8:
		w.put("(")
		w.expr()
		w.put(")")
	case 9:
		w.expr()
		w.put(one(w.Rand, "ISNULL", "NOTNULL", "NOT NULL", "IS NULL", "IS NOT NULL"))
	case 10:
		w.expr()
		w.put(one(w.Rand, "LIKE", "NOT LIKE", "LIKE", "GLOB", "GLOB", "NOT GLOB", "REGEXP", "NOT MATCH"))
		w.expr()
		w.maybe(20, func() { w.put("ESCAPE", "'!'") })
	case 11:
		w.expr()
		w.put(one(w.Rand, "BETWEEN", "NOT BETWEEN"))
		w.expr()
		w.put("AND")
		w.expr()
	case 12:
		w.in()
	case 13:
		w.put(one(w.Rand, "EXISTS", "NOT EXISTS"))
		w.subquery(1)
	case 14:
		w.subquery(1)
	case 15:
		w.put("CASE")
		w.maybe(40, w.expr)
		for range 1 + w.IntN(2) {
			w.put("WHEN")
			w.expr()
			w.put("THEN")
			w.expr()
		}
		w.maybe(60, func() { w.put("ELSE"); w.expr() })
		w.put("END")
	case 16:
		w.put("CAST", "(")
		w.expr()
		w.put("AS", one(w.Rand, "TEXT", "INTEGER", "real", "DECIMAL(10, 2)", "unsigned big int", "'text'", ""), ")")
	case 17:
		w.expr()
		w.put("COLLATE", one(w.Rand, "NOCASE", "rtrim", "BINARY", "[nocase]"))
	case 18:
		w.rowValues()
	case 19:
		w.json()
	case 20:
		w.windowCall()
	default:
		w.call()
	}
}

func (w *writer) in() {
	w.expr()
	w.put(one(w.Rand, "IN", "NOT IN"))
	switch w.IntN(5) {
	case 0:
		w.subquery(1)
	case 1:
		w.put("(", ")")
	case 2:
		w.put(one(w.Rand, "json_each('[1]')", "main . tiny", "tiny"))
	default:
		w.put("(")
		w.list(3, w.expr)
		w.put(")")
	}
}

func (w *writer) rowValues() {
	w.put("(")
	w.column()
	w.put(",")
	w.expr()
	w.put(")")
	if w.chance(40) {
		w.put("IN")
		w.subquery(2)
		return
	}
	w.put(one(w.Rand, "=", "<", ">=", "IS NOT"))
	if w.chance(40) {
		w.subquery(2)
	} else {
		w.row(2)
	}
}

func (w *writer) json() {
	w.put(`'{"a": [1, "x"]}'`, one(w.Rand, "->", "->>"), one(w.Rand, "'a'", "'$.a'", "'$.\"a\"'"))
	w.maybe(50, func() { w.put(one(w.Rand, "->", "->>"), "1") })
}

func (w *writer) windowCall() {
	w.put(one(w.Rand, "row_number()", "rank ( )", "sum(1)", "count(*)", "lag(1, 1)", "ntile(2)"))
	if w.chance(20) {
		w.put("FILTER (WHERE 1)")
	}
	w.put("OVER")
	if w.chance(10) {
		w.put("w1")
		return
	}
	w.put("(")
	w.window()
	w.put(")")
}

func (w *writer) call() {
	switch w.IntN(4) {
	case 0:
		w.put(one(w.Rand, "coalesce", "min", "max", "nullif", "ifnull", "replace", "substr"), "(")
		w.expr()
		w.put(",")
		w.expr()
		if w.chance(30) {
			w.put(",")
			w.expr()
		}
		w.put(")")
	case 1:
		w.put("(SELECT", one(w.Rand, "group_concat", "string_agg"), "(")
		w.column()
		w.put(",", "'-'")
		w.maybe(50, func() { w.put("ORDER BY"); w.column(); w.direction() })
		w.put(")", ")")
	default:
		w.put(one(w.Rand, "abs", "lower", "UPPER", "length", "typeof", "unicode", "trim", "round", "quote", "hex"), "(")
		w.expr()
		w.put(")")
	}
}
