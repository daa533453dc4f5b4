package sql

import "strings"

// bind finds the meaning of a Column, a qualified Star or the constant TRUE or
// FALSE. Known columns of any block in view come before guesses about unknown ones.
func (r *resolver) bind(n *Node, scope *Scope) Binding {
	if n.Kind == Star {
		return bindStar(n, scope)
	}
	for _, database := range n.Children {
		if !strings.EqualFold(database.Value, "main") {
			return Binding{Column: -1} // the only database that is open
		}
	}
	b, ok := r.lookUp(n, scope)
	switch {
	case ok:
		return b
	case n.Kind == Constant:
		return Binding{Column: -1}
	case n.DoubleQuoted && n.Qualifier == "":
		return Binding{Meaning: MeansString, Column: -1}
	}
	return guess(n, scope)
}

// lookUp searches the blocks in view, innermost first, for what n names: there a
// column, then a row id, then an output.
func (r *resolver) lookUp(n *Node, scope *Scope) (b Binding, ok bool) {
	level := 0
	for s := scope; s != nil && !ok; s, level = s.Outer, level+1 {
		if level == 0 && isOrderTerm(n) {
			b, ok = r.bindOutput(n, s)
		}
		if !ok {
			b, ok = s.bindColumn(n)
		}
		if !ok && isRowID(n.Value) {
			b, ok = s.bindRowID(n)
		}
		if !ok && s.seesAliases() {
			b, ok = r.bindOutput(n, s)
		}
		b.Level = level
	}
	return b, ok
}

// bindStar finds the source of T.*.
func bindStar(n *Node, scope *Scope) Binding {
	if scope != nil {
		if s := scope.source(n.Qualifier); s != nil {
			return Binding{Meaning: MeansColumn, Source: s, Column: -1}
		}
	}
	return Binding{Column: -1}
}

// bindColumn looks for a known column among the sources of one scope. Two
// matches are ambiguous unless a NATURAL or USING join makes them one: that of
// the left side, of the right side of a RIGHT JOIN, or whichever is not NULL.
func (s *Scope) bindColumn(n *Node) (b Binding, ok bool) {
	for _, source := range s.Sources {
		if n.Qualifier != "" && !strings.EqualFold(source.Name, n.Qualifier) {
			continue
		}
		i := source.Find(n.Value)
		if i < 0 {
			continue
		}
		here := Binding{Meaning: MeansColumn, Source: source, Column: i}
		if !ok {
			b, ok = here, true
			continue
		}
		join, merged := source.merged[strings.ToLower(n.Value)]
		switch {
		case !merged:
			b.Ambiguous = true
		case strings.Contains(join, "RIGHT"):
			b = here
		case strings.Contains(join, "FULL"):
			b.Coalesced = true
		}
	}
	return b, ok
}

// bindRowID looks for a source of one scope that has row ids.
func (s *Scope) bindRowID(n *Node) (b Binding, ok bool) {
	for _, source := range s.Sources {
		switch {
		case n.Qualifier != "" && !strings.EqualFold(source.Name, n.Qualifier):
		case source.Table == nil || source.Table.NoRowID:
		case ok:
			b.Ambiguous = true
		default:
			b, ok = Binding{Meaning: MeansColumn, Source: source, Column: -1}, true
		}
	}
	return b, ok
}

// seesAliases reports that the clause being resolved may name the outputs of
// its own block.
func (s *Scope) seesAliases() bool {
	return s.clause != Projection && s.clause != From && s.clause != With
}

// isOrderTerm reports that n alone is a term of a statement's ORDER BY.
func isOrderTerm(n *Node) bool {
	return n.Qualifier == "" && n.Parent != nil && n.Parent.Kind == OrderTerm && n.Parent.Parent.IsClause()
}

// bindOutput looks for an output of the scope's block: by alias, and in a
// compound, whose terms can name nothing else, by any name of any operand.
func (r *resolver) bindOutput(n *Node, s *Scope) (Binding, bool) {
	if n.Qualifier != "" {
		return Binding{}, false
	}
	if s.Block.Kind != Compound {
		projection := s.Block.Child(Projection)
		if projection == nil {
			return Binding{}, false
		}
		for _, item := range projection.Children {
			if alias := item.Child(Alias); alias != nil && strings.EqualFold(alias.Value, n.Value) {
				return Binding{Meaning: MeansOutput, Expr: item.Children[0], Column: -1}, true
			}
		}
		return Binding{}, false
	}
	for _, operand := range s.Block.operands() {
		columns, _ := r.columns(operand)
		for _, c := range columns {
			if !strings.EqualFold(c.Name, n.Value) {
				continue
			}
			if c.Expr != nil {
				return Binding{Meaning: MeansOutput, Expr: c.Expr, Column: -1}, true
			}
			return Binding{Meaning: MeansColumn, Source: c.Source, Column: c.Column}, true
		}
	}
	return Binding{}, false
}

// guess binds a name that no known column has: to the source its qualifier
// names, or to the only source of a block that may have it.
func guess(n *Node, scope *Scope) Binding {
	level := 0
	for s := scope; s != nil; s, level = s.Outer, level+1 {
		var candidates []*Source
		for _, source := range s.Sources {
			switch {
			case n.Qualifier != "":
				if strings.EqualFold(source.Name, n.Qualifier) {
					candidates = append(candidates, source)
				}
			case source.Open:
				candidates = append(candidates, source)
			}
		}
		if len(candidates) == 1 || len(candidates) > 1 && n.Qualifier != "" {
			return Binding{Meaning: MeansColumn, Source: candidates[0], Column: -1, Level: level}
		}
	}
	return Binding{Column: -1}
}

// isRowID reports that the name is one of the row id's.
func isRowID(name string) bool {
	return strings.EqualFold(name, "rowid") || strings.EqualFold(name, "oid") || strings.EqualFold(name, "_rowid_")
}
