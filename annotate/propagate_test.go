package annotate

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"caper/sql"
)

// TestDecayTable pins the factors that caper.md 1.4.5 tabulates.
func TestDecayTable(t *testing.T) {
	for sigma, row := range map[float64][]float64{
		1: {.607, .135, .011, 0, 0, 0},
		2: {.882, .607, .325, .135, .044, .011},
		3: {.946, .801, .607, .411, .249, .135},
	} {
		o := DefaultOptions()
		o.Sigma = sigma
		for i, want := range row {
			if got := -o.decay(i + 1); math.Abs(got-want) > 5e-4 {
				t.Errorf("sigma %v, d %d: %v, want %v", sigma, i+1, got, want)
			}
		}
	}
}

// TestNestedRewards works one example by hand. The way up from the literal 3 is
// compare 1, where 2, block 3, (sub-query wrapper 3), in 4, outer where 5.
func TestNestedRewards(t *testing.T) {
	s := statementOf(t, "SELECT a FROM t WHERE b IN (SELECT c FROM u WHERE d = 3) ORDER BY a", Nested)
	var literal *sql.Node
	sql.Walk(s.tree, func(n *sql.Node) bool {
		if n.Kind == sql.Number {
			literal = n
		}
		return true
	})
	o := DefaultOptions()
	o.Sigma = 3
	rewards := o.clauseRewards(s, literal, s.holding(literal))
	want := []float64{0, 0, -math.Exp(-16.0 / 18), 0, 0, 0, -1} // SELECT FROM WHERE ORDER BY, inner SELECT FROM WHERE
	for k := range want {
		if math.Abs(rewards[k]-want[k]) > 1e-12 {
			t.Errorf("unit %d (%s): reward %v, want %v", k, s.units[k].kind, rewards[k], want[k])
		}
	}
	o.Propagation = false
	for k, r := range o.clauseRewards(s, literal, s.holding(literal)) {
		if want := map[bool]float64{true: -1, false: 0}[k == 6]; r != want {
			t.Errorf("without propagation unit %d has reward %v, want %v", k, r, want)
		}
	}
}

// anyBlock writes a random query with blocks nested up to depth.
func anyBlock(t *rapid.T, depth int) string {
	text := anyOperand(t, depth)
	if rapid.IntRange(0, 4).Draw(t, "compound") == 0 {
		text += " UNION " + anyOperand(t, depth)
	}
	if rapid.Bool().Draw(t, "ordered") {
		text += " ORDER BY a DESC LIMIT 3"
	}
	return text
}

// anyOperand writes one SELECT without ORDER BY.
func anyOperand(t *rapid.T, depth int) string {
	text := "SELECT " + rapid.SampledFrom([]string{"a", "count(*)", "a, b + 1", "DISTINCT a"}).Draw(t, "items") + " FROM "
	if depth > 0 && rapid.IntRange(0, 3).Draw(t, "derived") == 0 {
		text += "(" + anyBlock(t, depth-1) + ") AS d"
	} else {
		text += rapid.SampledFrom([]string{"t", "t JOIN u ON t.x = u.x"}).Draw(t, "sources")
	}
	if rapid.Bool().Draw(t, "where") {
		condition := rapid.SampledFrom([]string{"a = 1", "b > 2 AND c LIKE 'x%'", "NOT (a = 1 OR b IS NULL)"}).Draw(t, "condition")
		if depth > 0 && rapid.Bool().Draw(t, "nested") {
			condition += " AND a IN (" + anyBlock(t, depth-1) + ")"
		}
		text += " WHERE " + condition
	}
	if rapid.IntRange(0, 2).Draw(t, "grouped") == 0 {
		text += " GROUP BY a HAVING count(*) > 1"
	}
	return text
}

// TestRewardProperties checks caper.md Part 4, items 3 and 4, for a fault at any
// node of any query: the clause holding v* has exactly -alpha; a clause around
// it has a reward in (-alpha, 0], and every other clause 0; and the units
// partition the text.
func TestRewardProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := anyBlock(t, 2)
		s, ok := parse(text, nil, Nested)
		if !ok {
			t.Fatalf("cannot parse %q", text)
		}
		end := 0
		for _, u := range s.units[:s.topCount] {
			if u.start != end {
				t.Fatalf("%q: unit %s starts at %d, the one before ends at %d", text, u.kind, u.start, end)
			}
			end = u.end
		}
		if end != len(text) {
			t.Fatalf("%q: units end at %d", text, end)
		}

		var nodes []*sql.Node
		sql.Walk(s.tree, func(n *sql.Node) bool {
			if !n.IsBlock() {
				nodes = append(nodes, n)
			}
			return true
		})
		root := rapid.SampledFrom(nodes).Draw(t, "root")
		o := DefaultOptions()
		o.Alpha = rapid.Float64Range(0.1, 10).Draw(t, "alpha")
		o.Sigma = rapid.Float64Range(0.5, 4).Draw(t, "sigma")
		o.MinReward = 0
		holder := s.holding(root)
		for k, r := range o.clauseRewards(s, root, holder) {
			isAround := isWithin(root, s.units[k].node)
			switch {
			case k == holder && r != -o.Alpha:
				t.Fatalf("%q: the clause of %s has reward %v", text, root.Kind, r)
			case k != holder && isAround && !(r > -o.Alpha && r <= 0):
				t.Fatalf("%q: the clause around %s has reward %v", text, root.Kind, r)
			case !isAround && r != 0:
				t.Fatalf("%q: a clause beside %s has reward %v", text, root.Kind, r)
			}
			if r > 0 || r < -o.Alpha {
				t.Fatalf("reward %v lies outside [-alpha, 0]", r)
			}
		}
		if root.Block() == s.tree && s.tree.Kind == sql.Select {
			for k := range s.units[:s.topCount] {
				if r := o.clauseRewards(s, root, holder)[k]; k != holder && r != 0 {
					t.Fatalf("%q: a fault of the outermost block reaches unit %d", text, k)
				}
			}
		}
	})
}

// TestDependencyEdges: with the switch on, a fault in a join key reaches the
// projection through nothing, but a fault in a column reaches the source that
// binds it.
func TestDependencyEdges(t *testing.T) {
	s, ok := parse("SELECT name FROM owner WHERE city = 'x' ORDER BY name", pets, Nested)
	if !ok {
		t.Fatal("cannot parse")
	}
	column := s.units[3].node.Children[0].Children[0] // ORDER BY name
	o := DefaultOptions()
	o.DependencyEdges = true
	rewards := o.clauseRewards(s, column, s.holding(column))
	// One edge leads to the projection's column and one to the table.
	for k, want := range []float64{o.decay(1), o.decay(1), 0, -1} {
		if math.Abs(rewards[k]-want) > 1e-12 {
			t.Errorf("unit %d: reward %v, want %v", k, rewards[k], want)
		}
	}
}
