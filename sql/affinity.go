package sql

import "strings"

// Affinity is the class of values that a column prefers or an expression has.
type Affinity string

// SQLite's column affinities. AffinityNone is that of an expression with no
// affinity and of a column whose table is unknown.
const (
	AffinityNone    Affinity = ""
	AffinityInteger Affinity = "INTEGER"
	AffinityReal    Affinity = "REAL"
	AffinityNumeric Affinity = "NUMERIC"
	AffinityText    Affinity = "TEXT"
	AffinityBlob    Affinity = "BLOB"
)

// TypeAffinity is the affinity of a column with the declared type (SQLite's
// "Datatypes", section 3.1).
func TypeAffinity(declared string) Affinity {
	upper := strings.ToUpper(declared)
	has := func(part string) bool { return strings.Contains(upper, part) }
	switch {
	case has("INT"):
		return AffinityInteger
	case has("CHAR"), has("CLOB"), has("TEXT"):
		return AffinityText
	case has("BLOB"), upper == "":
		return AffinityBlob
	case has("REAL"), has("FLOA"), has("DOUB"):
		return AffinityReal
	}
	return AffinityNumeric
}

// IsNumber reports that the affinity is one of numbers.
func (a Affinity) IsNumber() bool {
	return a == AffinityInteger || a == AffinityReal || a == AffinityNumeric
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
