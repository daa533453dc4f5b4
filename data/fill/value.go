package fill

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"caper/sql"
)

// coerce is the value as a column of that affinity stores it.
func coerce(v any, a sql.Affinity) any {
	switch x := v.(type) {
	case string:
		if a.IsNumber() {
			if n := number(x); n != nil {
				return coerce(n, a)
			}
		}
	case float64:
		switch isWhole := x == math.Trunc(x) && math.Abs(x) < 1e15; {
		case a == sql.AffinityText && isWhole:
			return strconv.FormatFloat(x, 'f', 1, 64)
		case a == sql.AffinityText:
			return strconv.FormatFloat(x, 'g', -1, 64)
		}
		if i := int64(x); (a == sql.AffinityInteger || a == sql.AffinityNumeric) && float64(i) == x {
			return i
		}
	case int64:
		if a == sql.AffinityText {
			return strconv.FormatInt(x, 10)
		}
		if a == sql.AffinityReal {
			return float64(x)
		}
	}
	return v
}

// order compares two values as SQLite sorts them: NULL, numbers, texts, blobs.
func order(a, b any) int {
	if c := cmp.Compare(rank(a), rank(b)); c != 0 {
		return c
	}
	switch x := a.(type) {
	case string:
		return strings.Compare(x, b.(string))
	case []byte:
		return bytes.Compare(x, b.([]byte))
	case nil:
		return 0
	}
	return cmp.Compare(float(a), float(b))
}

func rank(v any) int {
	switch v.(type) {
	case nil:
		return 0
	case int64, float64:
		return 1
	case string:
		return 2
	}
	return 3
}

func float(v any) float64 {
	if i, ok := v.(int64); ok {
		return float64(i)
	}
	f, _ := v.(float64)
	return f
}

// before and after are values just under and over one: a number's neighbours, a
// date's days, a text that sorts so.
func before(v any) any { return beside(v, -1) }
func after(v any) any  { return beside(v, 1) }

func beside(v any, step int64) any {
	switch x := v.(type) {
	case int64:
		return x + step
	case float64:
		return x + float64(step)
	case string:
		if n := number(x); n != nil {
			return fmt.Sprint(beside(n, step))
		}
		if layout := dateLayout(x); layout != "" {
			t, _ := time.Parse(layout, x)
			return t.AddDate(0, 0, int(step)).Format(layout)
		}
		if step > 0 {
			return x + "a"
		}
		if len(x) > 1 {
			return x[:1]
		}
		return ""
	}
	return v
}

// variant makes a value that stands for the nth of its kind.
func variant(v any, n int64) any {
	switch x := v.(type) {
	case int64:
		return x + n
	case float64:
		return x + float64(n)
	case string:
		if layout := dateLayout(x); layout != "" && n < 300 {
			t, _ := time.Parse(layout, x)
			return t.AddDate(0, 0, int(n)).Add(time.Duration(n) * time.Minute).Format(layout)
		}
		return fmt.Sprintf("%s %d", x, n)
	}
	return fmt.Sprint(n)
}

// layouts of dates and times, the usual ones first.
var layouts = []string{
	time.DateOnly, time.DateTime, "15:04:05", "15:04", "1/2/2006", "01/02/2006", "2006/01/02", "2006-01-02 15:04",
	"Jan 2, 2006", "January 2, 2006", "2 January 2006", "2 Jan 2006", "January 2006", "January 2", "Jan 2", "2-Jan-2006", "2006-01",
}

// dateLayout is the layout in which a text is a date or time, "" if it is none.
func dateLayout(text string) string {
	if len(text) < 4 || len(text) > 20 || !strings.ContainsAny(text, "0123456789") {
		return ""
	}
	for _, layout := range layouts {
		if _, err := time.Parse(layout, text); err == nil {
			return layout
		}
	}
	return ""
}

// maxPattern bounds LIKE patterns, since matching takes the product of lengths.
const maxPattern = 1000

// like is SQLite's LIKE: % any text, _ any character, ASCII letters alike in
// either case.
func like(pattern, text string) bool {
	p, s := []rune(strings.ToLower(pattern)), []rune(strings.ToLower(text))
	matched := make([]bool, len(s)+1) // matched[j]: the pattern so far matches s[:j]
	matched[0] = true
	for _, c := range p {
		next := make([]bool, len(s)+1)
		for j := range next {
			switch {
			case c == '%':
				next[j] = matched[j] || j > 0 && next[j-1]
			case j > 0 && (c == '_' || c == s[j-1]):
				next[j] = matched[j-1]
			}
		}
		matched = next
	}
	return matched[len(s)]
}

// pick draws one element of s, which must not be empty.
func pick[T any](r *rand.Rand, s []T) T { return s[r.IntN(len(s))] }

// chance is true with probability p.
func chance(r *rand.Rand, p float64) bool { return r.Float64() < p }

// skewed draws from 0..n-1, small numbers more often.
func skewed(r *rand.Rand, n int) int { return min(r.IntN(n), r.IntN(n)) }
