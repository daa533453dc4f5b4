package eval

import (
	"fmt"
	"slices"

	"caper/data"
	"caper/eval/exactmatch"
	"caper/sqlexec"
)

// selectKeys name the columns of the two results by their SELECT expressions, which
// is how Spider's first evaluator finds the columns to compare.
type selectKeys struct{ gold, pred []string }

// newSelectKeys reads both queries. The error is a *exactmatch.ParseError when gold
// cannot be read; unreadable says the same of the prediction.
func newSelectKeys(schemas *Schemas, r data.Rollout, quirks sqlexec.Quirks) (k selectKeys, unreadable bool, err error) {
	schema, err := schemas.Get(r.DBID)
	if err != nil {
		return k, false, err
	}
	gold, err := exactmatch.Spider.Parse(schema, r.Gold)
	if err != nil {
		return k, false, err
	}
	pred, err := exactmatch.Spider.Parse(schema, r.SQL)
	if err != nil {
		return k, true, nil
	}
	merge, dropAggregate := quirks.Has(ForeignKeysMerged), quirks.Has(AggregateDropped)
	return selectKeys{gold.SelectKeys(schema, merge, dropAggregate), pred.SelectKeys(schema, merge, dropAggregate)}, false, nil
}

// project keeps a result's named columns, sorted by name. A name that occurs twice
// means the last column of that name.
func project(r *sqlexec.Result, keys []string) (*sqlexec.Result, error) {
	if len(keys) > len(r.Columns) && len(r.Rows) > 0 {
		return nil, fmt.Errorf("%d SELECT items for %d columns: the official script stops here", len(keys), len(r.Columns))
	}
	place := map[string]int{}
	for i, key := range keys {
		place[key] = i
	}
	out := &sqlexec.Result{Truncated: r.Truncated}
	for key := range place {
		out.Columns = append(out.Columns, key)
	}
	slices.Sort(out.Columns)
	for _, row := range r.Rows {
		cells := make([]sqlexec.Value, len(out.Columns))
		for i, key := range out.Columns {
			cells[i] = row[place[key]]
		}
		out.Rows = append(out.Rows, cells)
	}
	return out, nil
}

// same compares two results column by column.
func (k selectKeys) same(gold, pred *sqlexec.Result, goldSQL string, quirks sqlexec.Quirks) (bool, error) {
	g, err := project(gold, k.gold)
	if err != nil {
		return false, err
	}
	p, err := project(pred, k.pred)
	if err != nil {
		return false, err
	}
	return slices.Equal(g.Columns, p.Columns) && quirks.Same(g, p, goldSQL), nil
}
