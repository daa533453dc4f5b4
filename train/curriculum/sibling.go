package curriculum

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"caper/data"
	"caper/engine"
	"caper/sql"
	"caper/sqlexec"
)

// Siblings makes siblings of questions.
type Siblings struct {
	Bench    *data.Benchmark
	Reworder Reworder
	// Tries is how many changed queries are tried for a question.
	Tries int
	// Rows is the most rows that a sibling's result may have.
	Rows int
	Seed uint64

	stored map[string][]*sql.Node // values of columns
}

// Make makes a sibling of the question with the given index in its list: a query whose
// result is neither empty nor that of the question's, in an order that is clear where it
// has one, and that a second writing of its wording agrees with. It returns false, with
// the reasons of all that was tried, where there is none.
func (s *Siblings) Make(ctx context.Context, index int, of Item, origin Origin) (item Item, reasons map[string]int, err error) {
	reasons = map[string]int{}
	tree, err := sql.Parse(of.Question.Gold)
	if err != nil {
		reasons["gold does not parse"]++
		return item, reasons, nil
	}
	schema, err := s.Bench.Schema(of.Question.DBID)
	if err != nil {
		return item, nil, err
	}
	db, err := s.Bench.Database(of.Question.DBID)
	if err != nil {
		return item, nil, err
	}
	c := &candidates{Siblings: s, db: db, schema: schema, of: of.Question, tree: tree, origin: origin}
	if c.result, err = c.run(ctx, of.Question.Gold); err != nil || c.result == nil {
		reasons["gold fails"]++
		return item, reasons, err
	}
	for tries, p := range c.propose(ctx, index) {
		if tries == s.Tries {
			break
		}
		seed := engine.Random(s.Seed, "sibling", uint64(index), uint64(tries)+1).Uint64()
		q, reason, err := c.make(ctx, p, seed)
		if err != nil {
			return item, nil, err
		}
		if reason == "" {
			return Item{Question: q, Origin: origin, Of: of.Question.ID, Change: p.change}, nil, nil
		}
		reasons[reason]++
	}
	if len(reasons) == 0 {
		reasons["nothing to change"]++
	}
	return item, reasons, nil
}

// candidates are what a question's sibling is chosen among.
type candidates struct {
	*Siblings
	db     *sqlexec.Database
	schema *sql.Schema
	of     data.Question
	tree   *sql.Node
	result *sqlexec.Result
	origin Origin
}

// propose lists changed queries in an order that is drawn: one of each kind of change, then
// another of each.
func (c *candidates) propose(ctx context.Context, index int) (all []proposal) {
	q := &query{tree: c.tree, schema: c.schema, values: func(table, column string) []*sql.Node { return c.values(ctx, table, column) }}
	seen, kinds, names := map[string]bool{}, map[string][]proposal{}, []string(nil)
	add := func(change string, edit func(*editing) bool) {
		text := q.edited(edit)
		if text == "" || seen[text] {
			return
		}
		seen[text] = true
		if kinds[change] == nil {
			names = append(names, change)
		}
		kinds[change] = append(kinds[change], proposal{change, text})
	}
	if c.origin == Harder {
		q.harder(add)
	} else {
		q.easier(add)
	}
	r := engine.Random(c.Seed, "sibling", uint64(index), 0)
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names {
		of := kinds[name]
		r.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
	}
	for round := 0; len(all) < len(seen); round++ {
		for _, name := range names {
			if round < len(kinds[name]) {
				all = append(all, kinds[name][round])
			}
		}
	}
	return all
}

// values are up to five values of a column, as literals.
func (c *candidates) values(ctx context.Context, table, column string) []*sql.Node {
	key := c.of.DBID + "\x00" + table + "\x00" + column
	if values, ok := c.stored[key]; ok {
		return values
	}
	if c.stored == nil {
		c.stored = map[string][]*sql.Node{}
	}
	name := &sql.Node{Kind: sql.Column, Value: column}
	statement := rowsOf(table, name)
	statement.Child(sql.Projection).Value = "DISTINCT"
	put(statement, branch(sql.OrderBy, "", branch(sql.OrderTerm, "ASC", name.Clone())))
	var literals []*sql.Node
	if result, err := c.db.Query(ctx, sql.Render(statement)); err == nil {
		for i := range min(5, len(result.Rows)) {
			if l := literalOf(result.Rows[(2*i+1)*len(result.Rows)/(2*min(5, len(result.Rows)))][0]); l != nil {
				literals = append(literals, l)
			}
		}
	}
	c.stored[key] = literals
	return literals
}

// literalOf writes a value that a condition can name: no NULL, no number below 0, no text
// that is long or holds a quote or a wildcard.
func literalOf(v sqlexec.Value) *sql.Node {
	switch v := v.(type) {
	case string:
		if v != "" && len(v) <= 40 && !strings.ContainsAny(v, "'%_\n") {
			return &sql.Node{Kind: sql.String, Value: v}
		}
	case int64, float64:
		if text := fmt.Sprint(v); !strings.ContainsAny(text, "-e") {
			return number(text)
		}
	}
	return nil
}

// run executes a query; nil where that fails.
func (c *candidates) run(ctx context.Context, query string) (*sqlexec.Result, error) {
	result, err := c.db.Query(ctx, query)
	if errors.As(err, new(*sqlexec.Error)) && ctx.Err() == nil {
		return nil, nil
	}
	return result, err
}

// make makes the question of a changed query, or says why there is none.
func (c *candidates) make(ctx context.Context, p proposal, seed uint64) (q data.Question, reason string, err error) {
	tree, err := sql.Parse(p.text)
	if err != nil {
		return q, "does not parse", nil
	}
	if !c.grows(tree, p.text) {
		return q, "no " + string(c.origin), nil
	}
	result, err := c.run(ctx, p.text)
	if err != nil {
		return q, "", err
	}
	rule := c.Bench.Rule()
	switch {
	case result == nil:
		return q, "fails", nil
	case isBlank(result):
		return q, "empty", nil
	case result.Truncated || len(result.Rows) > c.Rows:
		return q, "too many rows", nil
	case rule.Same(c.result, result, c.of.Gold):
		return q, "same result", nil
	}
	if clear, err := c.isOrdered(ctx, tree); err != nil || !clear {
		return q, "order not clear", err
	}
	w, err := c.Reworder.Reword(ctx, Change{Question: c.of, Name: p.change, SQL: p.text, Schema: c.schema, Seed: seed})
	if errors.Is(err, ErrNoWording) {
		return q, "no wording", nil
	}
	if err != nil {
		return q, "", fmt.Errorf("sibling of question %s: %w", c.of.ID, err)
	}
	second, err := c.run(ctx, w.SQL)
	if err != nil {
		return q, "", err
	}
	if second == nil || !rule.Same(result, second, p.text) {
		return q, "second writing disagrees", nil
	}
	q = c.of
	q.ID, q.Question, q.Gold, q.Evidence = data.NameID(c.of.ID.String()+"+"+string(c.origin)), w.Question, p.text, ""
	return q, "", nil
}

// grows reports that a harder sibling is larger than what it was made from, and not of
// fewer clauses; an easier one smaller, and not of more.
func (c *candidates) grows(tree *sql.Node, text string) bool {
	more, clauses := size(tree)-size(c.tree), len(sql.Clauses(text))-len(sql.Clauses(c.of.Gold))
	if c.origin == Easier {
		more, clauses = -more, -clauses
	}
	return more > 0 && clauses >= 0
}

func size(tree *sql.Node) (nodes int) {
	sql.Walk(tree, func(*sql.Node) bool { nodes++; return true })
	return nodes
}

// isBlank reports a result without any value.
func isBlank(r *sqlexec.Result) bool {
	for _, row := range r.Rows {
		for _, v := range row {
			if v != nil {
				return false
			}
		}
	}
	return true
}

// isOrdered reports that the rows of a query can stand in one order only, where it has one:
// that no two of them, nor the first that a limit cuts off, agree in what they are sorted
// by. Limits without an order, or inside, are not clear.
func (c *candidates) isOrdered(ctx context.Context, tree *sql.Node) (bool, error) {
	by, limit, inner := tree.Child(sql.OrderBy), tree.Child(sql.Limit), false
	sql.Walk(tree, func(n *sql.Node) bool {
		inner = inner || n.Kind == sql.Limit && n != limit
		return true
	})
	if by == nil || inner {
		return limit == nil && !inner, nil
	}
	keys := tree.Clone()
	if projection := keys.Child(sql.Projection); projection == nil || projection.Value != "" {
		return false, nil
	}
	var shown []*sql.Node
	for _, term := range by.Children {
		shown = append(shown, branch(sql.Item, "", term.Children[0].Clone()))
	}
	keys.Child(sql.Projection).Children = shown
	rows := c.Rows
	if limit != nil {
		if _, err := fmt.Sscan(limit.Children[0].Value, &rows); err != nil || len(limit.Children) > 1 {
			return false, nil
		}
		drop(keys.Child(sql.Limit))
	}
	put(keys, branch(sql.Limit, "", number(fmt.Sprint(rows+1))))
	result, err := c.run(ctx, sql.Render(keys))
	if err != nil || result == nil {
		return false, err
	}
	return len(sqlexec.DistinctRows(result.Rows)) == len(result.Rows), nil
}
