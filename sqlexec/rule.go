package sqlexec

// Rule is a way to decide whether a prediction's result is the gold result.
type Rule string

const (
	Bird      Rule = "bird"
	Strict    Rule = "strict"
	TestSuite Rule = "test-suite"
)

// ParseRule reads a rule's name.
func ParseRule(name string) (Rule, error) { return Rule(name), nil }

// Rewrite returns the text to run in place of query: the test-suite rule
// removes DISTINCT, the others change nothing.
func (r Rule) Rewrite(query string) string { return query }

// Same reports whether pred is as good as gold. goldSQL is gold's text as
// written (before Rewrite); its ORDER BY decides whether row order counts.
func (r Rule) Same(gold, pred *Result, goldSQL string) bool { return false }
