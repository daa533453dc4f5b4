package sql

import (
	"fmt"
	"strings"
	"testing"
)

func TestUpward(t *testing.T) {
	const text = "SELECT name AS n FROM singer AS s WHERE singer_id IN (SELECT singer_id FROM singer_in_concert WHERE concert_id = 7) ORDER BY n"
	n := mustParse(t, text)
	edges := Dependencies(n, Resolve(n, concerts))
	for _, c := range []struct{ at, want, withEdges string }{
		{"7",
			"7:0 concert_id = 7:1 where:2 select:3 subquery:4 singer_id IN:4 where:5 select:6", ""},
		{"concert_id",
			"concert_id:0 concert_id = 7:1 where:2 select:3 subquery:4 singer_id IN:4 where:5 select:6",
			"concert_id:0 concert_id = 7:1 singer_in_concert:1 where:2 from:2 select:3 subquery:4 singer_id IN:4 where:5 select:6"},
		{"n",
			"n:0 order-term:1 order-by:1 select:2",
			"n:0 order-term:1 name:1 order-by:1 item:2 singer AS s:2 select:2 projection:2 from:3"},
	} {
		var at *Node
		Walk(n, func(n *Node) bool {
			if n.Text(text) == c.at && len(n.Children) == 0 && n.Kind != Alias {
				at = n
			}
			return true
		})
		if got := reached(text, Upward(at, nil)); got != c.want {
			t.Errorf("%s\n\tgot  %s\n\twant %s", c.at, got, c.want)
		}
		if got := reached(text, Upward(at, edges)); c.withEdges != "" && got != c.withEdges {
			t.Errorf("%s with edges\n\tgot  %s\n\twant %s", c.at, got, c.withEdges)
		}
		for _, r := range Upward(at, nil) {
			if d := at.CondensedDepth() - r.Node.CondensedDepth(); d != r.Distance {
				t.Errorf("%s reaches %s at %d, but their depths differ by %d", c.at, r.Node.Kind, r.Distance, d)
			}
		}
	}
}

// reached prints short nodes by their text and others by their kind.
func reached(text string, nodes []Reached) string {
	var parts []string
	for _, r := range nodes {
		label := string(r.Node.Kind)
		switch r.Node.Kind {
		case In:
			label = "singer_id IN"
		case Column, Number, Compare, Table:
			label = r.Node.Text(text)
		}
		parts = append(parts, fmt.Sprintf("%s:%d", label, r.Distance))
	}
	return strings.Join(parts, " ")
}

func TestCloneAndEqual(t *testing.T) {
	for _, text := range statements(t) {
		n := mustParse(t, text)
		c := n.Clone()
		checkSpans(t, c, text)
		if !Equal(n, c) || c.Parent != nil {
			t.Fatalf("%s: the clone differs", text)
		}
		Walk(c, func(d *Node) bool {
			value := d.Value
			d.Value += "x"
			if Equal(n, c) {
				t.Fatalf("%s: a changed %s goes unseen", text, d.Kind)
			}
			d.Value = value
			return true
		})
		if !Equal(n, c) || Equal(n, nil) || Equal(nil, n) || !Equal(nil, nil) {
			t.Fatalf("%s: Equal is wrong", text)
		}
	}
}

func TestNavigation(t *testing.T) {
	const text = "SELECT a, (SELECT sum(b) OVER (ORDER BY c) FROM u) FROM t"
	n := mustParse(t, text)
	Walk(n, func(n *Node) bool {
		switch n.Value {
		case "a", "t":
			if n.Block().Parent != nil || n.Clause().Parent != n.Block() {
				t.Errorf("%s is in the wrong block or clause", n.Value)
			}
		case "b", "c":
			if n.Block().Parent == nil || n.Clause().Kind != Projection {
				t.Errorf("%s is in block %s, clause %s", n.Value, n.Block().Text(text), n.Clause().Kind)
			}
		}
		if n.Parent != nil && n.Parent.Children[n.Index()] != n {
			t.Errorf("%s has the wrong index", n.Kind)
		}
		path := n.Ancestors()
		if len(path) > 0 && path[len(path)-1].Parent != nil {
			t.Errorf("the path of %s stops early", n.Kind)
		}
		return true
	})
	if n.Clause() != nil || n.Index() != -1 {
		t.Error("the root is in a clause")
	}
}
