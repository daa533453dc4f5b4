package sqlexec

import (
	"slices"
	"sort"
)

// sameClosely compares lists row by row. Bags are the same if the rows of one can be
// paired off with close rows of the other. "Close" is not transitive, so neither a sort
// nor a first fit decides that: rows are put into groups that no close pair crosses,
// nearly always of a row or of equal rows, and each group is matched.
func sameClosely(gold, pred [][]Value, ordered bool) bool {
	switch {
	case len(gold) != len(pred):
		return false
	case ordered:
		return slices.EqualFunc(gold, pred, closeRows)
	case sameExactly(gold, pred, false):
		return true
	}
	columns := chainColumns(gold, pred)
	groups := make(map[string]*pairing)
	for _, row := range gold {
		key := columns.key(row)
		if groups[key] == nil {
			groups[key] = &pairing{column: columns.firstChained()}
		}
		groups[key].gold = append(groups[key].gold, row)
	}
	for _, row := range pred {
		g := groups[columns.key(row)]
		if g == nil || len(g.pred) == len(g.gold) {
			return false
		}
		g.pred = append(g.pred, row)
	}
	for _, g := range groups {
		if !g.isPerfect() {
			return false
		}
	}
	return true
}

// chains are a column's numbers cut where neighbours are not within the tolerance, as
// the sorted first numbers of the pieces: close numbers are of one piece. A column
// of whole numbers has none; there, close is equal.
type chains []float64

// columnChains are the chains of each column.
type columnChains []chains

func chainColumns(gold, pred [][]Value) columnChains {
	if len(gold) == 0 {
		return nil
	}
	columns := make(columnChains, len(gold[0]))
	for j := range columns {
		columns[j] = chainsOf(j, gold, pred)
	}
	return columns
}

func chainsOf(column int, tables ...[][]Value) chains {
	var numbers []float64
	exact := true
	for _, rows := range tables {
		for _, row := range rows {
			if v := row[column]; isNumber(v) {
				numbers = append(numbers, asFloat(v))
				exact = exact && isExact(v)
			}
		}
	}
	if exact {
		return nil
	}
	slices.Sort(numbers)
	starts := chains{numbers[0]}
	for i, x := range numbers[1:] {
		if !withinTolerance(numbers[i], x) {
			starts = append(starts, x)
		}
	}
	return starts
}

// key is the same for close rows.
func (c columnChains) key(row []Value) string {
	row = slices.Clone(row)
	for j, starts := range c {
		if starts != nil && isNumber(row[j]) {
			x := asFloat(row[j])
			row[j] = int64(sort.Search(len(starts), func(i int) bool { return starts[i] > x }))
		}
	}
	return string(appendRowKey(nil, row))
}

func (c columnChains) firstChained() int {
	return slices.IndexFunc(c, func(starts chains) bool { return starts != nil })
}

// pairing looks for a perfect matching of a group's rows by augmenting paths (Kuhn's
// algorithm), from the pairs that the sorted order gives. Rows of a group differ
// first in the given column, -1 if in none.
type pairing struct {
	gold, pred [][]Value
	column     int
	partner    []int  // gold row of each pred row, or -1
	seen       []bool // pred rows on the paths tried from one gold row
}

func (p *pairing) isPerfect() bool {
	if len(p.gold) != len(p.pred) {
		return false
	}
	slices.SortFunc(p.gold, compareRows)
	slices.SortFunc(p.pred, compareRows)
	p.partner = make([]int, len(p.pred))
	var unpaired []int
	for i := range p.gold {
		p.partner[i] = i
		if !closeRows(p.gold[i], p.pred[i]) {
			p.partner[i] = -1
			unpaired = append(unpaired, i)
		}
	}
	for _, i := range unpaired {
		p.seen = make([]bool, len(p.pred))
		if !p.augment(i) {
			return false
		}
	}
	return true
}

// augment pairs gold row i, if need be by giving other gold rows other partners.
func (p *pairing) augment(i int) bool {
	low, high := p.candidates(p.gold[i])
	for j := low; j < high; j++ {
		if p.seen[j] || !closeRows(p.gold[i], p.pred[j]) {
			continue
		}
		p.seen[j] = true
		if p.partner[j] < 0 || p.augment(p.partner[j]) {
			p.partner[j] = i
			return true
		}
	}
	return false
}

// candidates bounds the pred rows within the tolerance of row in the sorted column, so
// that long chains take no quadratic time.
func (p *pairing) candidates(row []Value) (low, high int) {
	if p.column < 0 || !isNumber(row[p.column]) {
		return 0, len(p.pred)
	}
	x := asFloat(row[p.column])
	cell := func(j int) float64 { return asFloat(p.pred[j][p.column]) }
	low = sort.Search(len(p.pred), func(j int) bool { return cell(j) >= x || withinTolerance(cell(j), x) })
	high = sort.Search(len(p.pred), func(j int) bool { return cell(j) > x && !withinTolerance(cell(j), x) })
	return low, high
}
