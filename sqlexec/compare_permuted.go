package sqlexec

import (
	"slices"
)

// samePermuted compares bags or lists of rows under any order of columns. Cells
// become small numbers that are equal where Python's values are, so that a table is
// its columns of numbers.
func samePermuted(gold, pred [][]Value, ordered bool) bool {
	if len(gold) == 0 {
		return true
	}
	n := numbering{ids: map[string]int32{}}
	m := matching{gold: n.columns(gold), pred: n.columns(pred)}
	if ordered {
		return m.inOrder()
	}
	return m.asBags()
}

// numbering gives equal cells equal numbers.
type numbering struct {
	ids map[string]int32
	key []byte
}

func (n *numbering) columns(rows [][]Value) [][]int32 {
	columns := make([][]int32, len(rows[0]))
	cells := make([]int32, len(rows)*len(columns))
	for j := range columns {
		columns[j] = cells[j*len(rows) : (j+1)*len(rows)]
		for i, row := range rows {
			columns[j][i] = n.id(row[j])
		}
	}
	return columns
}

func (n *numbering) id(v Value) int32 {
	n.key = appendKey(n.key[:0], v)
	id, ok := n.ids[string(n.key)]
	if !ok {
		id = int32(len(n.ids))
		n.ids[string(n.key)] = id
	}
	return id
}

// matching looks for a permutation of pred's columns that makes the tables equal.
type matching struct{ gold, pred [][]int32 }

// inOrder compares row by row. Columns with the same cells are interchangeable,
// so the first free one will do.
func (m *matching) inOrder() bool {
	used := make([]bool, len(m.pred))
	for _, want := range m.gold {
		j := 0
		for j < len(m.pred) && (used[j] || !slices.Equal(want, m.pred[j])) {
			j++
		}
		if j == len(m.pred) {
			return false
		}
		used[j] = true
	}
	return true
}

// asBags compares bags of rows. A gold column can only be a pred column with the
// same bag of cells; the search takes the columns with the fewest such partners
// first, and splits the rows of both tables into classes that agree in all
// columns matched so far: a match that leaves classes of different size is wrong.
func (m *matching) asBags() bool {
	partners := m.partners()
	order := make([]int, len(m.gold))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return len(partners[a]) - len(partners[b]) })
	rows := len(m.gold[0])
	return m.extend(order, partners, make([]bool, len(m.pred)), make([]int32, rows), make([]int32, rows))
}

// partners lists, for each gold column, the pred columns with the same bag of cells.
func (m *matching) partners() [][]int {
	sorted := func(columns [][]int32) [][]int32 {
		out := make([][]int32, len(columns))
		for i, c := range columns {
			out[i] = slices.Sorted(slices.Values(c))
		}
		return out
	}
	gold, pred := sorted(m.gold), sorted(m.pred)
	partners := make([][]int, len(gold))
	for i := range gold {
		for j := range pred {
			if slices.Equal(gold[i], pred[j]) {
				partners[i] = append(partners[i], j)
			}
		}
	}
	return partners
}

func (m *matching) extend(order []int, partners [][]int, used []bool, goldClass, predClass []int32) bool {
	if len(order) == 0 {
		return true
	}
	i := order[0]
	for k, j := range partners[i] {
		if used[j] || m.triedEqual(partners[i][:k], used, j) {
			continue
		}
		nextGold, nextPred, ok := split(goldClass, m.gold[i], predClass, m.pred[j])
		if !ok {
			continue
		}
		used[j] = true
		if m.extend(order[1:], partners, used, nextGold, nextPred) {
			return true
		}
		used[j] = false
	}
	return false
}

// triedEqual reports whether a free column with the same cells was tried before j.
func (m *matching) triedEqual(before []int, used []bool, j int) bool {
	return slices.ContainsFunc(before, func(b int) bool { return !used[b] && slices.Equal(m.pred[b], m.pred[j]) })
}

// split refines the classes of both tables' rows by one more column; ok says that
// every class still has as many rows in one as in the other.
func split(goldClass, goldColumn, predClass, predColumn []int32) (nextGold, nextPred []int32, ok bool) {
	type pair struct{ class, cell int32 }
	classes := make(map[pair]int32)
	var surplus []int
	nextGold = make([]int32, len(goldClass))
	for r := range goldClass {
		p := pair{goldClass[r], goldColumn[r]}
		id, known := classes[p]
		if !known {
			id = int32(len(classes))
			classes[p] = id
			surplus = append(surplus, 0)
		}
		surplus[id]++
		nextGold[r] = id
	}
	nextPred = make([]int32, len(predClass))
	for r := range predClass {
		id, known := classes[pair{predClass[r], predColumn[r]}]
		if !known || surplus[id] == 0 {
			return nil, nil, false
		}
		surplus[id]--
		nextPred[r] = id
	}
	return nextGold, nextPred, true
}
