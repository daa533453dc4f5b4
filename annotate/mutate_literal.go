package annotate

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"caper/sql"
)

// changeLiteral changes a number by one, tenfold or in sign, a date by a day, a
// month or a year, and a number or string to another value of the column that it
// is compared with.
func changeLiteral(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Parent == nil || n.Parent.Kind == sql.Between && n.Index() > 0 {
		return // shiftBound's
	}
	isText := q.isText(n)
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

// maxDateDigits is the length of a date without separators, 20120831.
const maxDateDigits = 8

// dateNeighbours moves a date by a day, a month and a year, and a year, month or
// day alone by one. It reads ISO dates and times, and digits; other texts have
// no neighbours.
func dateNeighbours(text string) []string {
	if part, err := strconv.Atoi(text); err == nil && part > 0 && len(text) <= maxDateDigits && text[0] != '+' {
		return []string{fmt.Sprintf("%0*d", len(text), part+1), fmt.Sprintf("%0*d", len(text), part-1)}
	}
	for _, layout := range []string{time.DateOnly, time.DateTime, "2006-01"} {
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
