package solve

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"caper/sql"
)

// dateLayouts are ways to write a date, those that say more first: a value is read by
// the first that fits.
var dateLayouts = []string{
	"2006-01-02 15:04:05", "2006-01-02", "2006/01/02", "20060102", "01/02/2006", "02.01.2006", "2 January 2006", "January 2, 2006", "January 2 2006", "2-Jan-2006", "Jan 2, 2006",
}

func dateLayout(text string) (string, time.Time) {
	for _, layout := range dateLayouts {
		if at, err := time.Parse(layout, text); err == nil {
			return layout, at
		}
	}
	return "", time.Time{}
}

// layoutOf is how all values of a column write their dates, "" where they are none.
func (d domain) layoutOf() string {
	common := ""
	for _, text := range d.texts {
		layout, _ := dateLayout(text)
		if layout == "" || common != "" && layout != common {
			return ""
		}
		common = layout
	}
	return common
}

// reformat writes absent literals as their column does: a date by its pattern, a share
// as a fraction or as a percentage, a number with or without quotes.
func (c *cascade) reformat() (all []mend, err error) {
	for i, p := range c.predicates {
		if !c.absent[i] || p.operator == "LIKE" {
			continue
		}
		values, err := c.values(p.table.Name, p.base.Name)
		if err != nil {
			return nil, err
		}
		if len(values.texts) == 0 {
			continue
		}
		literal, note := values.rewrite(p)
		if literal == nil {
			continue
		}
		d := newDraft(c.Examined)
		become(d.at(p.literal), literal)
		all = append(all, mend{d.text(), "format", fmt.Sprintf("%s: %s", columnName(p.column), note)})
	}
	return all, nil
}

// rewrite is a literal in the column's way.
func (d domain) rewrite(p predicate) (literal *sql.Node, note string) {
	if own, at := dateLayout(p.text()); own != "" {
		if layout := d.layoutOf(); layout != "" && layout != own {
			text := at.Format(layout)
			return &sql.Node{Kind: sql.String, Value: text}, fmt.Sprintf("dates are written as in '%s'", text)
		}
	}
	number, err := strconv.ParseFloat(strings.TrimSuffix(p.text(), "%"), 64)
	if err != nil {
		return nil, ""
	}
	if d.numbers {
		return d.share(p, number)
	}
	if !p.isText() { // texts that are numbers
		return &sql.Node{Kind: sql.String, Value: p.text()}, "the values are texts"
	}
	return nil, ""
}

// share turns a percentage into a fraction where the column has fractions, and the
// other way round.
func (d domain) share(p predicate, number float64) (literal *sql.Node, note string) {
	largest := 0.0
	for _, text := range d.texts {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || v < 0 {
			return nil, ""
		}
		largest = max(largest, v)
	}
	switch {
	case largest <= 1 && number > 1 && number <= 100:
		number, note = number/100, "the values are fractions"
	case largest > 1 && largest <= 100 && number > 0 && number < 1:
		number, note = number*100, "the values are percentages"
	case p.isText() && strings.HasSuffix(p.text(), "%"):
		note = "the values are numbers"
	default:
		return nil, ""
	}
	return &sql.Node{Kind: sql.Number, Value: strconv.FormatFloat(number, 'g', 12, 64)}, note
}
