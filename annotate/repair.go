package annotate

import (
	"slices"
	"strings"

	"caper/annotate/style"
	"caper/sql"
)

// repair is a wrong query beside gold, cut into aligned clauses, and a writer of
// mixtures of the two.
type repair struct {
	wrong, gold *statement
	slots       []slot
	// trimmed is the wrong query's text up to its last clause's end.
	trimmed string
	style   style.Style
	// renamed is gold's tree under the prediction's aliases.
	renamed []*sql.Node
	// gap is the white space that the prediction puts between clauses.
	gap   string
	texts map[int]string
	// resolved tells what the wrong query's names mean, once asked for.
	resolved *sql.Scopes
}

// slot aligns a clause of the wrong query with one of gold, each given as the
// index of an outermost unit; -1 where there is none.
type slot struct {
	kind        sql.ClauseKind
	wrong, gold int
}

const spaces = " \t\r\n\f"

// newRepair aligns two statements by clause kind; set operations are aligned in
// order.
func newRepair(wrong, gold *statement) *repair {
	r := &repair{
		wrong:   wrong,
		gold:    gold,
		trimmed: strings.TrimRight(wrong.text, spaces+";"),
		style:   style.Of(wrong.text),
		renamed: sql.ClauseNodes(renameLike(gold, wrong)),
		gap:     " ",
		texts:   make(map[int]string),
	}
	if first := wrong.units[0]; wrong.topCount > 1 {
		core := strings.TrimRight(wrong.text[:first.end], spaces)
		r.gap = wrong.text[len(core):first.end]
	}
	r.slots = alignClauses(wrong.kinds(), gold.kinds())
	for _, s := range r.slots {
		if s.wrong >= 0 && s.gold >= 0 {
			orderLike(r.renamed[s.gold], wrong.units[s.wrong].node)
		}
	}
	return r
}

// alignClauses pairs two lists of clauses by kind, in the order in which clauses
// are written; several of a kind, which set operations are, in their own order.
func alignClauses(wrong, gold []sql.ClauseKind) []slot {
	kinds := slices.Concat(wrong, gold)
	slices.SortStableFunc(kinds, func(a, b sql.ClauseKind) int { return a.Rank() - b.Rank() })
	var slots []slot
	for _, kind := range slices.Compact(kinds) {
		w, g := ofKind(wrong, kind), ofKind(gold, kind)
		for i := range max(len(w), len(g)) {
			s := slot{kind, -1, -1}
			if i < len(w) {
				s.wrong = w[i]
			}
			if i < len(g) {
				s.gold = g[i]
			}
			slots = append(slots, s)
		}
	}
	return slots
}

// ofKind lists the places of a kind.
func ofKind(kinds []sql.ClauseKind, kind sql.ClauseKind) []int {
	var found []int
	for i, k := range kinds {
		if k == kind {
			found = append(found, i)
		}
	}
	return found
}

// kinds lists the kinds of the outermost units.
func (s *statement) kinds() []sql.ClauseKind {
	return kindsOf(sql.ClauseNodes(s.tree))
}

// divergent lists the slots whose clauses differ in canonical form. Where none
// does and yet the query fails, it is the wording that fails (an ambiguous
// column), and the slots that differ in text are listed.
func (r *repair) divergent() []int {
	var inMeaning, inText []int
	for k, s := range r.slots {
		if s.wrong < 0 || s.gold < 0 || !r.wrong.means(s.wrong, r.gold, s.gold) {
			inMeaning = append(inMeaning, k)
		}
		if r.goldText(k) != r.wrongText(k) {
			inText = append(inText, k)
		}
	}
	if len(inMeaning) == 0 {
		return inText
	}
	return inMeaning
}

// means reports that outermost unit i of s equals unit j of another statement in
// canonical form.
func (s *statement) means(i int, other *statement, j int) bool {
	return sql.Equal(s.canonicalOf(s.units[i].node), other.canonicalOf(other.units[j].node))
}

// only is the wrong query with nothing but slot k repaired. The clauses behind it
// mean what they meant (keep.go).
func (r *repair) only(k int) string {
	texts := func(i int) string {
		if i == k {
			return r.goldText(k)
		}
		return r.wrongText(i)
	}
	text := r.compose(texts)
	kept := r.keep(k, text)
	if len(kept) == 0 {
		return text
	}
	return r.compose(func(i int) string {
		if restated, found := kept[i]; found {
			return restated
		}
		return texts(i)
	})
}

// from is the wrong query up to slot k, and gold from there on.
func (r *repair) from(k int) string {
	return r.compose(func(i int) string {
		if i >= k {
			return r.goldText(i)
		}
		return r.wrongText(i)
	})
}

// compose writes a query from one text a slot, "" for none.
func (r *repair) compose(textOf func(slot int) string) string {
	var b strings.Builder
	pending := "" // white space before the next clause
	last := -1
	for k, s := range r.slots {
		text := textOf(k)
		if text == "" {
			continue
		}
		last = k
		b.WriteString(pending)
		b.WriteString(text)
		pending = r.gap
		if s.wrong >= 0 {
			u := r.wrong.units[s.wrong]
			if core := strings.TrimRight(r.wrong.text[u.start:u.end], spaces); u.end < len(r.trimmed) {
				pending = r.wrong.text[u.start+len(core) : u.end]
			}
		}
		if pending == "" && text != r.wrongText(k) { // ")ORDER BY", but the parenthesis may be gone
			pending = " "
		}
	}
	if r.endsEarly(last) {
		return b.String() + pending // the clause too many stood here
	}
	return b.String() + r.wrong.text[len(r.trimmed):]
}

// endsEarly reports that the wrong query goes on after slot last.
func (r *repair) endsEarly(last int) bool {
	return last >= 0 && r.slots[last].wrong >= 0 && r.slots[last].wrong < r.wrong.topCount-1
}

// wrongText is the wrong query's clause in slot k, without the white space
// behind it.
func (r *repair) wrongText(k int) string {
	s := r.slots[k]
	if s.wrong < 0 {
		return ""
	}
	u := r.wrong.units[s.wrong]
	return strings.TrimRight(r.trimmed[u.start:min(u.end, len(r.trimmed))], spaces)
}

// goldText is gold's clause in slot k in the prediction's aliases and style;
// words that the prediction has already keep its bytes.
func (r *repair) goldText(k int) string {
	s := r.slots[k]
	if s.gold < 0 {
		return ""
	}
	if text, done := r.texts[k]; done {
		return text
	}
	r.texts[k] = r.write(k, r.renamed[s.gold])
	return r.texts[k]
}

// write is the text of slot k that reads as the clause want.
func (r *repair) write(k int, want *sql.Node) string {
	s := r.slots[k]
	if s.wrong < 0 {
		return r.style.Write(want)
	}
	u := r.wrong.units[s.wrong]
	text := style.NewPatcher(u.node.Text(r.wrong.text), u.node, r.style).Patch(want)
	if !r.says(k, text, want) {
		text = r.style.Write(want)
	}
	return r.wrong.text[u.start:u.node.Start] + text
}

// says reports that text, put in the place of slot k's clause, reads as the
// clause want.
func (r *repair) says(k int, text string, want *sql.Node) bool {
	u := r.wrong.units[r.slots[k].wrong]
	s, ok := parse(r.wrong.text[:u.node.Start]+text+r.wrong.text[u.node.End:], nil, Top)
	return ok && s.topCount == r.wrong.topCount && style.ReadsAs(s.units[r.slots[k].wrong].node, want)
}

// offset is where slot k's clause starts in the wrong query, or would start.
func (r *repair) offset(k int) int {
	for _, s := range r.slots[k:] {
		if s.wrong >= 0 {
			return r.wrong.units[s.wrong].start
		}
	}
	return len(r.trimmed)
}

// indexInRepair is the index of slot k's clause among the units of the repaired
// query: only slot k is gold's, or all from k on. Ahead of k all are the
// prediction's.
func (r *repair) indexInRepair(k int) int {
	index := 0
	for _, s := range r.slots[:k] {
		if s.wrong >= 0 {
			index++
		}
	}
	return index
}
