package annotate

import (
	"slices"
	"strconv"

	"caper/sql"
)

// additions lists the operators that put in what the query lacks, by the clause
// or block that takes it in. They are the way back from those that drop: without
// them no clause would ever be wrong for being there, and a reward model would
// learn that a query's end is always worse than one clause more.
//
// In a block, new is the clause that is added; elsewhere new is old with one
// child more, its last. What is added is v*.
var additions = map[sql.Kind][]operator{
	sql.Projection: {{"select.added_item", addItem}},
	sql.From:       {{"from.added_join", addJoin}},
	sql.Where: {
		{"where.added_conjunct", addConjunct},
		{"where.added_list_item", addListItem},
	},
	sql.GroupBy: {{"group_by.added_key", addKey}},
	sql.OrderBy: {{"order_by.added_key", addOrderKey}},
	sql.Limit:   {{"limit.added_offset", addOffset}},
	sql.Select: {
		{"where.added", addWhere},
		{"group_by.added", addGroupBy},
		{"having.added", addHaving},
		{"setop.added", addSetOperator},
		{"order_by.added", addOrderBy},
		{"limit.added", addLimit},
	},
	sql.Compound: {{"limit.added", addLimit}},
}

// addItem projects one more column or, from groups, their size. The width of
// inner blocks is not free.
func addItem(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Kind != sql.Projection || n.Parent.Parent != nil {
		return
	}
	var items []*sql.Node
	for _, c := range q.columnsIn(n.Parent) {
		items = append(items, c.Node)
	}
	if n.Parent.Child(sql.GroupBy) != nil {
		items = append(items, countRows())
	}
	for _, expr := range items {
		if !has(n, expr) {
			propose(n, with(n, branch(sql.Item, "", expr)))
		}
	}
}

// addConjunct narrows the condition of WHERE; a disjunction would have to be put
// in parentheses, which may be there.
func addConjunct(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Kind != sql.Where || n.Children[0].Kind == sql.Or {
		return
	}
	old := n.Children[0]
	for _, condition := range q.conditions(n.Parent) {
		if old.Kind == sql.And {
			propose(old, with(old, condition))
		} else {
			propose(old, branch(sql.And, "", old.Clone(), condition))
		}
	}
}

// addListItem puts another value of the compared column into an IN list.
func addListItem(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Kind != sql.List || len(n.Children) == 0 || n.Parent.Kind != sql.In {
		return
	}
	column, last := n.Parent.Children[0], n.Children[len(n.Children)-1]
	if column.Kind != sql.Column || last.Kind != sql.Number && !q.isText(last) {
		return
	}
	for _, value := range q.domain(column) {
		isThere := slices.ContainsFunc(n.Children, func(c *sql.Node) bool { return c.Value == value })
		if _, err := strconv.ParseFloat(value, 64); !isThere && (err == nil || last.Kind != sql.Number) {
			propose(n, with(n, relabelled(last, value)))
		}
	}
}

func addWhere(q *query, block *sql.Node, propose func(old, new *sql.Node)) {
	if block.Child(sql.Where) != nil {
		return
	}
	for _, condition := range q.conditions(block) {
		propose(block, branch(sql.Where, "", condition))
	}
}

func addGroupBy(q *query, block *sql.Node, propose func(old, new *sql.Node)) {
	if block.Child(sql.GroupBy) != nil {
		return
	}
	for _, c := range q.columnsIn(block) {
		propose(block, branch(sql.GroupBy, "", c.Node))
	}
}

// addKey groups by one more column.
func addKey(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Kind != sql.GroupBy {
		return
	}
	for _, c := range q.columnsIn(n.Parent) {
		if !has(n, c.Node) {
			propose(n, with(n, c.Clone()))
		}
	}
}

// has reports that a list holds a column of the same name.
func has(list, column *sql.Node) bool {
	return slices.ContainsFunc(list.Children, func(c *sql.Node) bool {
		if c.Kind == sql.OrderTerm || c.Kind == sql.Item {
			c = c.Children[0]
		}
		return c.Kind == column.Kind && sameName(c.Value, column.Value)
	})
}

// addHaving keeps the groups of more than a few rows.
func addHaving(_ *query, block *sql.Node, propose func(old, new *sql.Node)) {
	if block.Child(sql.GroupBy) == nil || block.Child(sql.Having) != nil {
		return
	}
	for _, size := range []string{"1", "2", "3", "5"} {
		for _, comparison := range []string{">", ">="} {
			least := branch(sql.Compare, comparison, countRows(), &sql.Node{Kind: sql.Number, Value: size})
			propose(block, branch(sql.Having, "", least))
		}
	}
}

// addOrderBy sorts rows ahead of a LIMIT. Elsewhere it is no fault: comparisons
// look at the order of rows only where gold has one.
func addOrderBy(q *query, block *sql.Node, propose func(old, new *sql.Node)) {
	if block.Child(sql.OrderBy) != nil || block.Child(sql.Limit) == nil {
		return
	}
	for _, key := range q.sortKeys(block) {
		for _, direction := range []string{"ASC", "DESC"} {
			propose(block, branch(sql.OrderBy, "", branch(sql.OrderTerm, direction, key.Clone())))
		}
	}
}

// sortKeys lists columns by which a block can be sorted: those of its tables or,
// where it reads none but sub-queries, those that it projects.
func (q *query) sortKeys(block *sql.Node) []*sql.Node {
	var keys []*sql.Node
	for _, c := range q.columnsIn(block) {
		keys = append(keys, c.Node)
	}
	if len(keys) > 0 {
		return keys
	}
	for _, item := range block.Child(sql.Projection).Children {
		if item.Children[0].Kind == sql.Column {
			keys = append(keys, item.Children[0])
		}
	}
	return keys
}

// addOrderKey sorts by one more column, where a query sorts.
func addOrderKey(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Kind != sql.OrderBy || !n.IsClause() || n.Parent.Kind != sql.Select {
		return
	}
	for _, c := range q.columnsIn(n.Parent) {
		if !has(n, c.Node) {
			propose(n, with(n, branch(sql.OrderTerm, "ASC", c.Clone())))
		}
	}
}

func addLimit(_ *query, block *sql.Node, propose func(old, new *sql.Node)) {
	if block.Child(sql.Limit) != nil || isOperand(block) {
		return
	}
	for _, count := range []string{"1", "3", "5", "10"} {
		propose(block, branch(sql.Limit, "", &sql.Node{Kind: sql.Number, Value: count}))
	}
}

// addOffset passes over the first rows.
func addOffset(_ *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Kind != sql.Limit || n.Child(sql.Offset) != nil {
		return
	}
	for _, rows := range []string{"1", "2"} {
		propose(n, with(n, branch(sql.Offset, "", &sql.Node{Kind: sql.Number, Value: rows})))
	}
}

// addSetOperator combines the outermost block with itself under another
// condition.
func addSetOperator(q *query, block *sql.Node, propose func(old, new *sql.Node)) {
	where := block.Child(sql.Where)
	if where == nil || block.Child(sql.OrderBy) != nil || block.Child(sql.Limit) != nil || block.Parent != nil {
		return
	}
	for _, condition := range q.conditions(block) {
		other := replaced(block, where, branch(sql.Where, "", condition))
		if with := other.Child(sql.With); with != nil {
			other = without(other, with.Index())
		}
		for _, name := range []string{"EXCEPT", "INTERSECT", "UNION"} {
			propose(block, branch(sql.SetOp, name, other)) // proposals are only read, so they share it
		}
	}
}

// isOperand reports that a block is the first operand of a set operation, which
// has no end of its own.
func isOperand(block *sql.Node) bool { return block.Parent != nil && block.Parent.Kind == sql.Compound }

// field is a column written as its block writes columns, and where it is kept.
type field struct {
	*sql.Node
	table  *sql.SchemaTable
	column *sql.SchemaColumn
}

// columnsIn lists columns of the tables that a block reads, at most maxChoices,
// spread evenly over them.
func (q *query) columnsIn(block *sql.Node) []field {
	scope := q.scopes.Scope(block)
	if scope == nil {
		return nil
	}
	isQualified := qualificationOf(block, false) == allQualified
	var all []field
	for _, s := range scope.Sources {
		if s.Table == nil {
			continue
		}
		for i := range s.Table.Columns {
			c := &s.Table.Columns[i]
			n := &sql.Node{Kind: sql.Column, Value: c.Name}
			isShared := slices.ContainsFunc(scope.Sources, func(other *sql.Source) bool {
				return other != s && (other.Open || other.Find(c.Name) >= 0)
			})
			if isQualified || isShared {
				n.Qualifier = s.Name
			}
			all = append(all, field{n, s.Table, c})
		}
	}
	count := min(len(all), maxChoices)
	for i := range count {
		all[i] = all[i*len(all)/count]
	}
	return all[:count]
}

// conditions compares columns of a block's tables with a value that they hold:
// texts for equality, numbers also for order.
func (q *query) conditions(block *sql.Node) []*sql.Node {
	var list []*sql.Node
	for _, c := range q.columnsIn(block) {
		values := q.values(c.table, c.column.Name)
		if len(values) == 0 {
			continue
		}
		literal := q.style.Literal(values[len(values)/2])
		comparisons := []string{"="}
		if sql.TypeAffinity(c.column.Type).IsNumber() {
			if f, err := strconv.ParseFloat(literal.Value, 64); err != nil || f < 0 {
				continue
			}
			literal = &sql.Node{Kind: sql.Number, Value: literal.Value}
			comparisons = []string{"=", ">", "<"}
		}
		for _, comparison := range comparisons {
			list = append(list, branch(sql.Compare, comparison, c.Clone(), literal.Clone()))
		}
	}
	return list
}

// countRows is count(*).
func countRows() *sql.Node { return branch(sql.Aggregate, "count", &sql.Node{Kind: sql.Star}) }

// branch is a new node over the given children.
func branch(kind sql.Kind, value string, children ...*sql.Node) *sql.Node {
	n := &sql.Node{Kind: kind, Value: value, Children: children}
	for _, c := range children {
		c.Parent = n
	}
	return n
}

// with is a copy of n with one more child.
func with(n, child *sql.Node) *sql.Node {
	c := n.Clone()
	child.Parent = c
	c.Children = append(c.Children, child)
	return c
}
