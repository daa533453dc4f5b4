package solve

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"caper/sqlexec"
)

// answer is a result as votes compare it: column names do not count, and rows are a
// bag, or a list where the question asks for an order.
type answer struct {
	signature string // equal ones are one answer
	cells     []cell // sorted by id
	size      int    // number of cells
}

// cell is a value in a column (and in a row, where rows are a list) with the number of
// times it stands there. The n-th occurrence is the triple (column, value, n) of
// sirius.md 2.5, so that a bag of triples is this list.
type cell struct{ id, count int32 }

// answers numbers the cells of a pool's results.
type answers struct {
	ordered bool
	ids     map[string]int32
}

func newAnswers(ordered bool) *answers { return &answers{ordered, map[string]int32{}} }

// of reads a result.
func (a *answers) of(r *sqlexec.Result) answer {
	counts := map[int32]int32{}
	rows := make([]string, len(r.Rows))
	var key []byte
	for i, row := range r.Rows {
		var text []byte
		for j, v := range row {
			key = strconv.AppendInt(key[:0], int64(j), 10)
			if a.ordered {
				key = strconv.AppendInt(append(key, '@'), int64(i), 10)
			}
			key = appendNormal(append(key, ' '), v)
			counts[a.id(key)]++
			text = appendNormal(append(text, 0), v)
		}
		rows[i] = string(text)
	}
	if !a.ordered {
		slices.Sort(rows)
	}
	out := answer{signature: strconv.Itoa(len(r.Columns)) + strings.Join(rows, "\x01")}
	for id, count := range counts {
		out.cells = append(out.cells, cell{id, count})
		out.size += int(count)
	}
	slices.SortFunc(out.cells, func(x, y cell) int { return int(x.id) - int(y.id) })
	return out
}

func (a *answers) id(key []byte) int32 {
	id, ok := a.ids[string(key)]
	if !ok {
		id = int32(len(a.ids))
		a.ids[string(key)] = id
	}
	return id
}

// appendNormal writes a value so that what no reader would tell apart is equal: numbers
// to six significant digits, whole ones exactly, texts without the space around them.
func appendNormal(key []byte, v sqlexec.Value) []byte {
	switch v := v.(type) {
	case nil:
		return append(key, 'n')
	case int64:
		return strconv.AppendInt(append(key, 'i'), v, 10)
	case float64:
		const exact = 1 << 53
		rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 5, 64), 64)
		if whole := math.Trunc(rounded); whole == rounded && math.Abs(rounded) < 1e6 {
			return strconv.AppendInt(append(key, 'i'), int64(whole), 10)
		}
		if whole := math.Trunc(v); whole == v && math.Abs(v) < exact {
			return strconv.AppendInt(append(key, 'i'), int64(whole), 10)
		}
		return strconv.AppendFloat(append(key, 'f'), v, 'e', 5, 64)
	case string:
		return strconv.AppendQuote(append(key, 's'), strings.TrimSpace(v))
	case []byte:
		return strconv.AppendQuote(append(key, 'b'), string(v))
	}
	panic("solve: a cell that is not a Value")
}

// shared is the number of triples that two answers share.
func (a *answer) shared(b *answer) int {
	n := 0
	for i, j := 0, 0; i < len(a.cells) && j < len(b.cells); {
		switch x, y := a.cells[i], b.cells[j]; {
		case x.id < y.id:
			i++
		case x.id > y.id:
			j++
		default:
			n += int(min(x.count, y.count))
			i, j = i+1, j+1
		}
	}
	return n
}

var orderWords = regexp.MustCompile(`(?i)\b(sort(ed)?|ordered|(a|de)scending|(in|de)creasing|alphabetic(al(ly)?)?|chronological(ly)?|(in|the) order of|order (them|it|the \w+|by))\b`)

// asksForOrder reports that the question's words ask for rows in an order.
func asksForOrder(question string) bool { return orderWords.MatchString(question) }
