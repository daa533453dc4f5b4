package fill

import (
	"maps"
	"math/rand/v2"
	"strings"

	"caper/sql"
)

// witness is a set of rows that makes a query return something: one draft of a
// row for each table that the query reads, its cells unknowns, and restrictions on
// these.
type witness struct {
	query *query
	r     *rand.Rand
	// value runs a sub-query alone on the rows as they are.
	value        func(text string) (any, bool)
	drafts       []*draft
	unknowns     []*unknown
	restrictions []restriction
	blocks       int
}

// A witness has no more drafts and blocks than these: a recursive common table
// would never end. What goes beyond them is left out.
const (
	maxDrafts = 400
	maxBlocks = 300
)

func (w *witness) isFull() bool { return w.blocks >= maxBlocks || len(w.drafts) >= maxDrafts }

// draft is a row to be. A nil cell may be anything.
type draft struct {
	table *table
	cells []*unknown
	// referred marks a row that is there only because others refer to it; one
	// that exists already will do.
	referred bool
}

// unknown is a value that one or several cells share.
type unknown struct {
	same    *unknown // the unknown that it has become one with
	columns []*column
	value   any
	known   bool
	fresh   bool // must be a value that no row has yet
}

// restriction says that a comparison holds between two unknowns.
type restriction struct {
	operator    string
	left, right *unknown
	part        *part // of left, that is compared; nil for all of it
}

// sources maps the sources in view of a block to where their columns are.
type sources map[*sql.Source]origin

// origin is a draft for a base table, else what the block behind the source sees.
type origin struct {
	draft *draft
	inner sources
}

func newWitness(q *query, r *rand.Rand, value func(string) (any, bool)) *witness {
	w := &witness{query: q, r: r, value: value}
	w.block(q.tree, nil)
	return w
}

func (w *witness) unknown(c *column) *unknown {
	u := &unknown{}
	if c != nil {
		u.columns = []*column{c}
	}
	w.unknowns = append(w.unknowns, u)
	return u
}

func (w *witness) constant(v any) *unknown {
	u := w.unknown(nil)
	u.value, u.known = v, true
	return u
}

func (u *unknown) root() *unknown {
	for u.same != nil {
		u = u.same
	}
	return u
}

// unify makes two unknowns one. Two different constants stay two; then the witness
// fails when it is checked.
func unify(a, b *unknown) {
	if a == nil || b == nil {
		return
	}
	if a, b = a.root(), b.root(); a == b || a.known && b.known {
		return
	}
	if b.known {
		a, b = b, a
	}
	b.same = a
	a.columns = append(a.columns, b.columns...)
	a.fresh = a.fresh || b.fresh
}

// cell is the unknown in a draft's cell.
func (w *witness) cell(d *draft, i int) *unknown {
	if d.cells[i] == nil {
		d.cells[i] = w.unknown(d.table.columns[i])
	}
	return d.cells[i]
}

func (w *witness) draft(t *table) *draft {
	d := &draft{table: t, cells: make([]*unknown, len(t.columns))}
	w.drafts = append(w.drafts, d)
	return d
}

// block drafts the rows that make a block return a row and returns its view.
func (w *witness) block(b *sql.Node, outer sources) sources {
	switch w.blocks++; {
	case b.Kind == sql.Values || w.isFull():
		return outer
	case b.Kind == sql.Compound:
		return w.compound(b, outer)
	}
	view := w.selectOnce(b, outer)
	group, having := b.Child(sql.GroupBy), b.Child(sql.Having)
	if having == nil {
		return view
	}
	var keys []*sql.Node
	if group != nil {
		keys = group.Children
	}
	for _, key := range keys {
		w.avoid(w.term(key, view)) // a group of these rows alone
	}
	n, counted := w.groupSize(having.Children[0])
	for range n - 1 {
		further := w.selectOnce(b, outer)
		for _, key := range keys {
			unify(w.term(key, view), w.term(key, further))
		}
		if counted != nil {
			w.restrict("!=", w.term(counted, view), w.term(counted, further))
		}
	}
	w.having(having.Children[0], view)
	return view
}

// compound: a row of an INTERSECT is one of both operands; a row of an EXCEPT has
// values that the second operand does not find.
func (w *witness) compound(b *sql.Node, outer sources) (view sources) {
	first := outputs(b)
	for _, c := range b.Children {
		if c.IsBlock() {
			view = w.block(c, outer)
		}
		if c.Kind != sql.SetOp {
			continue
		}
		if c.Value == "EXCEPT" {
			for _, expr := range first {
				w.avoid(w.term(expr, view))
			}
			continue
		}
		other := w.block(c.Children[0], outer)
		if c.Value == "INTERSECT" {
			for i, expr := range outputs(c.Children[0]) {
				if i < len(first) {
					unify(w.term(first[i], view), w.term(expr, other))
				}
			}
		}
	}
	return view
}

// selectOnce drafts one row of the product of a block's sources, under its join
// conditions and WHERE.
func (w *witness) selectOnce(b *sql.Node, outer sources) sources {
	view := maps.Clone(outer)
	if view == nil {
		view = sources{}
	}
	scope := w.query.scopes.Scope(b)
	for _, s := range scope.Sources {
		switch {
		case s.Table != nil:
			if t := tableNamed(w.query.tables, s.Table.Name); t != nil {
				view[s] = origin{draft: w.draft(t)}
			}
		case s.Block != nil:
			view[s] = origin{inner: w.block(s.Block, outer)}
		}
	}
	if from := b.Child(sql.From); from != nil {
		w.joins(from, scope, view)
	}
	if where := b.Child(sql.Where); where != nil {
		w.condition(where.Children[0], true, view)
	}
	w.counted(b.Child(sql.Projection), view)
	return view
}

// counted lets one of the conditions hold under which a projection counts or adds
// rows up, as in sum(CASE WHEN age > 30 THEN 1 ELSE 0 END).
func (w *witness) counted(projection *sql.Node, view sources) {
	var conditions []*sql.Node
	sql.Walk(projection, func(n *sql.Node) bool {
		if n.Kind == sql.When && n.Parent.Children[0].Kind == sql.When || n.Kind == sql.Function && n.Value == "iif" {
			conditions = append(conditions, n.Children[0])
		}
		return !n.IsBlock()
	})
	if len(conditions) > 0 {
		w.condition(pick(w.r, conditions), true, view)
	}
}

// joins takes the conditions of joins; blocks below have their own.
func (w *witness) joins(n *sql.Node, scope *sql.Scope, view sources) {
	for _, c := range n.Children {
		switch c.Kind {
		case sql.On:
			w.condition(c.Children[0], true, view)
		case sql.Using:
			for _, name := range c.Children {
				w.using(name.Value, scope, view)
			}
		case sql.Join, sql.JoinGroup:
			if strings.HasPrefix(c.Value, "NATURAL") {
				w.natural(w.query.scopes.Source(c.Children[0]), scope, view)
			}
			w.joins(c, scope, view)
		}
	}
}

// using makes the column of that name one in all sources.
func (w *witness) using(name string, scope *sql.Scope, view sources) {
	var first *unknown
	for _, s := range scope.Sources {
		if i := s.Find(name); i >= 0 {
			u := w.lookUp(s, i, view)
			unify(first, u)
			if first == nil {
				first = u
			}
		}
	}
}

func (w *witness) natural(joined *sql.Source, scope *sql.Scope, view sources) {
	if joined == nil {
		return
	}
	for i := range joined.Len() {
		w.using(joined.ColumnName(i), scope, view)
	}
}

// lookUp is the unknown in column i of a source, nil where that is no column of
// a draft.
func (w *witness) lookUp(s *sql.Source, i int, view sources) *unknown {
	at, ok := view[s]
	switch {
	case !ok || i < 0:
		return nil
	case at.draft != nil:
		if i = at.draft.table.index(s.Table.Columns[i].Name); i < 0 {
			return nil
		}
		return w.cell(at.draft, i)
	case i >= len(s.Columns):
		return nil
	}
	output := s.Columns[i]
	if output.Expr != nil {
		return w.term(output.Expr, at.inner)
	}
	return w.lookUp(output.Source, output.Column, at.inner)
}

// term is the unknown that an expression stands for, nil where it is none. A
// function of one column stands for the column: often enough lower(name) or
// round(price) is what it is of.
func (w *witness) term(n *sql.Node, view sources) *unknown {
	if v, ok := w.query.literal(n); ok {
		return w.constant(v)
	}
	switch n.Kind {
	case sql.Column:
		switch b := w.query.scopes.Binding(n); b.Meaning {
		case sql.MeansOutput:
			return w.term(b.Expr, view)
		case sql.MeansColumn:
			return w.lookUp(b.Source, b.Column, view)
		}
	case sql.Subquery:
		return w.scalar(n.Children[0], view)
	case sql.Aggregate:
		if n.Value != "count" && len(n.Children) > 0 {
			return w.term(n.Children[0], view)
		}
	case sql.Function, sql.Cast, sql.Collate:
		var inner *unknown
		for _, c := range n.Children {
			if u := w.term(c, view); u != nil && !u.root().known {
				inner = u
			}
		}
		return inner
	}
	return nil
}

// scalar is a sub-query as a value: what it returns now, else, where it finds
// nothing or depends on the rows around it, the column of a row drafted for it.
func (w *witness) scalar(b *sql.Node, view sources) *unknown {
	if v, ok := w.value(b.Text(w.query.text)); ok && v != nil {
		return w.constant(v)
	}
	return w.member(b, view)
}

// member is the column of a row that is drafted for a sub-query to find.
func (w *witness) member(b *sql.Node, view sources) *unknown {
	exprs := outputs(b)
	if len(exprs) != 1 {
		return nil
	}
	return w.term(exprs[0], w.block(b, view))
}

func (w *witness) restrict(operator string, left, right *unknown) {
	if left != nil && right != nil {
		w.restrictions = append(w.restrictions, restriction{operator, left, right, nil})
	}
}

// avoid makes a value one that no row has yet.
func (w *witness) avoid(u *unknown) {
	if u != nil {
		u.root().fresh = true
	}
}
