package sample

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// schema is one database's tables. Foreign keys form a tree (no two paths
// between two tables), so that a question never has to say how to join.
type schema struct {
	id     string
	key    string
	tables []*table
}

type table struct {
	name    string
	columns []column
}

// column is the primary key, a foreign key or an attribute.
type column struct {
	name      string
	parent    string     // foreign key: the table it refers to
	attribute *attribute // nil for keys
}

func (s *schema) table(name string) *table {
	for _, t := range s.tables {
		if t.name == name {
			return t
		}
	}
	return nil
}

// attribute returns the attribute behind a column, nil for keys.
func (s *schema) attribute(c Column) *attribute {
	if t := s.table(c.Table); t != nil {
		if c, ok := t.column(c.Name); ok {
			return c.attribute
		}
	}
	return nil
}

func (t *table) column(name string) (column, bool) {
	for _, c := range t.columns {
		if c.name == name {
			return c, true
		}
	}
	return column{}, false
}

// parents lists the tables that t refers to.
func (t *table) parents() []string {
	var names []string
	for _, c := range t.columns {
		if c.parent != "" {
			names = append(names, c.parent)
		}
	}
	return names
}

// attributes lists t's columns that are no keys and satisfy accept.
func (t *table) attributes(accept func(*attribute) bool) []Column {
	var found []Column
	for _, c := range t.columns {
		if c.attribute != nil && accept(c.attribute) {
			found = append(found, Column{t.name, c.name})
		}
	}
	return found
}

func anyAttribute(*attribute) bool         { return true }
func isNumeric(a *attribute) bool          { return a.numeric() }
func isCategory(a *attribute) bool         { return a.kind == category }
func isOrdered(a *attribute) bool          { return a.numeric() || a.kind == date }
func foreignKey(parent, key string) string { return parent + "_" + key }

// deck deals table names evenly: every name of the vocabulary is dealt once
// before any is dealt again, so all known words occur in several train
// databases.
type deck struct {
	random *rand.Rand
	all    []noun
	left   []noun
}

type noun struct {
	word  string
	class *class
}

func newDeck(v *vocabulary, linked bool, r *rand.Rand) *deck {
	d := &deck{random: r}
	for i := range v.classes {
		c := &v.classes[i]
		for _, w := range c.nouns {
			if c.linked == linked {
				d.all = append(d.all, noun{w, c})
			}
		}
	}
	return d
}

// deal returns a noun that is not among used.
func (d *deck) deal(used []*table) noun {
	for i := 0; ; i++ {
		if i == len(d.left) {
			more := append([]noun(nil), d.all...)
			d.random.Shuffle(len(more), func(i, j int) { more[i], more[j] = more[j], more[i] })
			d.left = append(d.left, more...)
		}
		n := d.left[i]
		taken := false
		for _, t := range used {
			taken = taken || t.name == n.word
		}
		if !taken {
			d.left = append(d.left[:i:i], d.left[i+1:]...)
			return n
		}
	}
}

// designer makes schemas from one vocabulary.
type designer struct {
	vocabulary   *vocabulary
	random       *rand.Rand
	roots, links *deck
	ids          map[string]int
}

func newDesigner(v *vocabulary, seed uint64) *designer {
	r := randomFor(seed, "schemas", v.key)
	return &designer{v, r, newDeck(v, false, r), newDeck(v, true, r), map[string]int{}}
}

// schema designs 2 to 4 tables. Each table after the first refers to an earlier
// one or stands alone; the last one ties together what is still apart.
func (d *designer) schema() *schema {
	s := &schema{key: d.vocabulary.key}
	count := pick(d.random, 2, 2, 3, 3, 3, 4, 4)
	component := make([]int, count) // which tables hang together
	for i := range count {
		var parents []int
		for c := range i {
			members := membersOf(component[:i], c)
			if len(members) > 0 && (i == count-1 || chance(d.random, 0.6)) {
				parents = append(parents, pick(d.random, members...))
			}
		}
		component[i] = i
		for _, p := range parents {
			merge(component[:i], component[p], i)
		}
		s.tables = append(s.tables, d.table(s.tables, parents))
	}
	last, first := s.tables[count-1].name, s.tables[0].name
	s.id = last + "_" + first
	d.ids[s.id]++
	if n := d.ids[s.id]; n > 1 {
		s.id = fmt.Sprintf("%s_%d", s.id, n)
	}
	return s
}

func membersOf(component []int, c int) []int {
	var members []int
	for t, of := range component {
		if of == c {
			// The youngest member counts twice: chains give the longer joins.
			members = append(members, t)
			if t == len(component)-1 {
				members = append(members, t)
			}
		}
	}
	return members
}

func merge(component []int, from, to int) {
	for t, c := range component {
		if c == from {
			component[t] = to
		}
	}
}

// table draws a table with a key, its foreign keys and 2 to 4 attributes, among
// them a number and a category whenever the class has them.
func (d *designer) table(earlier []*table, parents []int) *table {
	source := d.roots
	if len(parents) > 0 {
		source = d.links
	}
	n := source.deal(earlier)
	t := &table{name: n.word, columns: []column{{name: d.vocabulary.key}}}
	for _, p := range parents {
		t.columns = append(t.columns, column{name: foreignKey(earlier[p].name, d.vocabulary.key), parent: earlier[p].name})
	}
	for _, a := range d.attributes(n.class, 5-len(parents)) {
		t.columns = append(t.columns, column{name: a.name, attribute: a})
	}
	return t
}

func (d *designer) attributes(c *class, most int) []*attribute {
	count := min(2+d.random.IntN(3), most)
	chosen := make([]bool, len(c.attributes))
	take := func(accept func(*attribute) bool) {
		for _, i := range d.random.Perm(len(chosen)) {
			if !chosen[i] && accept(d.vocabulary.attribute(c.attributes[i])) {
				chosen[i] = true
				count--
				return
			}
		}
	}
	if chance(d.random, 0.8) && most > 2 {
		chosen[0] = true
		count--
	}
	take(isNumeric)
	take(isCategory)
	for count > 0 {
		take(anyAttribute)
	}
	var attributes []*attribute
	for i, name := range c.attributes {
		if chosen[i] {
			attributes = append(attributes, d.vocabulary.attribute(name))
		}
	}
	return attributes
}

// words lists every word of the schema's names, for the disjointness of splits.
func (s *schema) words() []string {
	var words []string
	for _, t := range s.tables {
		words = append(words, t.name)
		for _, c := range t.columns {
			words = append(words, strings.Split(c.name, "_")...)
		}
	}
	return words
}
