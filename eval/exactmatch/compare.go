package exactmatch

import (
	"maps"
	"slices"
	"strings"
)

// PartNames are the parts that are scored, in the official order.
var PartNames = []string{"select", "select(no AGG)", "where", "where(no OP)", "group(no Having)", "group", "order", "and/or", "IUEN", "keywords"}

// Score is the comparison of a prediction with gold.
type Score struct {
	Exact bool
	Parts []Part // by PartNames
}

// Part is the comparison of one part: it matches whole or not at all. Pred and Gold
// are how many pieces of it each query has; a part without pieces does not count in
// the accuracy (Pred) or the recall (Gold).
type Part struct {
	Match      bool
	Pred, Gold int
}

// Compare compares a prediction, nil for one that cannot be read, with gold.
func Compare(gold, pred *Query, s *Schema, quirks Quirks) Score {
	if pred == nil {
		pred = &Query{}
	}
	c := comparison{quirks: quirks}
	return c.compare(c.side(gold, s), c.side(pred, s))
}

type comparison struct{ quirks Quirks }

// side is one of the two queries with the way it is written down for comparison.
type side struct {
	*Query
	p printer
}

// side merges columns that foreign keys connect, in the tables that the outermost
// query reads.
func (c comparison) side(q *Query, s *Schema) side {
	p := printer{quirks: c.quirks, names: map[string]string{}}
	if c.quirks.has(ForeignKeysMerged) {
		read := map[string]bool{}
		for _, t := range q.From.Tables {
			read[t.Name] = true
		}
		for column, name := range s.merged {
			table, short, _ := strings.Cut(column, ".")
			if read[table] && s.columns[table][short] {
				p.names[column] = name
			}
		}
	}
	return side{q, p}
}

func (c comparison) compare(gold, pred side) Score {
	parts := []Part{
		bag(gold.items(true), pred.items(true)),
		bag(gold.items(false), pred.items(false)),
		bag(gold.where(true), pred.where(true)),
		bag(gold.where(false), pred.where(false)),
		bag(gold.groupColumns(), pred.groupColumns()),
		whole(gold.group(), pred.group()),
		whole(gold.order(), pred.order()),
		andOr(gold.words(), pred.words()),
		c.operands(gold, pred),
		bag(gold.keywords(), pred.keywords()),
	}
	exact := !slices.ContainsFunc(parts, func(p Part) bool { return !p.Match })
	return Score{exact && c.sameTables(gold, pred) && c.sameRest(gold, pred), parts}
}

// bag compares pieces whose order does not count.
func bag(gold, pred []string) Part {
	return Part{sameBag(gold, pred), len(pred), len(gold)}
}

func sameBag(a, b []string) bool {
	return len(a) == len(b) && slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// whole compares a part of one piece, "" where it is missing.
func whole(gold, pred string) Part {
	return Part{gold == pred, count(pred != ""), count(gold != "")}
}

// andOr compares the words between conditions. Where they differ, the official
// script takes the two counts for each other's.
func andOr(gold, pred []string) Part {
	if slices.Equal(gold, pred) {
		return Part{true, 1, 1}
	}
	return Part{false, len(gold), len(pred)}
}

// operands compares what stands behind INTERSECT, UNION or EXCEPT.
func (c comparison) operands(gold, pred side) Part {
	part := Part{Pred: count(pred.Operand != nil), Gold: count(gold.Operand != nil)}
	switch {
	case gold.Operand == nil || pred.Operand == nil:
		part.Match = gold.Operand == pred.Operand
	case gold.SetOperator == pred.SetOperator:
		part.Match = c.compare(side{gold.Operand, gold.p}, side{pred.Operand, pred.p}).Exact
	}
	return part
}

func (c comparison) sameTables(gold, pred side) bool {
	checked := 1
	if c.quirks.has(SingleTableUnchecked) {
		checked = 2
	}
	return len(gold.From.Tables) < checked || sameBag(gold.tables(), pred.tables())
}

// sameRest compares what the official script leaves out.
func (c comparison) sameRest(gold, pred side) bool {
	return (c.quirks.has(DistinctDropped) || gold.Distinct == pred.Distinct) &&
		(c.quirks.has(LimitValueDropped) || gold.Limit == pred.Limit) &&
		(c.quirks.has(JoinConditionsIgnored) || sameBag(gold.on(), pred.on()))
}

func (s side) items(aggregates bool) (keys []string) {
	for _, i := range s.Select {
		if !aggregates {
			i.Aggregate = ""
		}
		keys = append(keys, s.p.item(i))
	}
	return keys
}

func (s side) where(operators bool) (keys []string) {
	for _, c := range s.Where.List {
		if operators {
			keys = append(keys, s.p.condition(c))
		} else {
			keys = append(keys, s.p.expr(c.Expr))
		}
	}
	return keys
}

func (s side) on() (keys []string) {
	for _, c := range s.From.On.List {
		keys = append(keys, s.p.condition(c))
	}
	return keys
}

// groupColumns are the columns of GROUP BY without their tables.
func (s side) groupColumns() (keys []string) {
	for _, c := range s.GroupBy {
		name := s.p.name(c.Name)
		if _, column, ok := strings.Cut(name, "."); ok {
			name = column
		}
		keys = append(keys, name)
	}
	return keys
}

// group is GROUP BY with HAVING; without GROUP BY there is none.
func (s side) group() string {
	if len(s.GroupBy) == 0 {
		return ""
	}
	var names []string
	for _, c := range s.GroupBy {
		names = append(names, s.p.name(c.Name))
	}
	return tuple(list(names), s.p.conditions(s.Having))
}

// order is ORDER BY and whether there is a LIMIT.
func (s side) order() string {
	if s.OrderBy == nil {
		return ""
	}
	limit := "all"
	if s.Limit != "" {
		limit = "limit"
	}
	return tuple(s.p.order(s.OrderBy), limit)
}

func (s side) words() []string {
	keys := map[string]bool{}
	var all []string
	for _, w := range s.Where.Words {
		word := s.p.word(w)
		keys[word] = true
		all = append(all, word)
	}
	if s.p.quirks.has(AndOrAsSet) {
		return slices.Sorted(maps.Keys(keys))
	}
	return slices.Sorted(slices.Values(all))
}

func (s side) tables() (keys []string) {
	for _, t := range s.From.Tables {
		keys = append(keys, s.p.table(t))
	}
	return keys
}

func (s side) keywords() (words []string) {
	add := func(word string, found bool) {
		if found {
			words = append(words, word)
		}
	}
	add("where", s.Where.length() > 0)
	add("group", len(s.GroupBy) > 0)
	add("having", s.Having.length() > 0)
	add("limit", s.Limit != "")
	add(s.SetOperator, s.Operand != nil)
	if s.OrderBy != nil {
		add("order", true)
		add(s.OrderBy.Direction(), true)
	}
	any := func(is func(Condition) bool) bool { return slices.ContainsFunc(s.every(), is) }
	add("or", slices.ContainsFunc(s.conditions(), func(c *Conditions) bool { return c.or() > 0 }))
	add("not", any(func(c Condition) bool { return c.Not }))
	add("in", any(func(c Condition) bool { return c.Operator == "in" }))
	add("like", any(func(c Condition) bool { return c.Operator == "like" }))
	return words
}

// SelectKeys writes down the items of the SELECT list so that equal expressions are
// equal texts, with columns that foreign keys connect merged or not, and with or
// without the aggregate of a whole item.
func (q *Query) SelectKeys(s *Schema, merge, dropAggregate bool) []string {
	c := comparison{quirks: Quirks{DistinctDropped}}
	if merge {
		c.quirks = append(c.quirks, ForeignKeysMerged)
	}
	return c.side(q, s).items(!dropAggregate)
}
