package annotate

import (
	"strconv"
	"strings"
	"time"

	"caper/sql"
)

// comparisonSwaps lists the comparisons that take the place of one.
var comparisonSwaps = map[string][]string{
	"=": {"!="}, "!=": {"="},
	"<": {"<=", ">"}, "<=": {"<", ">="},
	">": {">=", "<"}, ">=": {">", "<="},
	"IS NULL": {"IS NOT NULL"}, "IS NOT NULL": {"IS NULL"},
}

var swapComparison = swaps(comparisonSwaps)

// changeComparison exchanges a comparison for its negation, its strict or
// reflexive form, or its mirror image, and toggles NOT before IN, LIKE and
// EXISTS.
func changeComparison(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	switch n.Kind {
	case sql.Compare, sql.NullTest:
		swapComparison(q, n, propose)
	case sql.In, sql.Like, sql.Between:
		propose(n, relabelled(n, negated(n.Value)))
	case sql.Not:
		if n.Children[0].Kind == sql.Exists {
			propose(n, n.Children[0])
		}
	case sql.Exists:
		if n.Parent.Kind != sql.Not {
			c := n.Clone()
			not := &sql.Node{Kind: sql.Not, Children: []*sql.Node{c}}
			c.Parent = not
			propose(n, not)
		}
	}
}

// shiftBound moves a bound of BETWEEN by one.
func shiftBound(_ *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Parent == nil || n.Parent.Kind != sql.Between || n.Index() == 0 {
		return
	}
	for _, value := range neighbours(n) {
		propose(n, relabelled(n, value))
	}
}

// swapConnective exchanges AND and OR. A chain of one connective is one node, so
// that the changed node takes up operands of its new kind, or is taken up by a
// parent of that kind.
func swapConnective(_ *query, n *sql.Node, propose func(old, new *sql.Node)) {
	kind := sql.And
	switch n.Kind {
	case sql.And:
		kind = sql.Or
	case sql.Or:
	default:
		return
	}
	old, c := n, n.Clone()
	c.Kind = kind
	if n.Parent.Kind == kind {
		old = n.Parent
		outer := old.Clone()
		outer.Children[n.Index()], c = c, outer
	}
	var operands []*sql.Node
	for _, operand := range c.Children {
		if operand.Kind == kind {
			operands = append(operands, operand.Children...)
		} else {
			operands = append(operands, operand)
		}
	}
	c.Children = operands
	propose(old, c)
}

// dropConjunct leaves out one operand of AND or OR. With two operands the other
// one takes the place of the connective, and their parent is what changes.
func dropConjunct(_ *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Kind != sql.And && n.Kind != sql.Or {
		return
	}
	for i := range min(len(n.Children), maxChoices) {
		if len(n.Children) > 2 {
			propose(n, without(n, i))
			continue
		}
		parent := n.Parent
		c := parent.Clone()
		c.Children[n.Index()] = n.Children[1-i].Clone()
		propose(parent, c)
	}
}

// changeLiteral changes a number by one, tenfold or in sign, a date by a day, a
// month or a year, and a number or string to another value of the column that it
// is compared with.
func changeLiteral(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Parent == nil || n.Parent.Kind == sql.Between && n.Index() > 0 {
		return // shiftBound's
	}
	isText := n.Kind == sql.String || q.scopes.Binding(n).Meaning == sql.MeansString
	if !isText && n.Kind != sql.Number {
		return
	}
	seen := map[string]bool{n.Value: true}
	try := func(values []string) {
		for _, value := range values {
			if !seen[value] {
				seen[value] = true
				propose(n, relabelled(n, value))
			}
		}
	}
	try(neighbours(n))
	if n.Kind == sql.Number && n.Parent.Kind == sql.Compare && strings.Trim(n.Value, "0.") != "" {
		minus := &sql.Node{Kind: sql.Unary, Value: "-", Children: []*sql.Node{n.Clone()}}
		minus.Children[0].Parent = minus
		propose(n, minus)
	}
	column := comparedColumn(n)
	if column == nil {
		return
	}
	values := q.domain(column)
	if n.Parent.Kind == sql.Like {
		try(patternsLike(n.Value, values))
		return
	}
	for _, v := range values {
		if _, err := strconv.ParseFloat(v, 64); isText || err == nil {
			try([]string{v})
		}
	}
}

// neighbours lists the values next to a number or date literal.
func neighbours(n *sql.Node) []string {
	if n.Kind != sql.Number {
		return dateNeighbours(n.Value)
	}
	if i, err := strconv.ParseInt(n.Value, 10, 62); err == nil {
		values := []string{strconv.FormatInt(i+1, 10), strconv.FormatInt(i*10, 10)}
		if i > 0 {
			values = append(values, strconv.FormatInt(i-1, 10))
		}
		return values
	}
	f, err := strconv.ParseFloat(n.Value, 64)
	if err != nil {
		return nil
	}
	decimals := max(len(n.Value)-strings.IndexByte(n.Value, '.')-1, 0)
	format := func(f float64) string { return strconv.FormatFloat(f, 'f', decimals, 64) }
	values := []string{format(f + 1), format(f * 10)}
	if f >= 1 {
		values = append(values, format(f-1))
	}
	return values
}

// dateNeighbours moves a date by a day, a month and a year. It reads ISO dates
// and times; other texts have no neighbours.
func dateNeighbours(text string) []string {
	for _, layout := range []string{time.DateOnly, time.DateTime} {
		if t, err := time.Parse(layout, text); err == nil {
			return []string{
				t.AddDate(0, 0, 1).Format(layout), t.AddDate(0, 0, -1).Format(layout),
				t.AddDate(0, 1, 0).Format(layout), t.AddDate(1, 0, 0).Format(layout),
			}
		}
	}
	return nil
}

// patternsLike puts other values' first words between the wildcards of pattern.
func patternsLike(pattern string, values []string) []string {
	core := strings.Trim(pattern, "%_")
	if core == "" || strings.ContainsAny(core, "%_") {
		return nil
	}
	var patterns []string
	for _, v := range values {
		words := strings.Fields(v)
		if len(words) == 0 || strings.ContainsAny(words[0], "%_") || strings.EqualFold(words[0], core) {
			continue
		}
		patterns = append(patterns, strings.Replace(pattern, core, words[0], 1))
	}
	return patterns
}

// comparedColumn is the column that a literal is compared with, or nil.
func comparedColumn(n *sql.Node) *sql.Node {
	operation := n.Parent
	if operation.Kind == sql.List {
		operation = operation.Parent
	}
	switch operation.Kind {
	case sql.Compare, sql.Like, sql.In, sql.Is:
	default:
		return nil
	}
	for _, side := range operation.Children {
		if side.Kind == sql.Column && side != n {
			return side
		}
	}
	return nil
}
