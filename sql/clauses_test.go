package sql

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var unitMark = regexp.MustCompile(`\{([A-Z ]*)\}`)

func TestClausesOfFixture(t *testing.T) {
	for _, marked := range fixture(t, "clauses.txt") {
		text := unitMark.ReplaceAllString(marked, "")
		if got := mark(text, Clauses(text)); got != marked {
			t.Errorf("want %q\n got %q", marked, got)
		}
		checkPartition(t, text)
	}
}

// mark puts the kind of each unit in front of it, as the fixture does.
func mark(text string, units []Clause) string {
	var b strings.Builder
	end := 0
	for _, u := range units {
		b.WriteString("{" + string(u.Kind) + "}" + text[u.Start:u.End])
		end = u.End
	}
	if end < len(text) {
		b.WriteString("{}" + text[end:])
	}
	return b.String()
}

// checkPartition checks that units follow each other from the start of the text
// without gap, and that none is empty.
func checkPartition(t testing.TB, text string) {
	t.Helper()
	end := 0
	for _, u := range Clauses(text) {
		if u.Start != end || u.End <= u.Start {
			t.Fatalf("%q: unit %s [%d,%d) does not follow %d", text, u.Kind, u.Start, u.End, end)
		}
		end = u.End
	}
	if end > len(text) {
		t.Fatalf("%q: units end at %d of %d", text, end, len(text))
	}
}

// TestClausesOfPrefixes checks that text cut off at any byte is partitioned, and
// cut off between words gets the units of the whole text as far as it goes, but
// for the last.
func TestClausesOfPrefixes(t *testing.T) {
	t.Parallel()
	texts := statements(t)
	for _, q := range goldQueries(t) {
		texts = append(texts, q.sql)
	}
	step := 3
	if *mutants >= 100000 {
		step = 1
	}
	for k, text := range texts {
		whole := Clauses(text)
		for n := k % step; n < len(text); n += step {
			checkPartition(t, text[:n])
			if n > 0 && isWordByte(text[n-1]) && isWordByte(text[n]) {
				continue // SELECT group_concat(a) may look like GROUP BY
			}
			units := Clauses(text[:n])
			for i := 0; i < len(units)-1; i++ {
				if units[i] != whole[i] {
					t.Fatalf("%q: unit %d is %v, of the whole text %v", text[:n], i, units[i], whole[i])
				}
			}
		}
	}
}

// TestClausesOfLongText cuts text of a megabyte.
func TestClausesOfLongText(t *testing.T) {
	for _, part := range []string{
		"a", " ", "\n", "(", ")", "'", `"`, "`", "[", "]", ";", ",", ".", "-", "--\n", "/*", "*/", "/**/", "```", "1", "1e", "x'", "\xff", "é",
		"SELECT ", "FROM t ", "UNION ", "(SELECT ", "WITH x AS (", "a.b ", "IS NOT DISTINCT FROM ", "GROUP BY ", "CASE ",
	} {
		for _, head := range []string{"", "SELECT a FROM t WHERE ", "SELECT '", "SELECT /*"} {
			text := head + strings.Repeat(part, 1<<20/len(part))
			checkPartition(t, text)
			checkPartition(t, text[:MaxTextBytes])
			Parse(text[:MaxTextBytes])
		}
	}
}

func isWordByte(c byte) bool { return isBareName("a" + string(rune(c))) }

// TestClausesOfTokenSoup feeds random sequences of what matters to the scanner.
func TestClausesOfTokenSoup(t *testing.T) {
	words := []string{
		"SELECT", "FROM", "WHERE", "GROUP", "BY", "ORDER", "HAVING", "LIMIT", "UNION", "ALL", "EXCEPT", "WITH", "AS",
		"VALUES", "WINDOW", "DISTINCT", "IS", "CASE", "END", "(", ")", ",", ".", ";", "'", "\"", "`", "[", "]", "--",
		"/*", "*/", "\n", " ", "a", "1", "```", "```sql", "\x00", "\xff", "é",
	}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.SampledFrom(words)).Draw(t, "parts")
		separator := rapid.SampledFrom([]string{"", " "}).Draw(t, "separator")
		text := strings.Join(parts, separator)
		end := 0
		for _, u := range Clauses(text) {
			if u.Start != end || u.End <= u.Start || u.End > len(text) {
				t.Fatalf("%q: unit %s [%d,%d) after %d", text, u.Kind, u.Start, u.End, end)
			}
			end = u.End
		}
	})
}

func FuzzClauses(f *testing.F) {
	for _, marked := range fixture(f, "clauses.txt") {
		f.Add(unitMark.ReplaceAllString(marked, ""))
	}
	f.Fuzz(func(t *testing.T, text string) {
		checkPartition(t, text)
		block, err := Parse(text)
		if err != nil {
			return
		}
		checkSpans(t, block, text)
		checkAligned(t, block, text)
		again, err := Parse(Render(block))
		if err != nil || !Equal(block, again) {
			t.Fatalf("%q prints as %q: %v", text, Render(block), err)
		}
	})
}

// checkAligned checks that the token scan and the tree find the same units.
func checkAligned(t testing.TB, block *Node, text string) {
	t.Helper()
	units, nodes := Clauses(text), ClauseNodes(block)
	if len(units) != len(nodes) {
		t.Errorf("%s\n\t%d units but %d clause nodes", text, len(units), len(nodes))
		return
	}
	for i, n := range nodes {
		if n.ClauseKind() != units[i].Kind || n.Start < units[i].Start || n.End > units[i].End {
			t.Errorf("%s\n\tunit %v is not node %s [%d,%d)", text, units[i], n.Kind, n.Start, n.End)
		}
		if UnitAt(units, n.Start) != i {
			t.Errorf("%s\n\tbyte %d is found in unit %d, not %d", text, n.Start, UnitAt(units, n.Start), i)
		}
	}
}
