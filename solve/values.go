package solve

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"unicode"

	"caper/sql"
	"caper/sqlexec"
)

// valueIndexes finds the values of databases that a text mentions. Each database's
// texts are read once, at most maxDomain of a column, so that a look-up costs what the
// question costs, however large the tables are.
type valueIndexes struct {
	domains domains
	mu      sync.Mutex
	known   map[string]*indexOnce
}

type indexOnce struct {
	once sync.Once
	valueIndex
	err error
}

// valueIndex maps words to the values that they are.
type valueIndex map[string][]valuePlace

type valuePlace struct{ table, column, value string }

// maxWords is the longest value, in words, that is looked for.
const maxWords = 6

// mentioned lists the values that stand in a text, whatever their case, the longest
// first: what is part of a longer one is left out.
func (x *valueIndexes) mentioned(ctx context.Context, db *sqlexec.Database, schema *sql.Schema, text string) ([]valuePlace, error) {
	index, err := x.index(ctx, db, schema)
	if err != nil {
		return nil, err
	}
	words := wordsOf(text)
	taken := make([]bool, len(words))
	var found []valuePlace
	for n := min(maxWords, len(words)); n >= 1; n-- {
		for i := 0; i+n <= len(words); i++ {
			places := index[strings.Join(words[i:i+n], " ")]
			if len(places) == 0 || slices.Contains(taken[i:i+n], true) {
				continue
			}
			for k := range n {
				taken[i+k] = true
			}
			found = append(found, places...)
		}
	}
	return found, nil
}

func (x *valueIndexes) index(ctx context.Context, db *sqlexec.Database, schema *sql.Schema) (valueIndex, error) {
	x.mu.Lock()
	if x.known == nil {
		x.known = map[string]*indexOnce{}
	}
	entry := x.known[db.Path()]
	if entry == nil {
		entry = &indexOnce{}
		x.known[db.Path()] = entry
	}
	x.mu.Unlock()
	entry.once.Do(func() { entry.valueIndex, entry.err = x.read(ctx, db, schema) })
	return entry.valueIndex, entry.err
}

func (x *valueIndexes) read(ctx context.Context, db *sqlexec.Database, schema *sql.Schema) (valueIndex, error) {
	index := valueIndex{}
	for _, t := range schema.Tables {
		for _, c := range t.Columns {
			if sql.TypeAffinity(c.Type).IsNumber() {
				continue
			}
			values, err := x.domains.of(ctx, db, t.Name, c.Name)
			if err != nil {
				return nil, err
			}
			for _, v := range values.texts {
				words := wordsOf(v)
				key := strings.Join(words, " ")
				if len(words) == 0 || len(words) > maxWords || len(key) < 2 || commonWords[key] {
					continue
				}
				index[key] = append(index[key], valuePlace{t.Name, c.Name, v})
			}
		}
	}
	for _, places := range index {
		slices.SortStableFunc(places, func(a, b valuePlace) int {
			return cmp.Or(strings.Compare(a.table, b.table), strings.Compare(a.column, b.column), strings.Compare(a.value, b.value))
		})
	}
	return index, nil
}

// commonWords are values that every question mentions.
var commonWords = map[string]bool{"a": true, "the": true, "of": true, "in": true, "and": true, "or": true, "is": true, "no": true, "not": true, "all": true, "name": true, "id": true}

// wordsOf are the words of a text in small letters, without what stands between them.
func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}
