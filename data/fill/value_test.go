package fill

import (
	"database/sql"
	"slices"
	"strings"
	"testing"

	capersql "caper/sql"

	"pgregory.net/rapid"
)

// SQLite itself says what LIKE matches, how values sort and how columns store them.
func TestValuesAsSQLiteSeesThem(t *testing.T) {
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(`CREATE TABLE stored (INTEGER INTEGER, REAL REAL, NUMERIC NUMERIC, TEXT TEXT, BLOB BLOB)`); err != nil {
		t.Fatal(err)
	}
	ask := func(query string, values ...any) (v any) {
		if err := db.QueryRow(query, values...).Scan(&v); err != nil {
			t.Fatalf("%s %v: %v", query, values, err)
		}
		return v
	}
	texts := rapid.StringOfN(rapid.SampledFrom([]rune("aAbZé%_ .")), 0, 8, -1)
	values := rapid.OneOf(
		rapid.Just[any](nil),
		rapid.Map(texts, func(s string) any { return s }),
		rapid.Map(rapid.Int64Range(-9, 1<<40), func(i int64) any { return i }),
		rapid.Map(rapid.Float64Range(-9, 9), func(f float64) any { return float64(int(f*4)) / 4 }),
		rapid.Map(rapid.SampledFrom([]string{"7", "-3", "2.5", " 8 ", "1e3", "0x10", "Inf", "NaN", "1_0", "+4", ".5"}), func(s string) any { return s }),
	)
	rapid.Check(t, func(t *rapid.T) {
		pattern, text := texts.Draw(t, "pattern"), texts.Draw(t, "text")
		if got, want := like(pattern, text), ask(`SELECT ? LIKE ?`, text, pattern) == int64(1); got != want {
			t.Fatalf("like(%q, %q) = %v", pattern, text, got)
		}
		for _, v := range instances(pattern) {
			if ask(`SELECT ? LIKE ?`, v, pattern) != int64(1) {
				t.Fatalf("%q is no instance of %q", v, pattern)
			}
		}
		a, b := values.Draw(t, "a"), values.Draw(t, "b")
		first := ask(`SELECT v FROM (SELECT 1 AS i, ? AS v UNION ALL SELECT 2, ?) ORDER BY v, i DESC LIMIT 1`, a, b)
		if got := order(a, b); got < 0 && first != a || got > 0 && first != b || got == 0 && first != b {
			t.Fatalf("order(%#v, %#v) = %d, SQLite puts %#v first", a, b, got, first)
		}
		for _, affinity := range []capersql.Affinity{"INTEGER", "REAL", "NUMERIC", "TEXT", "BLOB"} {
			name := string(affinity)
			ask(`INSERT INTO stored (`+name+`) VALUES (?) RETURNING 1`, a)
			want := ask(`SELECT +` + name + ` FROM stored WHERE rowid = last_insert_rowid()`)
			if got := coerce(a, affinity); got != want {
				t.Fatalf("coerce(%#v, %s) = %#v, SQLite stores %#v", a, affinity, got, want)
			}
		}
	})
}

// What beside and variant return lies where they say.
func TestNeighbours(t *testing.T) {
	for _, v := range []any{int64(0), 2.5, "2001-02-28", "12/31/1999", "Jan 5, 2009", "abc", "7", "z"} {
		if order(before(v), v) >= 0 && dateLayout(text(v)) != "1/2/2006" {
			t.Errorf("before(%v) = %v", v, before(v))
		}
		if order(after(v), v) <= 0 && dateLayout(text(v)) != "1/2/2006" {
			t.Errorf("after(%v) = %v", v, after(v))
		}
	}
	if got := after("12/31/1999"); got != "1/1/2000" {
		t.Errorf("the day after is %v", got)
	}
}

// A domain never hands out a fresh value twice, whatever its generator.
func TestFresh(t *testing.T) {
	for _, c := range []struct {
		name     string
		literals []any
	}{{"gender", nil}, {"time", []any{"12:30"}}, {"x", []any{int64(5)}}, {"code", []any{"A-1"}}, {"born", []any{"January 2"}}, {"title", nil}} {
		d := newDomain(&column{name: c.name, affinity: "TEXT"})
		for _, v := range c.literals {
			d.add(v)
		}
		r := randomFor(1, c.name)
		d.prepare(r, 40)
		seen := slices.Concat(d.pool, d.literals)
		for range 2000 {
			v := d.fresh(r)
			if slices.Contains(seen, v) {
				t.Fatalf("%s: %v again", c.name, v)
			}
			seen = append(seen, v)
		}
	}
}

// The condition of a CHECK is found wherever it stands.
func TestChecks(t *testing.T) {
	got := checks(`CREATE TABLE t (a INT CHECK (a IN (1, (2))), "check" TEXT, b TEXT DEFAULT 'check (no)', -- CHECK (no)
		CONSTRAINT c CHECK(length(b) > ')' OR a))`)
	if want := []string{"a IN (1, (2))", "length(b) > ')' OR a"}; strings.Join(got, ";") != strings.Join(want, ";") {
		t.Errorf("%q", got)
	}
}
