package fill

import (
	"strings"
	"time"

	"caper/sql"
)

// part is a function that queries take a piece of a text or date with:
// strftime('%Y', day) or substr(code, 1, 2).
type part struct {
	argument *sql.Node // what the piece is taken of
	layout   string    // strftime's format as time.Format writes it
	start    int       // substr's, from 1
	length   int
}

// partOf reads such a call, nil for any other expression.
func (q *query) partOf(n *sql.Node) *part {
	if n.Kind != sql.Function || len(n.Children) < 2 {
		return nil
	}
	first, isText := q.literal(n.Children[0])
	switch format, _ := first.(string); n.Value {
	case "strftime":
		layout := strftime.Replace(format)
		if isText && !strings.Contains(layout, "%") {
			return &part{argument: n.Children[1], layout: layout}
		}
	case "substr", "substring":
		p := &part{argument: n.Children[0], length: 1 << 20}
		for i, to := range []*int{&p.start, &p.length} {
			if i+1 == len(n.Children) {
				break
			}
			v, _ := q.literal(n.Children[i+1])
			number, ok := v.(int64)
			if !ok || number < 1 || number > 1<<20 {
				return nil
			}
			*to = int(number)
		}
		return p
	}
	return nil
}

var strftime = strings.NewReplacer("%Y", "2006", "%m", "01", "%d", "02", "%H", "15", "%M", "04", "%S", "05",
	"%F", time.DateOnly, "%T", time.TimeOnly, "%%", "%")

// of takes the piece, nil where there is none.
func (p *part) of(v any) any {
	s, isText := coerce(v, sql.AffinityText).(string)
	if !isText {
		return nil
	}
	if p.layout != "" {
		t, err := time.Parse(dateLayout(s), s)
		if err != nil {
			return nil
		}
		return t.Format(p.layout)
	}
	characters := []rune(s)
	start := min(p.start-1, len(characters))
	return string(characters[start:min(start+p.length, len(characters))])
}

// dateParts gives the layouts of the pieces of 2006-01-02 by their start, from 1,
// and length.
var dateParts = map[[2]int]string{{1, 4}: "2006", {1, 7}: "2006-01", {1, 10}: time.DateOnly, {6, 2}: "01", {9, 2}: "02"}

// whole is a value with that piece: a date, or where the piece is none, a text.
func (p *part) whole(piece any) any {
	s, isText := coerce(piece, sql.AffinityText).(string)
	if !isText {
		return nil
	}
	layout := p.layout
	if layout == "" {
		layout = dateParts[[2]int{p.start, p.length}]
	}
	t, err := time.Parse(layout, s)
	switch {
	case layout != "" && err == nil && strings.Contains(layout, ":"):
		return inUse(t).Format(time.DateTime)
	case layout != "" && err == nil:
		return inUse(t).Format(time.DateOnly)
	case p.layout == "" && p.start < maxPattern:
		return strings.Repeat("a", p.start-1) + s
	}
	return nil
}

// inUse gives a date without a year one.
func inUse(t time.Time) time.Time {
	if t.Year() == 0 {
		return t.AddDate(2012, 0, 0)
	}
	return t
}
