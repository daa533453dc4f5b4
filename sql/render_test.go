package sql

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	_ "github.com/mattn/go-sqlite3"
	"pgregory.net/rapid"
)

// drawExpr makes an expression over constants with every kind of operator.
func drawExpr(t *rapid.T, depth int) *Node {
	expr := func(kind Kind, value string, children ...*Node) *Node {
		n := &Node{Kind: kind, Value: value}
		for _, c := range children {
			n.add(c)
		}
		return n
	}
	draw := func(values ...string) string { return rapid.SampledFrom(values).Draw(t, "value") }
	sub := func() *Node { return drawExpr(t, depth-1) }
	if depth == 0 {
		switch draw("number", "string", "null", "real") {
		case "string":
			return expr(String, draw("", "a", "1", "it's"))
		case "null":
			return expr(Null, "")
		case "real":
			return expr(Number, draw("0.5", "2.0"))
		}
		return expr(Number, draw("0", "1", "2", "7"))
	}
	switch draw("leaf", "and", "or", "not", "compare", "binary", "unary", "is", "null-test", "like", "between", "in", "case", "cast", "collate") {
	case "and", "or":
		kind := rapid.SampledFrom([]Kind{And, Or}).Draw(t, "kind")
		n := expr(kind, "")
		for range rapid.IntRange(2, 3).Draw(t, "operands") {
			c := sub()
			for c.Kind == kind { // chains are flat in a parsed tree
				c = c.Children[0]
			}
			n.add(c)
		}
		return n
	case "not":
		return expr(Not, "", sub())
	case "compare":
		return expr(Compare, draw("=", "!=", "<", "<=", ">", ">="), sub(), sub())
	case "binary":
		return expr(Binary, draw("+", "-", "*", "/", "%", "||", "&", "|", "<<", ">>"), sub(), sub())
	case "unary":
		return expr(Unary, draw("-", "+", "~"), sub())
	case "is":
		right := sub()
		if right.Kind == Null {
			return expr(NullTest, draw("IS NULL", "IS NOT NULL"), sub())
		}
		return expr(Is, draw("IS", "IS NOT", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"), sub(), right)
	case "null-test":
		return expr(NullTest, draw("IS NULL", "IS NOT NULL"), sub())
	case "like":
		return expr(Like, draw("LIKE", "NOT LIKE", "GLOB"), sub(), sub())
	case "between":
		return expr(Between, draw("BETWEEN", "NOT BETWEEN"), sub(), sub(), sub())
	case "in":
		return expr(In, draw("IN", "NOT IN"), sub(), expr(List, "", sub(), sub()))
	case "case":
		return expr(Case, "", expr(When, "", sub(), sub()), expr(Else, "", sub()))
	case "cast":
		return expr(Cast, draw("INTEGER", "TEXT", "REAL"), sub())
	case "collate":
		return expr(Collate, "NOCASE", sub())
	}
	return drawExpr(t, 0)
}

// spelledOut prints an expression with every operand in parentheses.
func spelledOut(n *Node) string {
	operands := make([]string, len(n.Children))
	for i, c := range n.Children {
		operands[i] = "(" + spelledOut(c) + ")"
	}
	switch n.Kind {
	case And:
		return strings.Join(operands, " AND ")
	case Or:
		return strings.Join(operands, " OR ")
	case Not:
		return "NOT " + operands[0]
	case Compare, Binary, Is, Like:
		return strings.Join(operands, " "+n.Value+" ")
	case NullTest:
		return operands[0] + " " + n.Value
	case Unary:
		return n.Value + " " + operands[0]
	case Between:
		return operands[0] + " " + n.Value + " " + operands[1] + " AND " + operands[2]
	case In:
		return operands[0] + " " + n.Value + " " + operands[1]
	case List:
		return strings.Join(operands, ", ")
	case Case:
		return "CASE " + spelledOut(n.Children[0]) + " " + spelledOut(n.Children[1]) + " END"
	case When:
		return "WHEN " + operands[0] + " THEN " + operands[1]
	case Else:
		return "ELSE " + operands[0]
	case Cast:
		return "CAST(" + operands[0] + " AS " + n.Value + ")"
	case Collate:
		return operands[0] + " COLLATE " + n.Value
	}
	return Render(n)
}

// TestRenderedExpressionsMeanTheSame has SQLite compute random expressions as
// printed, with few parentheses, and with a parenthesis around each operand.
func TestRenderedExpressionsMeanTheSame(t *testing.T) {
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	value := func(t *rapid.T, expr string) (result any) {
		if err := db.QueryRow("SELECT " + expr).Scan(&result); err != nil {
			t.Fatalf("%s: %v", expr, err)
		}
		return result
	}
	rapid.Check(t, func(t *rapid.T) {
		n := drawExpr(t, rapid.IntRange(1, 4).Draw(t, "depth"))
		short, long := Render(n), spelledOut(n)
		if a, b := value(t, short), value(t, long); fmt.Sprint(a) != fmt.Sprint(b) {
			t.Fatalf("%s is %v\n%s is %v", short, a, long, b)
		}
		block, err := Parse("SELECT " + short)
		if err != nil {
			t.Fatalf("%s: %v", short, err)
		}
		if again := block.Children[0].Children[0].Children[0]; !Equal(n, again) {
			t.Fatalf("%s parses as %s", short, shape(again))
		}
	})
}
