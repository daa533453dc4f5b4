package sample

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Question renders q as an English question, with synonyms that r draws. Every part of the query is spoken
// of, in the schema's own words and the literals' own spelling; what varies is
// the sentence and the synonyms. Table names stay singular ("each singer") so
// that question and SQL share the word form.
func (q *Query) Question(r *rand.Rand) string {
	text := (&speaker{r}).sentence(q)
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// speaker phrases queries with the synonyms its generator draws.
type speaker struct{ *rand.Rand }

func (s *speaker) pick(options ...string) string { return pick(s.Rand, options...) }

func (s *speaker) sentence(q *Query) string {
	switch {
	case q.With != nil:
		rest := *q
		rest.With = nil
		return s.pick("consider only the ", "take only the ", "first keep only the ") + s.records(q.With) + s.order(q.With) + ". " + s.capital(s.sentence(&rest))
	case q.Derived != nil:
		return s.overGroups(q)
	case len(q.Group) > 0:
		return s.groups(q)
	case q.Select[0].Func != "":
		return s.summary(q)
	}
	return s.rows(q)
}

func (s *speaker) capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// rows: a list of columns for each row of the subject.
func (s *speaker) rows(q *Query) string {
	shown, many := s.terms(q.Select, q), q.Select
	if q.Distinct {
		shown = s.pick("the distinct ", "the different ") + strings.TrimPrefix(shown, "the ")
		if len(many) > 1 {
			shown += " without repeats"
		}
	}
	if q.Limit > 0 && len(q.Order) == 1 && q.Set == "" && measured(q.Order[0].Term) && s.IntN(2) == 0 {
		return s.superlative(q, shown)
	}
	tail := s.setOperation(q) + s.order(q)
	switch s.IntN(4) {
	case 0:
		return "for each " + s.subject(q) + ", " + s.pick("show ", "give ", "list ") + shown + tail + "."
	case 1:
		return "what is " + shown + " of each " + s.subject(q) + tail + "?"
	default:
		return s.pick("show ", "list ", "find ", "give ") + shown + s.pick(" of each ", " for every ", " of every ") + s.subject(q) + tail + "."
	}
}

// measured says that a term can be high or low.
func measured(t Term) bool {
	a := attributeNamed(t.Column.Name)
	return t.Func != "" || a != nil && a.numeric()
}

// superlative: "the 3 singer records with the highest age".
func (s *speaker) superlative(q *Query, shown string) string {
	most := s.pick("lowest ", "smallest ")
	if q.Order[0].Desc {
		most = s.pick("highest ", "largest ")
	}
	key := strings.TrimPrefix(s.term(q.Order[0].Term, q), "the ")
	who := s.records(q)
	if q.Limit > 1 {
		who = fmt.Sprintf("%d %s", q.Limit, who)
	} else {
		who = s.subject(q)
	}
	return s.pick("show ", "list ", "find ", "give ") + shown + " of the " + who + s.pick(" with the ", " having the ") + most + key + "."
}

// summary: aggregates over all rows of the subject.
func (s *speaker) summary(q *Query) string {
	if len(q.Select) == 1 && sameTerm(q.Select[0], countAll) {
		return s.pick("how many "+s.records(q)+" are there?", "count the "+s.records(q)+".",
			"what is the number of "+s.records(q)+"?", "find the number of "+s.records(q)+".")
	}
	shown := s.terms(q.Select, q)
	return s.pick("what is "+shown+" over the "+s.records(q)+"?", "find "+shown+" among the "+s.records(q)+".",
		"for the "+s.records(q)+", give "+shown+".")
}

// groups: aggregates for each value of the keys.
func (s *speaker) groups(q *Query) string {
	var keys []string
	for _, k := range q.Group {
		keys = append(keys, strings.TrimPrefix(s.column(k, q), "the "))
	}
	each := s.pick("each ", "every ") + conjoin(keys, "and")
	of := s.pick(" among the ", " over the ") + s.records(q)
	kept := ""
	if len(q.Having) > 0 {
		kept = s.pick(", keeping only groups where ", ", but only where ", ", only if ") + s.predicate(q.Having[0], q)
		for _, c := range q.Having[1:] {
			kept += " and " + s.predicate(c, q)
		}
	}
	tail := kept + s.order(q)
	shown := s.terms(q.Select, q)
	if s.IntN(2) == 0 {
		return "for " + each + of + ", " + s.pick("show ", "give ", "list ") + shown + tail + "."
	}
	return s.pick("show ", "find ", "list ") + shown + " for " + each + of + tail + "."
}

// overGroups: a query over a derived table of groups.
func (s *speaker) overGroups(q *Query) string {
	inner := q.Derived
	key, tally := s.term(inner.Select[0], inner), s.term(inner.Select[1], inner)
	head := s.pick("compute ", "take ") + tally + " for each " + strings.TrimPrefix(key, "the ") + " among the " + s.records(inner)
	result := strings.TrimPrefix(tally, "the ")
	if len(q.Where) > 0 {
		return head + ", then show " + key + " where this " + result + " " + s.test(q.Where[0], q) + "."
	}
	names := map[string]string{"avg": s.average(), "max": s.most(), "min": s.least()}
	return head + ", then give the " + names[q.Select[0].Func] + " " + s.pick("of these", "among these", "over these") + "."
}

// setOperation speaks of the right operand.
func (s *speaker) setOperation(q *Query) string {
	if q.Set == "" {
		return ""
	}
	other := s.terms(q.Right.Select, q.Right) + " of " + s.pick("each ", "every ") + s.subject(q.Right)
	switch q.Set {
	case "UNION":
		return s.pick(", together with ", ", combined with ") + other + ", without repeats"
	case "UNION ALL":
		return s.pick(", together with ", ", combined with ") + other + ", keeping repeats"
	case "INTERSECT":
		return s.pick(", keeping only what is also ", ", but only if it is also ") + other
	default:
		return s.pick(", leaving out what is also ", ", except what is also ") + other
	}
}

// order speaks of ORDER BY and LIMIT.
func (s *speaker) order(q *Query) string {
	text := ""
	if len(q.Order) > 0 {
		var keys []string
		for _, o := range q.Order {
			direction := s.direction(o)
			keys = append(keys, s.term(o.Term, q)+" "+direction)
		}
		text = s.pick(", sorted by ", ", ordered by ") + strings.Join(keys, " and then ")
	}
	if q.Limit > 0 {
		text += fmt.Sprintf(s.pick(", only the first %d", ", limited to %d", ", showing the top %d"), q.Limit)
	}
	return text
}

// direction draws once for low to high and once more for high to low.
func (s *speaker) direction(o OrderTerm) string {
	up, down := [2]string{"in ascending order", "from low to high"}, [2]string{"in descending order", "from high to low"}
	text := s.pick(up[:]...)
	if o.Desc {
		text = s.pick(down[:]...)
	}
	return text
}

// subject is the noun with everything that restricts it.
func (s *speaker) subject(q *Query) string { return q.Subject + s.restriction(q) }

// records is the subject where a plural is needed.
func (s *speaker) records(q *Query) string {
	return q.Subject + s.pick(" records", " entries") + s.restriction(q)
}

// restriction turns joins of the outer kind and WHERE into relative clauses.
func (s *speaker) restriction(q *Query) string {
	text := ""
	for _, j := range q.Joins {
		if j.Kind == "LEFT JOIN" {
			text += s.pick(" with or without "+article(j.Table), " even if it has no "+j.Table)
		}
	}
	if len(q.Where) == 0 {
		return text
	}
	word := "where"
	if len(q.Joins) == 0 {
		word = s.pick("whose", "where")
	}
	connective := " and "
	if q.Or {
		connective = " or "
	}
	var parts []string
	for _, c := range q.Where {
		parts = append(parts, s.relative(c, q, word))
	}
	return text + " " + strings.Join(parts, connective)
}

// relative is a clause such as "whose age is above 30" or "that has no concert".
func (s *speaker) relative(c Condition, q *Query, word string) string {
	if c.Query == nil || len(c.Query.Select) == 0 || c.Query.Select[0].Func != "" {
		predicate := s.predicate(c, q)
		if word == "whose" {
			predicate = strings.TrimPrefix(predicate, "the ")
		}
		return word + " " + predicate
	}
	related := s.subject(c.Query)
	negative := strings.HasPrefix(c.Op, "not")
	if c.Left.Column.Name == foreignKey(c.Query.Table, c.Query.Select[0].Column.Name) {
		if negative { // the subject refers to the related table
			return "that does not belong to " + article(related)
		}
		return "that belongs to " + article(related)
	}
	if negative {
		return s.pick("that has no ", "without any ") + related
	}
	return s.pick("that has "+article(related), "with at least one "+related)
}

func (s *speaker) predicate(c Condition, q *Query) string {
	return s.term(c.Left, q) + " " + s.test(c, q)
}

var comparisons = map[string][]string{
	"=":           {"is", "equals"},
	"!=":          {"is not", "differs from"},
	">":           {"is greater than", "is above", "is more than"},
	"<":           {"is less than", "is below", "is under"},
	">=":          {"is at least", "is no less than"},
	"<=":          {"is at most", "is no more than"},
	"in":          {"is one of", "is among"},
	"not in":      {"is none of", "is not among"},
	"starts":      {"starts with", "begins with"},
	"ends":        {"ends with", "ends in"},
	"contains":    {"contains", "includes"},
	"lacks":       {"does not contain", "does not include"},
	"between":     {"is between", "lies between"},
	"is null":     {"is missing", "is unknown"},
	"is not null": {"is known", "is not missing"},
}

// test is the predicate's right part: "is above 30".
func (s *speaker) test(c Condition, q *Query) string {
	verb := s.pick(comparisons[c.Op]...)
	switch {
	case c.Query != nil:
		return verb + " " + s.term(c.Query.Select[0], c.Query) + " of all " + s.records(c.Query)
	case c.Op == "between":
		return verb + " " + c.Values[0] + " and " + c.Values[1]
	case len(c.Values) == 0:
		return verb
	}
	return verb + " " + conjoin(c.Values, "or")
}

func (s *speaker) terms(all []Term, q *Query) string {
	var texts []string
	for _, t := range all {
		texts = append(texts, s.term(t, q))
	}
	return conjoin(texts, "and")
}

func (s *speaker) average() string { return s.pick("average", "mean") }
func (s *speaker) most() string    { return s.pick("highest", "maximum", "largest") }
func (s *speaker) least() string   { return s.pick("lowest", "minimum", "smallest") }

// term names an expression, starting with "the".
func (s *speaker) term(t Term, q *Query) string {
	column := s.column(t.Column, q)
	bare := strings.TrimPrefix(column, "the ")
	operators := map[string]string{"+": " plus ", "-": " minus ", "*": " times "}
	switch {
	case t.Over:
		return s.peers(t, q)
	case t.Case != nil:
		return fmt.Sprintf("%s when %s and %s otherwise", t.Case.Then, s.predicate(t.Case.When, q), t.Case.Else)
	case t.Op != "":
		return column + operators[t.Op] + s.column(*t.Right, q)
	case t.Func == "count" && t.Column.Name == "*":
		return s.pick("the number of records", "the count of records")
	case t.Func == "count" && t.Distinct:
		return s.pick("the number of different ", "the number of distinct ") + bare
	case t.Func == "avg":
		return "the " + s.average() + " " + bare
	case t.Func == "sum":
		return s.pick("the total ", "the sum of ") + bare
	case t.Func == "min":
		return "the " + s.least() + " " + bare
	case t.Func == "max":
		return "the " + s.most() + " " + bare
	}
	return column
}

// peers names a term over the query's window: "the mean age within each city".
func (s *speaker) peers(t Term, q *Query) string {
	t.Over = false
	what := ""
	if t.Func == rank {
		key := q.Window.Order[0]
		what = "the rank by " + strings.TrimPrefix(s.term(key.Term, q), "the ") + " " + s.direction(key)
	} else {
		what = s.term(t, q)
	}
	return what + s.pick(" within each ", " within the same ") + strings.TrimPrefix(s.column(q.Window.Partition, q), "the ")
}

// column names a column; among several tables it says which one's.
func (s *speaker) column(c Column, q *Query) string {
	if len(q.Joins) > 0 && c.Table != "" {
		return s.pick("the "+c.Table+" "+c.Name, "the "+c.Name+" of the "+c.Table)
	}
	return "the " + c.Name
}

// article puts "a" or "an" before a noun.
func article(noun string) string {
	if strings.ContainsRune("aeio", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

// conjoin joins a list: "a, b and c".
func conjoin(items []string, word string) string {
	if len(items) == 1 {
		return items[0]
	}
	last := len(items) - 1
	return strings.Join(items[:last], ", ") + " " + word + " " + items[last]
}
