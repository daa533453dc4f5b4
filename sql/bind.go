package sql

import "strings"

// bind finds the meaning of a Column or qualified Star. Known columns of any
// block in view come before guesses about unknown ones.
func (r *resolver) bind(n *Node, scope *Scope) Binding {
	if n.Kind == Star {
		return bindStar(n, scope)
	}
	level := 0
	for s := scope; s != nil; s, level = s.Outer, level+1 {
		if level == 0 && isOrderTerm(n) {
			if b, ok := r.bindOutput(n, s); ok {
				return b
			}
		}
		if b, ok := s.bindColumn(n); ok {
			b.Level = level
			return b
		}
		if s.seesAliases() {
			if b, ok := r.bindOutput(n, s); ok {
				return b
			}
		}
	}
	if n.DoubleQuoted && n.Qualifier == "" {
		return Binding{Meaning: MeansString, Column: -1}
	}
	return guess(n, scope)
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
// matches are ambiguous unless a NATURAL or USING join makes them one.
func (s *Scope) bindColumn(n *Node) (b Binding, ok bool) {
	for _, source := range s.Sources {
		if n.Qualifier != "" && !strings.EqualFold(source.Name, n.Qualifier) {
			continue
		}
		i := source.Find(n.Value)
		switch {
		case i < 0:
		case !ok:
			b, ok = Binding{Meaning: MeansColumn, Source: source, Column: i}, true
		case !source.merges(n.Value):
			b.Ambiguous = true
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
			case source.Open, isRowID(n.Value) && source.Table != nil:
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

// Affinity is the class of values an expression yields: a column's affinity as
// declared, that of a literal, the result type of operators and functions where
// it is fixed. It is AffinityNone where that is not known.
func (s *Scopes) Affinity(expr *Node) Affinity {
	switch expr.Kind {
	case Column:
		return s.columnAffinity(s.bindings[expr])
	case Number:
		if strings.ContainsAny(expr.Value, ".eE") && !strings.HasPrefix(strings.ToLower(expr.Value), "0x") {
			return AffinityReal
		}
		return AffinityInteger
	case String, Like:
		if expr.Kind == String {
			return AffinityText
		}
		return AffinityInteger
	case Blob:
		return AffinityBlob
	case Compare, And, Or, Not, Is, NullTest, Between, In, Exists:
		return AffinityInteger
	case Cast:
		return TypeAffinity(expr.Value)
	case Collate:
		return s.Affinity(expr.Children[0])
	case Unary:
		return AffinityNumeric
	case Binary:
		if expr.Value == "||" {
			return AffinityText
		}
		if strings.HasPrefix(expr.Value, "->") {
			return AffinityNone
		}
		return AffinityNumeric
	case Subquery:
		return s.blockAffinity(expr.Children[0])
	case Aggregate:
		return s.aggregateAffinity(expr)
	}
	return AffinityNone
}

func (s *Scopes) columnAffinity(b Binding) Affinity {
	switch {
	case b.Meaning == MeansString:
		return AffinityText
	case b.Meaning == MeansOutput:
		return s.Affinity(b.Expr)
	case b.Meaning != MeansColumn || b.Column < 0:
		return AffinityNone
	}
	return s.SourceAffinity(b.Source, b.Column)
}

// SourceAffinity is the affinity of known column i of a source.
func (s *Scopes) SourceAffinity(source *Source, i int) Affinity {
	for source.Table == nil {
		output := source.Columns[i]
		if output.Expr != nil {
			return s.Affinity(output.Expr)
		}
		if output.Source == nil {
			return AffinityNone
		}
		source, i = output.Source, output.Column
	}
	return TypeAffinity(source.Table.Columns[i].Type)
}

// blockAffinity is the affinity of a scalar sub-query.
func (s *Scopes) blockAffinity(b *Node) Affinity {
	if projection := b.Child(Projection); projection != nil {
		return s.Affinity(projection.Children[0].Children[0])
	}
	return AffinityNone
}

func (s *Scopes) aggregateAffinity(call *Node) Affinity {
	switch call.Value {
	case "count":
		return AffinityInteger
	case "sum", "avg", "total":
		return AffinityNumeric
	case "min", "max":
		return s.Affinity(call.Children[0])
	}
	return AffinityText
}
