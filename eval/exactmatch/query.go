package exactmatch

// Query is what the official parser keeps of a SELECT.
type Query struct {
	Distinct bool
	Select   []Item
	From     From
	Where    Conditions
	GroupBy  []Column
	Having   Conditions
	OrderBy  *Order // nil: none
	Limit    string // the token behind LIMIT, empty: none
	// SetOperator is intersect, union or except, Operand the query behind it.
	SetOperator string
	Operand     *Query
}

// Item is an item of the SELECT list.
type Item struct {
	Aggregate string // none, max, min, count, sum or avg
	Expr      Expr
}

// Expr is a column, or two with an operator between them.
type Expr struct {
	Operator    string // none, -, +, *, /
	Left, Right Column
	Binary      bool // Right is there
}

// Column is a column by its full name, table.column, or the star.
type Column struct {
	Aggregate string
	Name      string
	Distinct  bool
}

// From is the FROM clause: its tables in their order, and all ON conditions.
type From struct {
	Tables []Table
	On     Conditions
}

// Table is a table's name or a sub-query.
type Table struct {
	Name  string
	Query *Query
}

// Conditions are conditions and the words between them, AND or OR, as a flat list:
// brackets and precedence are lost. Where a word is missing, what stands in its
// place is the next condition, which the official script then takes for a word.
type Conditions struct {
	List  []Condition
	Words []Word
}

// Word stands between two conditions.
type Word struct {
	Text      string     // and, or
	Condition *Condition // in a word's place
}

// Condition is an expression, an operator and one or two values.
type Condition struct {
	Not      bool
	Operator string
	Expr     Expr
	Values   [2]*Value // the second one for BETWEEN only
}

// Value is a text, a number, a column or a sub-query.
type Value struct {
	Text   string
	Number float64
	Column *Column
	Query  *Query
}

// Order is an ORDER BY clause.
type Order struct {
	Items []Expr
	// Directions has the direction written behind each item, or "".
	Directions []string
}

// Direction is the one that the official script takes for all items: the last that
// is written, else asc.
func (o *Order) Direction() string {
	direction := "asc"
	for _, d := range o.Directions {
		if d != "" {
			direction = d
		}
	}
	return direction
}

// length is the number of conditions and words.
func (c *Conditions) length() int { return len(c.List) + len(c.Words) }

// or counts the words OR.
func (c *Conditions) or() (n int) {
	for _, w := range c.Words {
		if w.Text == "or" {
			n++
		}
	}
	return n
}

// every lists the conditions of FROM, WHERE and HAVING.
func (q *Query) every() (all []Condition) {
	for _, c := range q.conditions() {
		all = append(all, c.List...)
	}
	return all
}

func (q *Query) conditions() []*Conditions {
	return []*Conditions{&q.From.On, &q.Where, &q.Having}
}
