package sql

import "testing"

// Each benchmark goes through all Spider and BIRD gold; ns/op is for one query.

func BenchmarkClauses(b *testing.B) {
	queries := goldQueries(b)
	for i := 0; b.Loop(); i++ {
		Clauses(queries[i%len(queries)].sql)
	}
}

func BenchmarkParse(b *testing.B) {
	queries := goldQueries(b)
	for i := 0; b.Loop(); i++ {
		Parse(queries[i%len(queries)].sql)
	}
}

// BenchmarkCanonical includes resolving; parsing is done before.
func BenchmarkCanonical(b *testing.B) {
	queries, trees := parsedGold(b)
	schemas := spiderSchemas(b)
	for i := 0; b.Loop(); i++ {
		Canonical(trees[i%len(trees)], schemas[queries[i%len(trees)].db])
	}
}

// BenchmarkDistance compares each gold query with the next of the corpus.
func BenchmarkDistance(b *testing.B) {
	_, trees := parsedGold(b)
	for i := 0; b.Loop(); i++ {
		Distance(trees[i%len(trees)], trees[(i+1)%len(trees)])
	}
}

func BenchmarkRender(b *testing.B) {
	_, trees := parsedGold(b)
	for i := 0; b.Loop(); i++ {
		Render(trees[i%len(trees)])
	}
}

func parsedGold(b *testing.B) (queries []goldQuery, trees []*Node) {
	for _, q := range goldQueries(b) {
		if n, err := Parse(q.sql); err == nil {
			queries, trees = append(queries, q), append(trees, n)
		}
	}
	return queries, trees
}
