package fill

import (
	"math/rand/v2"
	"slices"
	"strings"

	"caper/sql"
)

// domain is what the values of one or several columns have in common. Columns
// that refer to or are compared with each other share one, so that joins,
// INTERSECT and IN find equal values on both sides.
type domain struct {
	parent  *domain // of the united domain; nil for itself
	columns []*column
	// literals are values that queries look for, in the order of appearance.
	literals []any
	seen     map[any]bool
	// summed says that a query adds the values up: they are numbers, whatever the
	// declared type.
	summed bool

	// generator and pool are made by prepare: other values, and a limited choice
	// of them, so that values repeat.
	generator generator
	pool      []any
	used      map[any]bool // every value handed out, so that a fresh one is fresh
	last      int64
}

func newDomain(c *column) *domain {
	return &domain{columns: []*column{c}, seen: map[any]bool{}, used: map[any]bool{}}
}

func (d *domain) root() *domain {
	for d.parent != nil {
		d = d.parent
	}
	return d
}

// unite gives two columns one domain.
func unite(a, b *column) {
	x, y := a.domain.root(), b.domain.root()
	if x == y {
		return
	}
	y.parent = x
	x.summed = x.summed || y.summed
	x.columns = append(x.columns, y.columns...)
	for _, v := range y.literals {
		x.add(v)
	}
}

func (d *domain) add(value any) {
	if value != nil && !d.seen[value] {
		d.seen[value] = true
		d.literals = append(d.literals, value)
	}
}

// learn takes the values around a literal that satisfy the comparison n, and
// some that do not. The literal may be compared with a part of the value only.
func (d *domain) learn(n *sql.Node, value any, p *part) {
	var values []any
	pattern, isText := value.(string)
	switch {
	case n.Kind == sql.Like && isText && len(pattern) <= maxPattern:
		values = instances(pattern)
	case n.Kind == sql.Compare && strings.ContainsAny(n.Value, "<>"), n.Kind == sql.Between:
		values = []any{before(value), value, after(value)}
	case n.Kind != sql.Like:
		values = []any{value}
	}
	for _, v := range values {
		if p != nil {
			v = p.whole(v)
		}
		d.add(v)
	}
}

// instances are texts that a LIKE pattern matches: nothing in place of %, or a word
// before and behind.
func instances(pattern string) []any {
	text := strings.ReplaceAll(pattern, "_", "a")
	core := strings.ReplaceAll(text, "%", "")
	values := []any{core}
	before, after := "", ""
	if strings.HasPrefix(text, "%") {
		before = "Old "
	}
	if strings.HasSuffix(text, "%") {
		if after = " House"; len(core) < 3 {
			after = "ona" // M% begins a word
		}
	}
	for _, v := range []string{before + core, core + after} {
		if v != core {
			values = append(values, v)
		}
	}
	return values
}

// prepare chooses the generator from the literals, the declared types and the
// names of the columns, and draws the pool.
func (d *domain) prepare(r *rand.Rand, rows int) {
	d.literals = d.readable()
	var spread int
	d.generator, spread = generatorOf(d, rows)
	if slices.ContainsFunc(d.columns, func(c *column) bool { return c.unique }) {
		spread = rows
	}
	for range 20 * spread {
		if len(d.pool) == spread {
			break
		}
		if v := d.generator(r); !d.used[v] {
			d.used[v] = true
			d.pool = append(d.pool, v)
		}
	}
	for _, v := range d.literals {
		d.used[v] = true
	}
	for len(d.pool) < spread && spread == rows { // a key has as many values as rows
		d.pool = append(d.pool, d.fresh(r))
	}
}

// readable is the literals as the columns will store them.
func (d *domain) readable() (values []any) {
	seen := map[any]bool{}
	for _, v := range d.literals {
		if v = coerce(v, d.columns[0].affinity); !seen[v] {
			seen[v] = true
			values = append(values, v)
		}
	}
	return values
}

// draw returns a value for a column that need not be unique: half of the time one
// that queries look for, small indices more often, so that groups differ in size.
func (d *domain) draw(r *rand.Rand) any {
	if len(d.literals) > 0 && (len(d.pool) == 0 || chance(r, 0.5)) {
		return d.literals[skewed(r, len(d.literals))]
	}
	return d.pool[skewed(r, len(d.pool))]
}

// sequence lists n different values for a key, in random order; columns of the
// domain that are keys all get the same.
func (d *domain) sequence(r *rand.Rand, n int) []any {
	values := slices.Concat(d.literals[:min(len(d.literals), n*2/3)], d.pool)
	values = values[:min(n, len(values))]
	r.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
	return values
}

// fresh returns a value that the domain has not handed out.
func (d *domain) fresh(r *rand.Rand) any {
	for range 10 {
		if v := d.generator(r); !d.used[v] {
			d.used[v] = true
			return v
		}
	}
	for {
		d.last++
		v := variant(d.generator(r), d.last)
		if !d.used[v] {
			d.used[v] = true
			return v
		}
	}
}
