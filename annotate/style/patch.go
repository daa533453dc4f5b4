package style

import (
	"slices"
	"strings"

	"caper/sql"

	"github.com/sqlc-dev/meyer/token"
)

// maxCells bounds the table that compares two token lists; longer clauses are
// printed anew.
const maxCells = 1 << 20

// Patcher rewrites the text of one clause. Every token of it that stays keeps its
// bytes and its white space, also the noise that the tree does not hold (INNER, ASC,
// redundant parentheses); new tokens are dressed in the style.
type Patcher struct {
	style Style
	old   []lexeme // the clause's text
	mid   []lexeme // Render's print of its tree
	toOld []int    // mid -> old; nil where they are too long to compare
}

// NewPatcher prepares to rewrite source, the text of a clause.
func NewPatcher(source string, clause *sql.Node, s Style) *Patcher {
	p := &Patcher{style: s, old: lexemes(source), mid: s.worded(lexemes(sql.Render(clause)))}
	if len(p.old)*len(p.mid) <= maxCells {
		p.toOld = align(p.mid, p.old)
	}
	return p
}

// Patch makes the clause say what another tree says. The text is a guess where noise
// touches the change, so callers parse it again.
func (p *Patcher) Patch(after *sql.Node) string {
	next := p.style.worded(lexemes(sql.Render(after)))
	dressed := p.style.dressWords(next)
	if p.toOld == nil || len(p.mid)*len(next) > maxCells {
		return join(dressed)
	}
	toNext := align(p.mid, next)
	kept := make([]int, len(p.old))
	for i := range kept {
		kept[i] = noise
	}
	for m, o := range p.toOld {
		if o >= 0 {
			kept[o] = toNext[m] // index in next, or dropped
		}
	}
	dropNoise(p.old, kept, len(next))
	return merge(p.old, kept, dressed)
}

// ReadsAs reports that a tree parsed from patched text is the one that was meant.
// Names may have changed case with the style; strings may not.
func ReadsAs(got, want *sql.Node) bool { return ReadsAsChanged(got, want, nil, nil) }

// ReadsAsChanged is ReadsAs of want with new in the place of its node old.
func ReadsAsChanged(got, want, old, new *sql.Node) bool {
	if want == old {
		want, old = new, nil
	}
	isSame := strings.EqualFold(got.Value, want.Value)
	if got.Kind == sql.String || got.DoubleQuoted {
		isSame = got.Value == want.Value
	}
	return isSame && got.Kind == want.Kind && strings.EqualFold(got.Qualifier, want.Qualifier) &&
		slices.EqualFunc(got.Children, want.Children, func(g, w *sql.Node) bool { return ReadsAsChanged(g, w, old, new) })
}

// The fate of a token of the source that has no counterpart in the new print.
const (
	dropped = -1 // its counterpart in the old print goes
	noise   = -2 // it has none: the trees do not know it
)

// dropNoise drops the noise that has lost what it belongs to: INNER its JOIN,
// OUTER its side, ASC its key unless another takes its place, parentheses all
// that stands between them.
func dropNoise(old []lexeme, kept []int, total int) {
	var open []int
	for i, l := range old {
		switch l.Kind {
		case token.JOIN_KW, token.ASC:
			belongs := i - 1
			if strings.EqualFold(l.text, "INNER") {
				belongs = i + 1
			}
			isLost := belongs >= 0 && belongs < len(kept) && kept[belongs] == dropped
			if kept[i] == noise && isLost && !(l.Kind == token.ASC && isReplaced(kept, i, total)) {
				kept[i] = dropped
			}
		case token.LP:
			open = append(open, i)
		case token.RP:
			if len(open) == 0 {
				continue
			}
			o := open[len(open)-1]
			open = open[:len(open)-1]
			stays := slices.ContainsFunc(kept[o+1:i], func(k int) bool { return k != dropped })
			if kept[o] == noise && kept[i] == noise && !stays {
				kept[o], kept[i] = dropped, dropped
			}
		}
	}
}

// isReplaced reports that new tokens stand between the tokens that stay before
// and after token i of the source.
func isReplaced(kept []int, i, total int) bool {
	before := -1
	for _, k := range kept[:i] {
		before = max(before, k)
	}
	return nextKept(kept, i, total)-before > 1
}

// nextKept is the place in the new print of the first token after i that stays.
func nextKept(kept []int, i, total int) int {
	for _, k := range kept[i+1:] {
		if k >= 0 {
			return k
		}
	}
	return total
}

// merge lays out the tokens that stay, in the order of the source, and before
// each the new tokens that precede it in the new print. What follows a dropped
// run takes over the run's gap; a new word takes the place of a noise word
// (LEFT that of INNER, DESC that of ASC).
func merge(old []lexeme, kept []int, dressed []lexeme) string {
	var out []placed
	laid := 0 // new tokens laid out or passed
	var run *lexeme
	noiseLast := false
	put := func(l lexeme, from, to int) {
		if isHung := l.Kind == token.RP && to == noise; run != nil && !isHung {
			l.gap = run.gap
		}
		run = nil
		out, noiseLast = append(out, placed{l, from, to}), to == noise
	}
	insert := func(until int) {
		for ; laid < until; laid++ {
			if noiseLast && out[len(out)-1].isWord() && dressed[laid].isWord() {
				out[len(out)-1].text, noiseLast = dressed[laid].text, false
				continue
			}
			put(dressed[laid], -1, laid)
		}
	}
	for i, l := range old {
		switch k := kept[i]; k {
		case dropped:
			if run == nil {
				run = &old[i]
			}
		case noise:
			if run != nil { // it follows what takes the run's place
				insert(nextKept(kept, i, len(dressed)))
			}
			put(l, i, noise)
		default:
			if laid < k && run == nil { // the first new token stands where l stood
				run, l.gap = &lexeme{gap: l.gap}, dressed[k].gap
			}
			insert(k)
			switch {
			case run == nil:
			case dressed[k].gap == "": // T1 . name: the run's gap was another's
				run = &lexeme{}
			case run.Kind == token.COMMA || run.Kind == token.RP: // it hung on what stands before it
				run = nil
			}
			put(l, i, k)
			laid = k + 1
		}
	}
	insert(len(dressed))
	return join(sewn(out, dressed))
}

// placed is a token of a merged clause: token from of the source, -1 for a new one,
// and token to of the new print, noise for none.
type placed struct {
	lexeme
	from, to int
}

// sewn sets the gaps at dots, signs and commas and inside new parentheses as the new
// print has them, and parts what only other neighbours let touch ("'x'OR"), except
// between neighbours in the source.
func sewn(list []placed, dressed []lexeme) []lexeme {
	out := make([]lexeme, len(list))
	for i, y := range list {
		out[i] = y.lexeme
		if i == 0 || y.from >= 0 && list[i-1].from == y.from-1 {
			continue
		}
		x := list[i-1]
		if y.gap == "" && x.closes() && y.isWord() {
			out[i].gap = " "
		}
		if y.to < 0 || x.to != y.to-1 {
			continue
		}
		isTight := func(k token.Kind) bool { return k == token.DOT || isSign(k) || isComma(k) }
		isNew := (x.Kind == token.LP || y.Kind == token.LP) && x.from < 0 || y.Kind == token.RP && y.from < 0
		if isTight(x.Kind) || isTight(y.Kind) || isNew {
			out[i].gap = dressed[y.to].gap
		}
	}
	return out
}

// join writes tokens with their gaps; words that would run together get a space.
func join(list []lexeme) string {
	var b strings.Builder
	for i, l := range list {
		gap := l.gap
		switch {
		case i == 0:
			gap = ""
		case gap == "" && l.isWord() && list[i-1].isWord():
			gap = " "
		}
		b.WriteString(gap)
		b.WriteString(l.text)
	}
	return b.String()
}

// align maps each token of a to the token of b that is its partner in a longest
// common subsequence, or to dropped.
func align(a, b []lexeme) []int {
	partner := make([]int, len(a))
	head := 0
	for head < len(a) && head < len(b) && a[head].same(b[head]) {
		partner[head] = head
		head++
	}
	width := len(b) - head + 1
	length := make([]int32, (len(a)-head+1)*width)
	for i := len(a) - 1; i >= head; i-- {
		for j := len(b) - 1; j >= head; j-- {
			at := (i-head)*width + j - head
			if a[i].same(b[j]) {
				length[at] = length[at+width+1] + 1
			} else {
				length[at] = max(length[at+width], length[at+1])
			}
		}
	}
	j := head
	for i := head; i < len(a); i++ {
		partner[i] = dropped
		for j < len(b) && length[(i-head)*width+j-head] == length[(i-head)*width+j-head+1] {
			j++ // a[i..] loses nothing when b[j] is passed over
		}
		if j < len(b) && a[i].same(b[j]) && length[(i-head)*width+j-head] == length[(i-head+1)*width+j-head+1]+1 {
			partner[i] = j
			j++
		}
	}
	return partner
}
