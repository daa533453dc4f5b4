package annotate

import (
	"slices"
	"strings"

	"caper/sql"
)

// restatements lists other queries that say what gold says, nearer to the wrong
// query's construction: gold may join a table where the wrong query uses a
// sub-query, and then no single clause of gold's fits in although one clause is
// all that is wrong. Each is a rewriting by rule; the caller checks by execution
// that it still gives gold's result.
func restatements(gold, wrong *statement) []*statement {
	trees := []*sql.Node{joinsAsConditions(gold, wrong), keysMerged(gold, wrong)}
	if restated := parsedAs(operandAsCondition(gold.tree, wrong.tree), gold.schema); restated != nil {
		trees = append(trees, restated.tree, joinsAsConditions(restated, wrong))
	}
	var list []*statement
	for _, tree := range trees {
		if s := parsedAs(tree, gold.schema); s != nil {
			list = append(list, s)
		}
	}
	return list
}

// completions lists the restatements of gold that may complete a wrong query whose
// first clauses stay: the same, and gold as a table.
func completions(gold, wrong *statement) []*statement {
	list := restatements(gold, wrong)
	if s := parsedAs(asTable(gold.tree, wrong.tree), gold.schema); s != nil {
		list = append(list, s)
	}
	return list
}

// asTable writes gold as the table that the wrong query's SELECT reads, "SELECT id,
// name FROM (gold)": columns that gold's joins make ambiguous are not so outside.
// It returns nil where gold projects other columns, or where its order would be
// lost.
func asTable(gold, wrong *sql.Node) *sql.Node {
	ours, theirs := projected(gold), projected(wrong)
	if ours == nil || !slices.EqualFunc(ours, theirs, sameName) || gold.Child(sql.OrderBy) != nil {
		return nil
	}
	projection := outermostSelect(wrong).Child(sql.Projection).Clone()
	return branch(sql.Select, "", projection, branch(sql.From, "", branch(sql.Derived, "", gold.Clone())))
}

// projected lists the names of the columns that a query projects, nil where it
// projects anything else or one name twice.
func projected(tree *sql.Node) []string {
	block := outermostSelect(tree)
	if block == nil {
		return nil
	}
	var names []string
	for _, item := range block.Child(sql.Projection).Children {
		column := item.Children[0]
		isTwice := slices.ContainsFunc(names, func(name string) bool { return sameName(name, column.Value) })
		if column.Kind != sql.Column || len(item.Children) > 1 || isTwice {
			return nil
		}
		names = append(names, column.Value)
	}
	return names
}

// parsedAs prints a tree and reads it again, nil for no tree.
func parsedAs(tree *sql.Node, schema *sql.Schema) *statement {
	if tree == nil {
		return nil
	}
	s, ok := parse(sql.Render(tree), schema, Top)
	if !ok {
		return nil
	}
	return s
}

// operandAsCondition turns "SELECT x ... INTERSECT q" into "... WHERE x IN (q)" and
// EXCEPT into NOT IN, for a wrong query without set operation; nil where gold is
// no such query.
func operandAsCondition(tree, wrong *sql.Node) *sql.Node {
	if wrong.Kind == sql.Compound || tree.Kind != sql.Compound || len(tree.Children) != 2 || tree.Children[0].Kind != sql.Select {
		return nil
	}
	block, operation := tree.Children[0].Clone(), tree.Children[1]
	operator := map[string]string{"INTERSECT": "IN", "EXCEPT": "NOT IN"}[operation.Value]
	items := block.Child(sql.Projection).Children
	if operator == "" || len(items) != 1 || items[0].Children[0].Kind != sql.Column ||
		block.Child(sql.GroupBy) != nil || block.Child(sql.From) == nil {
		return nil
	}
	condition := branch(sql.In, operator, items[0].Children[0].Clone(), branch(sql.Subquery, "", operation.Children[0].Clone()))
	setWhere(block, append(conjuncts(block.Child(sql.Where)), condition))
	return block
}

// keysMerged writes the joins of gold by a column of the same name with USING
// where the wrong query names that column without a table, which an ON would make
// ambiguous; nil where there is no such join.
func keysMerged(gold, wrong *statement) *sql.Node {
	bare := make(map[string]bool)
	sql.Walk(wrong.tree, func(n *sql.Node) bool {
		if n.Kind == sql.Column && n.Qualifier == "" {
			bare[strings.ToLower(n.Value)] = true
		}
		return true
	})
	tree := gold.tree.Clone()
	block := outermostSelect(tree)
	if block == nil || block.Child(sql.From) == nil {
		return nil
	}
	isMerged := false
	for _, join := range block.Child(sql.From).Children {
		on := join.Child(sql.On)
		if join.Kind != sql.Join || on == nil {
			continue
		}
		if a, b, ok := equatedColumns(on.Children[0]); ok && sameName(a.Value, b.Value) && bare[strings.ToLower(a.Value)] {
			replaceChild(join, on, branch(sql.Using, "", &sql.Node{Kind: sql.Name, Value: a.Value}))
			isMerged = true
		}
	}
	if !isMerged {
		return nil
	}
	return tree
}

// equatedColumns are the sides of an equality of two columns.
func equatedColumns(n *sql.Node) (a, b *sql.Node, ok bool) {
	if n.Kind != sql.Compare || n.Value != "=" || n.Children[0].Kind != sql.Column || n.Children[1].Kind != sql.Column {
		return nil, nil, false
	}
	return n.Children[0], n.Children[1], true
}

// outermostSelect is the statement's block, of a set operation the first operand;
// nil for VALUES.
func outermostSelect(tree *sql.Node) *sql.Node {
	if tree.Kind == sql.Compound {
		tree = tree.Children[slices.IndexFunc(tree.Children, (*sql.Node).IsBlock)]
	}
	if tree.Kind != sql.Select {
		return nil
	}
	return tree
}

// conjuncts are the operands of the outermost AND of a Where or On node, which may
// be nil.
func conjuncts(clause *sql.Node) []*sql.Node {
	switch {
	case clause == nil:
		return nil
	case clause.Children[0].Kind == sql.And:
		return slices.Clone(clause.Children[0].Children)
	}
	return []*sql.Node{clause.Children[0]}
}

// allOf joins conditions by AND.
func allOf(conditions []*sql.Node) *sql.Node {
	copies := make([]*sql.Node, len(conditions))
	for i, c := range conditions {
		copies[i] = c.Clone()
	}
	if len(copies) == 1 {
		return copies[0]
	}
	return branch(sql.And, "", copies...)
}

// setWhere gives a block the WHERE clause of all conditions, none for none.
func setWhere(block *sql.Node, conditions []*sql.Node) {
	block.Children = slices.DeleteFunc(block.Children, func(c *sql.Node) bool { return c.Kind == sql.Where })
	if len(conditions) == 0 {
		return
	}
	where := branch(sql.Where, "", allOf(conditions))
	where.Parent = block
	place := 1 + slices.IndexFunc(block.Children, func(c *sql.Node) bool { return c.Kind == sql.From })
	block.Children = slices.Insert(block.Children, place, where)
}

// replaceChild puts new in the place of old.
func replaceChild(parent, old, new *sql.Node) {
	new.Parent = parent
	parent.Children[old.Index()] = new
}
