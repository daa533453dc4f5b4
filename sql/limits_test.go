package sql

import (
	"errors"
	"strings"
	"testing"
)

// TestLimits: what SQLite still reads is read, and beyond the limits of either the
// refusal is a *ParseError that names the limit.
func TestLimits(t *testing.T) {
	around := func(before, after string) func(int) string {
		return func(n int) string { return strings.Repeat(before, n) + "SELECT 1" + strings.Repeat(after, n) }
	}
	inside := func(head, before, core, after string) func(int) string {
		return func(n int) string { return head + strings.Repeat(before, n) + core + strings.Repeat(after, n) }
	}
	for _, c := range []struct {
		name           string
		query          func(n int) string
		most, too      int // SQLite 3.54 reads most, and refuses too or reads more
		messageOnceToo string
	}{
		{"parentheses", inside("SELECT ", "(", "1", ")"), 1200, 0, ""},
		{"parentheses of joins", inside("SELECT 1 FROM ", "(", "t", ")"), 900, 5000, "nested deeper"},
		{"sub-queries in FROM", around("SELECT * FROM (", ")"), 400, 5000, "Recursion limit"},
		{"scalar sub-queries", around("SELECT (", ")"), 190, 5000, "Recursion limit"},
		{"NOT", inside("SELECT ", "NOT ", "1", ""), 998, 1100, "nested deeper"},
		{"terms of a sum", inside("SELECT 1", "+1", "", ""), 998, 1100, "nested deeper"},
		{"conditions", inside("SELECT 1 WHERE 1", " AND 1", "", ""), 998, 1100, "nested deeper"},
		{"elements of IN", inside("SELECT 1 WHERE 1 IN (1", ",1", ")", ""), 50000, 70000, "longer than"},
		{"operands", inside("SELECT 1", " UNION SELECT 1", "", ""), 499, 500, "operands"},
		{"tables", inside("SELECT 1 FROM t", " JOIN t", "", ""), 63, 64, "tables in a join"},
	} {
		if _, err := Parse(c.query(c.most)); err != nil {
			t.Errorf("%d %s: %v", c.most, c.name, err)
		}
		if c.too == 0 {
			continue
		}
		_, err := Parse(c.query(c.too))
		var refusal *ParseError
		if !errors.As(err, &refusal) || !strings.Contains(refusal.Message, c.messageOnceToo) {
			t.Errorf("%d %s: %v, want a refusal that says %q", c.too, c.name, err, c.messageOnceToo)
		}
	}
}
