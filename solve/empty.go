package solve

import (
	"fmt"
	"slices"
	"strings"

	"caper/sql"
)

// cascade proposes, for a query that returns nothing, what may have kept its rows out,
// from what is certain to what is likely (sirius.md 2.4): literals that their column
// does not have, columns that do not have the literal, spellings of dates and shares,
// the one condition without which there are rows, and joins by other columns than the
// foreign key's.
type cascade struct {
	*Examined
	*workbench
	predicates []predicate
	absent     []bool // of predicates: no row has such a value
}

// steps of the cascade, in order. Each lists its proposals, the best first.
var steps = []func(*cascade) ([]mend, error){
	(*cascade).rebindLiterals, (*cascade).rebindColumns, (*cascade).reformat, (*cascade).isolate, (*cascade).rejoin,
}

// look finds the literals that their columns do not have.
func (c *cascade) look() error {
	c.predicates = predicates(c.Examined)
	c.absent = make([]bool, len(c.predicates))
	for i, p := range c.predicates {
		found, err := c.exists(p.table.Name, p.base.Name, p.operator, p.sql())
		if err != nil {
			return err
		}
		c.absent[i] = !found
	}
	return nil
}

// rebindLiterals puts the values that absent literals stand for in their place: of
// all of them, since each alone keeps every row out.
func (c *cascade) rebindLiterals() ([]mend, error) {
	d := newDraft(c.Examined)
	var notes []string
	for i, p := range c.predicates {
		if !c.absent[i] || p.operator != "=" || !p.isText() {
			continue
		}
		values, err := c.values(p.table.Name, p.base.Name)
		if err != nil {
			return nil, err
		}
		if value, how, ok := values.match(p.text()); ok && values.whole {
			setText(d.at(p.literal), value)
			notes = append(notes, fmt.Sprintf("%s has no '%s' but '%s', %s", columnName(p.column), p.text(), value, how))
		}
	}
	if len(notes) == 0 {
		return nil, nil
	}
	return []mend{{d.text(), "literal", strings.Join(notes, "; ")}}, nil
}

func setText(n *sql.Node, text string) {
	*n = sql.Node{Kind: sql.String, Value: text, Parent: n.Parent}
}

// rebindColumns compares an absent literal with the one other column in view that has
// it, as it stands or but for case and space.
func (c *cascade) rebindColumns() (all []mend, err error) {
	for i, p := range c.predicates {
		if !c.absent[i] || p.operator != "=" && p.operator != "LIKE" {
			continue
		}
		others, err := c.others(p)
		if err != nil {
			return nil, err
		}
		if len(others) != 1 {
			continue
		}
		d := newDraft(c.Examined)
		copied := d.at(p.column)
		copied.Qualifier, copied.Value = others[0].qualifier, others[0].column
		if others[0].literal != p.text() {
			setText(d.at(p.literal), others[0].literal)
		}
		all = append(all, mend{d.text(), "column", fmt.Sprintf("'%s' is in %s, not in %s", others[0].literal, columnName(copied), columnName(p.column))})
	}
	return all, nil
}

type place struct{ qualifier, column, literal string }

// others are the other columns of the predicate's block that have its literal.
func (c *cascade) others(p predicate) (found []place, err error) {
	scope := c.scopes.Scope(p.node.Block())
	if scope == nil {
		return nil, nil
	}
	for _, source := range scope.Sources {
		if source.Table == nil {
			continue
		}
		for _, column := range source.Table.Columns {
			if strings.EqualFold(source.Table.Name, p.table.Name) && strings.EqualFold(column.Name, p.base.Name) || !compatible(column, p) {
				continue
			}
			ok, err := c.exists(source.Table.Name, column.Name, p.operator, p.sql())
			if err != nil {
				return nil, err
			}
			literal := p.text()
			if !ok && p.isText() && p.operator == "=" {
				values, err := c.values(source.Table.Name, column.Name)
				if err != nil {
					return nil, err
				}
				i := bestOf(values.texts, 1, func(v string) float64 { return truth(plainText(v) == plainText(p.text())) })
				if ok = values.whole && i >= 0; ok {
					literal = values.texts[i]
				}
			}
			if ok {
				found = append(found, place{source.Name, column.Name, literal})
			}
		}
	}
	return found, nil
}

// compatible reports that a column may hold the predicate's literal.
func compatible(column sql.SchemaColumn, p predicate) bool {
	affinity := sql.TypeAffinity(column.Type)
	return affinity.IsNumber() != p.isText() || !affinity.IsNumber() && affinity != sql.AffinityText
}

// isolate looks for the one condition without which there are rows, and relaxes it:
// equality of texts to containment, a strict bound to one that includes its value.
func (c *cascade) isolate() ([]mend, error) {
	where := c.tree.Child(sql.Where)
	if c.tree.Kind != sql.Select || where == nil {
		return nil, nil
	}
	var guilty *sql.Node
	all := conjuncts(where.Children[0])
	for _, conjunct := range all {
		d := newDraft(c.Examined)
		if len(all) == 1 {
			remove(d.at(where))
		} else {
			remove(d.at(conjunct))
		}
		state, err := c.try(d.text())
		if err != nil {
			return nil, err
		}
		if state != Clean {
			continue
		}
		if guilty != nil {
			return nil, nil
		}
		guilty = conjunct
	}
	if guilty == nil {
		return nil, nil
	}
	i := slices.IndexFunc(c.predicates, func(p predicate) bool { return p.node == guilty })
	if i < 0 {
		return nil, nil
	}
	p := c.predicates[i]
	d := newDraft(c.Examined)
	switch copied := d.at(guilty); {
	case guilty.Kind == sql.Compare && p.operator == "=" && p.isText():
		become(copied, node(sql.Like, "LIKE", d.at(p.column), &sql.Node{Kind: sql.String, Value: "%" + p.text() + "%"}))
	case guilty.Kind == sql.Compare && (guilty.Value == "<" || guilty.Value == ">"):
		copied.Value += "="
	default:
		return nil, nil
	}
	return []mend{{d.text(), "relax", "only without " + sql.Render(guilty) + " there are rows"}}, nil
}

// try runs a query for its state.
func (c *cascade) try(query string) (State, error) {
	x := c.read(candidateOf(query))
	err := c.run(&x)
	return x.State, err
}

// rejoin joins by the declared foreign key where a query joins two tables by other
// columns: each such pair alone, then all of them; and last keeps the rows without a
// partner where nothing else asks for one.
func (c *cascade) rejoin() (all []mend, err error) {
	wrong := c.wrongKeys()
	for _, k := range wrong {
		d := newDraft(c.Examined)
		all = append(all, mend{"", "join-key", k.apply(d)})
		all[len(all)-1].sql = d.text()
	}
	if len(wrong) > 1 {
		d := newDraft(c.Examined)
		var notes []string
		for _, k := range wrong {
			notes = append(notes, k.apply(d))
		}
		all = append(all, mend{d.text(), "join-key", strings.Join(notes, "; ")})
	}
	return append(all, c.keepUnpaired()...), nil
}

// keyPair is an equality of two columns with what the foreign key says in its place.
type keyPair struct {
	a, b   *sql.Node
	to     [2]string
	tables [2]string
}

func (k keyPair) apply(d *draft) string {
	before := columnName(k.a) + " = " + columnName(k.b)
	d.at(k.a).Value, d.at(k.b).Value = k.to[0], k.to[1]
	return fmt.Sprintf("%s is %s = %s by the foreign key", before, columnName(d.at(k.a)), columnName(d.at(k.b)))
}

// wrongKeys lists the equalities, of a join or of IN with a sub-query, between columns
// of two tables that no foreign key pairs although one connects the tables.
func (c *cascade) wrongKeys() (all []keyPair) {
	sql.Walk(c.tree, func(n *sql.Node) bool {
		var a, b *sql.Node
		switch {
		case n.Kind == sql.Compare && n.Value == "=":
			a, b = n.Children[0], n.Children[1]
		case n.Kind == sql.In && n.Children[1].Kind == sql.Subquery:
			a, b = n.Children[0], onlyItem(n.Children[1].Children[0])
		}
		if k, ok := c.wrongKey(a, b); ok {
			all = append(all, k)
		}
		return true
	})
	return all
}

// onlyItem is the expression of a block that selects one.
func onlyItem(block *sql.Node) *sql.Node {
	if block.Kind != sql.Select {
		return nil
	}
	items := block.Child(sql.Projection).Children
	if len(items) != 1 {
		return nil
	}
	return items[0].Children[0]
}

func (c *cascade) wrongKey(a, b *sql.Node) (k keyPair, ok bool) {
	if a == nil || b == nil || a.Kind != sql.Column || b.Kind != sql.Column {
		return k, false
	}
	x, y := c.scopes.Binding(a), c.scopes.Binding(b)
	if x.Meaning != sql.MeansColumn || y.Meaning != sql.MeansColumn || x.Source == y.Source || x.Source.Table == nil || y.Source.Table == nil ||
		x.Column < 0 || y.Column < 0 {
		return k, false
	}
	found := false
	for _, key := range c.schema.ForeignKeys {
		for _, turn := range []bool{false, true} {
			if turn {
				key.Table, key.Column, key.RefTable, key.RefColumn = key.RefTable, key.RefColumn, key.Table, key.Column
			}
			if !strings.EqualFold(key.Table, x.Source.Table.Name) || !strings.EqualFold(key.RefTable, y.Source.Table.Name) {
				continue
			}
			if strings.EqualFold(key.Column, a.Value) && strings.EqualFold(key.RefColumn, b.Value) {
				return k, false
			}
			if !found {
				k, found = keyPair{a: a, b: b, to: [2]string{key.Column, key.RefColumn}}, true
			}
		}
	}
	return k, found
}

// keepUnpaired makes an inner join a LEFT JOIN where nothing else is about the table
// that it adds.
func (c *cascade) keepUnpaired() (all []mend) {
	if c.State != Empty {
		return nil // rows came, and said nothing: more of them would not say more
	}
	sql.Walk(c.tree, func(n *sql.Node) bool {
		if n.Kind != sql.Join || n.Value != "JOIN" || n.Child(sql.On) == nil {
			return true
		}
		source := c.scopes.Source(n.Children[0])
		if source == nil || c.isNeeded(n, source) {
			return true
		}
		d := newDraft(c.Examined)
		d.at(n).Value = "LEFT JOIN"
		all = append(all, mend{d.text(), "left-join", "rows without a partner in " + source.Name + " are kept"})
		return true
	})
	return all
}

// isNeeded reports that anything but the join's own condition names a source: a row
// without a partner there could not pass, or would have nothing to show.
func (c *cascade) isNeeded(join *sql.Node, source *sql.Source) bool {
	needed := false
	sql.Walk(join.Block(), func(n *sql.Node) bool {
		needed = needed || n.Kind == sql.Star && n.Qualifier == "" || c.scopes.Binding(n).Source == source
		return n != join && !needed
	})
	return needed
}
