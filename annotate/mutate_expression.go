package annotate

import (
	"regexp"
	"strconv"
	"strings"

	"caper/sql"
)

// arithmeticSwaps pairs the operators of arithmetic.
var arithmeticSwaps = map[string]string{"+": "-", "-": "+", "*": "/", "/": "*"}

// changeArithmetic exchanges + and -, * and /, and the operands of what does not
// commute.
func changeArithmetic(_ *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Kind != sql.Binary {
		return
	}
	if other, ok := arithmeticSwaps[n.Value]; ok {
		propose(n, relabelled(n, other))
	}
	switch n.Value {
	case "-", "/", "%", "||":
		propose(n, exchanged(n, 0, 1))
	}
}

// exchanged is a copy of n with two children in each other's place.
func exchanged(n *sql.Node, i, j int) *sql.Node {
	c := n.Clone()
	c.Children[i], c.Children[j] = c.Children[j], c.Children[i]
	return c
}

// changeCase exchanges the results of neighbouring branches of a CASE or IIF and
// leaves one of several branches out.
func changeCase(_ *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Kind == sql.Function && n.Value == "iif" && len(n.Children) == 3 {
		propose(n, exchanged(n, 1, 2))
	}
	if n.Kind != sql.Case {
		return
	}
	branches := 0
	for i, branch := range n.Children {
		if branch.Kind != sql.When {
			continue
		}
		branches++
		if i+1 < len(n.Children) {
			c := n.Clone()
			a, b := c.Children[i], c.Children[i+1]
			x, y := len(a.Children)-1, len(b.Children)-1
			a.Children[x], b.Children[y] = b.Children[y], a.Children[x]
			propose(n, c)
		}
	}
	if branches < 2 {
		return
	}
	for i, branch := range n.Children {
		if branch.Kind == sql.When {
			propose(n, without(n, i))
		}
	}
}

// castSwaps pairs the types of CAST between which a division differs.
var castSwaps = map[string]string{
	"REAL": "INTEGER", "FLOAT": "INTEGER", "DOUBLE": "INTEGER", "INTEGER": "REAL", "INT": "REAL",
}

// changeCast casts to an integer in place of a real number, to a real in place
// of an integer, or not at all, and divides reals where nothing is cast.
func changeCast(_ *query, n *sql.Node, propose func(old, new *sql.Node)) {
	switch n.Kind {
	case sql.Cast:
		if other, ok := castSwaps[n.Value]; ok {
			propose(n, relabelled(n, other))
		}
		propose(n, n.Children[0])
	case sql.Binary:
		if n.Value == "/" && n.Children[0].Kind != sql.Cast {
			propose(n.Children[0], branch(sql.Cast, "REAL", n.Children[0].Clone()))
		}
	}
}

// functionSwaps lists the functions of the same type that take the place of one.
var functionSwaps = map[string][]string{
	"upper": {"lower"}, "lower": {"upper"},
	"ltrim": {"rtrim"}, "rtrim": {"ltrim"},
	"date": {"datetime"}, "datetime": {"date"},
	"min": {"max"}, "max": {"min"},
	"row_number": {"rank", "dense_rank"}, "rank": {"row_number", "dense_rank"}, "dense_rank": {"rank", "row_number"},
	"lag": {"lead"}, "lead": {"lag"},
	"first_value": {"last_value"}, "last_value": {"first_value"},
}

// wrappers are functions of which the argument alone has the same type.
var wrappers = map[string]bool{
	"upper": true, "lower": true, "trim": true, "ltrim": true, "rtrim": true, "substr": true, "substring": true, "replace": true,
	"abs": true, "round": true, "ceil": true, "floor": true, "coalesce": true, "ifnull": true,
}

// changeFunction exchanges a function for one of the same type, or for its first
// argument.
func changeFunction(_ *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Kind != sql.Function {
		return
	}
	for _, other := range functionSwaps[n.Value] {
		propose(n, relabelled(n, other))
	}
	if wrappers[n.Value] && len(n.Children) > 0 {
		propose(n, n.Children[0])
	}
}

// dateFunctions take a format or modifiers that name parts of a date.
var dateFunctions = map[string]bool{
	"strftime": true, "date": true, "time": true, "datetime": true, "julianday": true, "unixepoch": true,
}

// datePartSwaps lists the parts of a date that take the place of one, in formats
// and in modifiers.
var datePartSwaps = map[string][]string{
	"%Y": {"%m", "%d"}, "%m": {"%d", "%Y"}, "%d": {"%m", "%Y"}, "%H": {"%M"}, "%M": {"%H"}, "%j": {"%d"}, "%w": {"%d"},
	"year": {"month"}, "month": {"day", "year"}, "day": {"month"}, "hour": {"minute"}, "minute": {"hour"},
}

var (
	datePart     = regexp.MustCompile(`%[YmdHMjw]|year|month|day|hour|minute`)
	dateDistance = regexp.MustCompile(`^([+-]?)(\d+) `)
)

// changeDatePart takes another part of a date in a format or modifier, and moves
// a modifier's distance by one or turns it round.
func changeDatePart(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if !q.isText(n) || n.Parent == nil || n.Parent.Kind != sql.Function || !dateFunctions[n.Parent.Value] {
		return
	}
	if at := datePart.FindStringIndex(n.Value); at != nil {
		for _, part := range datePartSwaps[n.Value[at[0]:at[1]]] {
			propose(n, relabelled(n, n.Value[:at[0]]+part+n.Value[at[1]:]))
		}
	}
	m := dateDistance.FindStringSubmatch(n.Value)
	if m == nil {
		return
	}
	distance, err := strconv.Atoi(m[2])
	if err != nil {
		return
	}
	sign, rest := m[1], strings.TrimPrefix(n.Value, m[1]+m[2])
	propose(n, relabelled(n, sign+strconv.Itoa(distance+1)+rest))
	if sign == "-" {
		propose(n, relabelled(n, "+"+m[2]+rest))
	} else {
		propose(n, relabelled(n, "-"+m[2]+rest))
	}
}

// isText reports that n is a text, in whatever quotes.
func (q *query) isText(n *sql.Node) bool {
	return n.Kind == sql.String || q.scopes.Binding(n).Meaning == sql.MeansString
}
