package sample

import "encoding/json"

// Query is a SELECT statement as a value. The generator composes it, the
// question and the SQL text are rendered from it, and the simulated writers put
// faults into copies of it. Its JSON form is a line of plans/SPLIT.jsonl.
type Query struct {
	// With is the body of the one common table expression, named CTEName; the
	// query then reads it in place of its table.
	With     *Query `json:"with,omitempty"`
	Distinct bool   `json:"distinct,omitempty"`
	Select   []Term `json:"select"`
	// Table is the table of FROM; Derived replaces it by a sub-query.
	Table   string `json:"table,omitempty"`
	Derived *Query `json:"derived,omitempty"`
	Joins   []Join `json:"joins,omitempty"`
	// Subject is the table whose rows the query is about, in the question's
	// words: the one that refers, over foreign keys, to all others.
	Subject string      `json:"subject"`
	Where   []Condition `json:"where,omitempty"`
	Or      bool        `json:"or,omitempty"` // connects Where; otherwise AND
	Group   []Column    `json:"group,omitempty"`
	Having  []Condition `json:"having,omitempty"` // all must hold
	Window  *Window     `json:"window,omitempty"`
	// Set is "UNION", "UNION ALL", "INTERSECT" or "EXCEPT", with Right its
	// right operand. Order and Limit then apply to the whole.
	Set   string      `json:"set,omitempty"`
	Right *Query      `json:"right,omitempty"`
	Order []OrderTerm `json:"order,omitempty"`
	Limit int         `json:"limit,omitempty"` // 0: none
}

// Names that the generator gives to parts of a query.
const (
	CTEName    = "chosen" // the common table expression
	TallyName  = "tally"  // the aggregate column of a derived table
	WindowName = "peers"  // the window
)

// Column names a column of a base table; Name "*" stands for all of them.
type Column struct {
	Table string `json:"table,omitempty"`
	Name  string `json:"name"`
}

// Join adds Table, matched by Left = Right.
type Join struct {
	Kind  string `json:"kind"` // "JOIN" or "LEFT JOIN"
	Table string `json:"table"`
	Left  Column `json:"left"`
	Right Column `json:"right"`
}

// Window is WINDOW peers AS (PARTITION BY Partition ORDER BY Order), through which
// terms with Over look.
type Window struct {
	Partition Column      `json:"partition"`
	Order     []OrderTerm `json:"order,omitempty"`
}

// Term is an expression: a column, an aggregate over a column (Func) or a rank
// (which has none), two columns and an arithmetic operator (Op, Right), or a Case.
type Term struct {
	Func     string  `json:"func,omitempty"`
	Distinct bool    `json:"distinct,omitempty"` // inside the aggregate
	Over     bool    `json:"over,omitempty"`     // the query's window
	Column   Column  `json:"column"`
	Op       string  `json:"op,omitempty"`
	Right    *Column `json:"right,omitempty"`
	Case     *Case   `json:"case,omitempty"`
	// Alias is the output name inside a derived table.
	Alias string `json:"alias,omitempty"`
}

// Case is CASE WHEN When THEN Then ELSE Else END.
type Case struct {
	When Condition `json:"when"`
	Then string    `json:"then"`
	Else string    `json:"else"`
}

// Condition is Left Op Values or Left Op (Query). Values are SQL literals.
// Op is a comparison, "between", "in", "not in", "is null", "is not null", a
// text test ("starts", "ends", "contains", "lacks": LIKE patterns), "exists" or
// "not exists". The last two hold their correlation as IN does: Left is the
// outer column, the sub-query's only projection the inner one.
type Condition struct {
	Left   Term     `json:"left"`
	Op     string   `json:"op"`
	Values []string `json:"values,omitempty"`
	Query  *Query   `json:"query,omitempty"`
}

// OrderTerm is one key of ORDER BY.
type OrderTerm struct {
	Term Term `json:"term"`
	Desc bool `json:"desc,omitempty"`
}

func columnTerm(c Column) Term { return Term{Column: c} }

// countAll is count(*).
var countAll = Term{Func: "count", Column: Column{Name: "*"}}

// plain says that t is nothing but a column.
func (t Term) plain() bool { return t.Func == "" && t.Op == "" && t.Case == nil }

// sameTerm compares two terms by their meaning.
func sameTerm(a, b Term) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// Clone returns a deep copy. Going through JSON keeps it complete when a field
// is added; a fault costs one copy, so its price does not matter.
func (q *Query) Clone() *Query {
	text, err := json.Marshal(q)
	if err != nil {
		panic("sample: a Query must marshal: " + err.Error())
	}
	var c Query
	if err := json.Unmarshal(text, &c); err != nil {
		panic("sample: a Query must unmarshal: " + err.Error())
	}
	return &c
}

// tables lists the base tables of FROM.
func (q *Query) tables() []string {
	var names []string
	if q.Table != "" {
		names = append(names, q.Table)
	}
	for _, j := range q.Joins {
		names = append(names, j.Table)
	}
	return names
}

func (q *Query) reads(table string) bool {
	for _, t := range q.tables() {
		if t == table {
			return true
		}
	}
	return false
}

// ownTerms visits every term of q's clauses, in place; sub-queries keep theirs.
func (q *Query) ownTerms(visit func(*Term)) {
	for i := range q.Select {
		visit(&q.Select[i])
		if c := q.Select[i].Case; c != nil {
			visit(&c.When.Left)
		}
	}
	for i := range q.Where {
		visit(&q.Where[i].Left)
	}
	for i := range q.Having {
		visit(&q.Having[i].Left)
	}
	for i := range q.Order {
		visit(&q.Order[i].Term)
	}
	if q.Window != nil {
		for i := range q.Window.Order {
			visit(&q.Window.Order[i].Term)
		}
	}
}

// blocks visits q and every query inside it.
func (q *Query) blocks(visit func(*Query)) {
	visit(q)
	for _, inner := range []*Query{q.With, q.Derived, q.Right} {
		if inner != nil {
			inner.blocks(visit)
		}
	}
	for _, conditions := range [][]Condition{q.Where, q.Having} {
		for _, c := range conditions {
			if c.Query != nil {
				c.Query.blocks(visit)
			}
		}
	}
}

// constructs names what q uses, for counting coverage.
func constructs(q *Query) map[string]bool {
	used := map[string]bool{}
	mark := func(name string, is bool) {
		if is {
			used[name] = true
		}
	}
	mark("order by", len(q.Order) > 0)
	mark("limit", q.Limit > 0)
	mark("limit of sorted rows", q.Limit > 0 && q.With != nil && len(q.With.Order) > 0)
	mark("window", q.Window != nil)
	mark("cte", q.With != nil)
	mark("from subquery", q.Derived != nil)
	joins := []string{"no join", "one join", "two joins", "three joins"}
	mark(joins[min(len(q.Joins), 3)], true)
	q.blocks(func(b *Query) {
		mark("distinct", b.Distinct)
		mark("where", len(b.Where) > 0)
		mark("or", b.Or)
		mark("group by", len(b.Group) > 0)
		mark("having", len(b.Having) > 0)
		mark("having twice", len(b.Having) > 1)
		mark(b.Set, b.Set != "")
		for _, j := range b.Joins {
			mark("left join", j.Kind == "LEFT JOIN")
		}
		b.ownTerms(func(t *Term) {
			mark(t.Func, t.Func != "")
			mark("arithmetic", t.Op != "")
			mark("case", t.Case != nil)
		})
		for _, c := range append(append([]Condition(nil), b.Where...), b.Having...) {
			mark(constructOf(c), true)
		}
	})
	return used
}

func constructOf(c Condition) string {
	switch {
	case c.Op == "exists" || c.Op == "not exists":
		return "exists"
	case c.Query != nil && (c.Op == "in" || c.Op == "not in"):
		return "in subquery"
	case c.Query != nil:
		return "scalar subquery"
	case c.Op == "in" || c.Op == "not in":
		return "in list"
	case c.Op == "is null" || c.Op == "is not null":
		return "is null"
	case likePattern[c.Op].operator != "":
		return "like"
	case c.Op == "between":
		return "between"
	default:
		return "comparison"
	}
}
