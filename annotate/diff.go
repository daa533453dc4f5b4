package annotate

import (
	"slices"
	"strings"

	"caper/sql"
)

// Diff is what sets two queries apart once names, order of operands and notation
// are out of the way (docs/annotation.md, 1.4.2).
type Diff struct {
	// Cost is that of Edits, a script that turns query A into B: 1 for an insertion,
	// a deletion and a change of value, 2 for a change of kind. Clauses are paired by
	// kind first; each pair's part of the script is the cheapest there is.
	Cost int `json:"cost"`
	// Clauses are the outermost clauses that differ, in the order of clauses.
	Clauses []ClauseDiff `json:"clauses"`
	Edits   []DiffEdit   `json:"edits"`
}

// ClauseDiff is a clause of A beside its counterpart in B.
type ClauseDiff struct {
	Kind sql.ClauseKind `json:"kind"`
	A    *Span          `json:"a"` // nil where A lacks it
	B    *Span          `json:"b"`
	Cost int            `json:"cost"`
}

// Span is a half-open range of bytes of a query.
type Span struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// DiffEdit is one step of a script. A is the node deleted or changed, B the node
// inserted or changed to. For an insertion, A is the node under which B goes, nil
// where B is the whole clause.
type DiffEdit struct {
	Op     sql.Op         `json:"op"`
	Clause sql.ClauseKind `json:"clause"` // the outermost clause that it changes
	A      *DiffNode      `json:"a"`
	B      *DiffNode      `json:"b"`
}

// DiffNode is a node of a query's canonical tree.
type DiffNode struct {
	Kind sql.Kind `json:"kind"`
	// Value is its canonical value, a column's with its table; "" where the kind
	// says all.
	Value string `json:"value"`
	Span         // of the text that it stands for
	// Own are the parts of the span that are the node's and none of its children's:
	// of "a < b" the "<".
	Own []Span `json:"own"`

	node *sql.Node
}

// Compare finds what sets query b apart from query a. The schema, which may be nil,
// tells which table a bare column belongs to. An error is a *sql.ParseError; isB
// tells whose.
func Compare(a, b string, schema *sql.Schema) (d *Diff, isB bool, err error) {
	treeA, err := sql.Parse(a)
	if err != nil {
		return nil, false, err
	}
	treeB, err := sql.Parse(b)
	if err != nil {
		return nil, true, err
	}
	unitsA, unitsB := sql.ClauseNodes(sql.Canonical(treeA, schema)), sql.ClauseNodes(sql.Canonical(treeB, schema))
	d = &Diff{Clauses: []ClauseDiff{}, Edits: []DiffEdit{}}
	for _, s := range alignClauses(kindsOf(unitsA), kindsOf(unitsB)) {
		c := ClauseDiff{Kind: s.kind}
		var x, y *sql.Node
		if s.wrong >= 0 {
			x = unitsA[s.wrong]
			c.A = &Span{x.Start, x.End}
		}
		if s.gold >= 0 {
			y = unitsB[s.gold]
			c.B = &Span{y.Start, y.End}
		}
		cost, script := sql.Distance(x, y)
		if cost == 0 {
			continue
		}
		c.Cost = cost
		d.Cost += cost
		d.Clauses = append(d.Clauses, c)
		for _, e := range script {
			d.Edits = append(d.Edits, DiffEdit{e.Op, s.kind, diffNode(e.A, a), diffNode(e.B, b)})
		}
	}
	return d, false, nil
}

// kindsOf lists the kinds of clause nodes.
func kindsOf(units []*sql.Node) []sql.ClauseKind {
	kinds := make([]sql.ClauseKind, len(units))
	for i, u := range units {
		kinds[i] = u.ClauseKind()
	}
	return kinds
}

// diffNode describes a canonical node, nil for nil.
func diffNode(n *sql.Node, text string) *DiffNode {
	if n == nil {
		return nil
	}
	d := &DiffNode{Kind: n.Kind, Value: n.Value, Span: Span{n.Start, n.End}, Own: ownSpans(n.Origin, text), node: n}
	if n.Qualifier != "" {
		d.Value = n.Qualifier + "." + n.Value
	}
	return d
}

// ownSpans is the span of a parsed node less those of its children and the white
// space at their edges. Aliases, which canonical trees do without, are its own.
func ownSpans(n *sql.Node, text string) []Span {
	spans := []Span{}
	add := func(start, end int) {
		for start < end && isSpace(text[start]) {
			start++
		}
		for start < end && isSpace(text[end-1]) {
			end--
		}
		if start < end {
			spans = append(spans, Span{start, end})
		}
	}
	at := n.Start
	children := slices.Clone(n.Children)
	slices.SortFunc(children, func(a, b *sql.Node) int { return a.Start - b.Start })
	for _, c := range children {
		if c.Kind != sql.Alias && c.Kind != sql.Name {
			add(at, c.Start)
			at = max(at, c.End)
		}
	}
	add(at, n.End)
	return spans
}

// merged orders spans and joins those with nothing but white space between them.
func merged(spans []Span, text string) []Span {
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b Span) int { return a.Start - b.Start })
	var list []Span
	for _, s := range spans {
		if last := len(list) - 1; last >= 0 && (s.Start <= list[last].End || strings.TrimSpace(text[list[last].End:s.Start]) == "") {
			list[last].End = max(list[last].End, s.End)
			continue
		}
		list = append(list, s)
	}
	return list
}

// MarksA lists the parts of A's text that the script deletes or changes, MarksB
// those of B's that it inserts or changes to.
func (d *Diff) MarksA(a string) []Span { return merged(d.own(sql.Delete), a) }

// MarksB is described with MarksA.
func (d *Diff) MarksB(b string) []Span { return merged(d.own(sql.Insert), b) }

func (d *Diff) own(op sql.Op) []Span {
	var spans []Span
	for _, e := range d.Edits {
		if e.Op == op || e.Op == sql.Relabel {
			spans = append(spans, e.touched(op).Own...)
		}
	}
	return spans
}

// touched is the node of A that an edit deletes or changes, with sql.Insert that of
// B which it inserts or changes to.
func (e DiffEdit) touched(op sql.Op) *DiffNode {
	if op == sql.Insert {
		return e.B
	}
	return e.A
}

// DiffStep is a part of the script for people to read: a deletion or insertion
// together with those right below it, or a change.
type DiffStep struct {
	DiffEdit
	Size int // the edits
	// Spans are the parts of A's text that go, of B's that come in; for a change
	// those of A.
	Spans []Span
}

// Steps groups the script.
func (d *Diff) Steps(a, b string) []DiffStep {
	var steps []DiffStep
	step := make(map[*sql.Node]int) // that of a deleted or inserted node
	for _, e := range d.Edits {
		side := e.Op
		if e.Op == sql.Relabel {
			side = sql.Delete
		}
		n := e.touched(side)
		at, found := step[n.node.Parent]
		if !found || e.Op == sql.Relabel {
			at = len(steps)
			steps = append(steps, DiffStep{DiffEdit: e})
		}
		if e.Op != sql.Relabel {
			step[n.node] = at
		}
		steps[at].Size++
		steps[at].Spans = append(steps[at].Spans, n.Own...)
	}
	for i, s := range steps {
		text := a
		if s.Op == sql.Insert {
			text = b
		}
		steps[i].Spans = merged(s.Spans, text)
	}
	return steps
}
