package report

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"caper/data"
)

// writeExample prints a tuple as a difference of two clauses: what stands before
// them, then the wrong one with the root cause underlined, then the right one.
// Without colour, what differs stands in [-brackets-] and {+braces+}.
func writeExample(out io.Writer, number int, t data.Tuple, colour bool) {
	p := plainMarks
	if colour {
		p = colourMarks
	}
	fmt.Fprintf(out, "%stuple %s%s  %s, question %s of %s: %s, clause %d of %d, margin %.3f\n", p.strong, Thousands(number), p.off,
		t.Operator, printable(t.QuestionID.String()), printable(t.DBID), t.Clause, t.ClauseIndex, t.ClauseCount, t.Margin)
	fmt.Fprintf(out, "  %s\n", printable(t.Question))
	if t.Prefix != "" {
		fmt.Fprintf(out, "    %s%s%s\n", p.faint, printable(t.Prefix), p.off)
	}
	wrong, right := words(t.Rejected), words(t.Chosen)
	keptWrong, keptRight := common(wrong, right)
	root := data.Root{Start: t.Root.Start - len(t.Prefix), End: t.Root.End - len(t.Prefix)}
	text, line := p.marked(wrong, keptWrong, root, p.wrong)
	fmt.Fprintf(out, "  - %s\n", text)
	if !colour {
		fmt.Fprintf(out, "    %s %s\n", line, t.Root.Kind)
	}
	text, _ = p.marked(right, keptRight, nowhere, p.right)
	fmt.Fprintf(out, "  + %s\n\n", text)
}

// nowhere is the root cause of a clause that has none.
var nowhere = data.Root{Start: -1, End: -1}

// marks are what surrounds a part of a text.
type marks struct {
	strong, faint, off string
	underline          string
	wrong, right       ink
}

// ink is how one of the two clauses is shown: all of it, and what only it has.
type ink struct{ base, open, close string }

var plainMarks = marks{wrong: ink{"", "[-", "-]"}, right: ink{"", "{+", "+}"}}

// Escape sequences of ECMA-48: bold, faint, underlined, reversed, red, green.
var colourMarks = marks{
	strong: "\x1b[1m", faint: "\x1b[2m", off: "\x1b[0m", underline: "\x1b[4m",
	wrong: ink{"\x1b[31m", "\x1b[7m", ""}, right: ink{"\x1b[32m", "\x1b[7m", ""},
}

// marked is a clause with what differs marked, and a line that underlines the root
// cause where the marks cannot. An empty clause is where the query ends.
func (p marks) marked(words []string, kept []bool, root data.Root, m ink) (text, line string) {
	if len(words) == 0 {
		return p.faint + "(the query ends here)" + p.off, "^"
	}
	var b, under strings.Builder
	at := 0
	pad := func(s string, rooted bool) {
		c := " "
		if rooted {
			c = "^"
		}
		under.WriteString(strings.Repeat(c, utf8.RuneCountInString(s)))
	}
	for i, word := range words {
		if root.Start == root.End && root.Start == at {
			under.WriteString("^")
			root = nowhere // of zero width: something is missing here
		}
		rooted := at < root.End && at+len(word) > root.Start
		changed := !kept[i]
		opens, closes := changed && (i == 0 || kept[i-1]), changed && (i == len(words)-1 || kept[i+1])
		b.WriteString(m.base)
		if p.off == "" {
			if opens {
				b.WriteString(m.open)
				pad(m.open, false)
			}
		} else if changed {
			b.WriteString(m.open)
		}
		if rooted {
			b.WriteString(p.underline)
		}
		shown := printable(word)
		b.WriteString(shown + p.off)
		pad(shown, rooted)
		if p.off == "" && closes {
			b.WriteString(m.close)
			pad(m.close, false)
		}
		at += len(word)
	}
	if root.Start >= 0 && root.Start == root.End {
		under.WriteString("^")
	}
	return b.String(), strings.TrimRight(under.String(), " ")
}

// wordPattern cuts SQL into strings, names, numbers, white space and signs.
var wordPattern = regexp.MustCompile(`(?s)'(?:[^']|'')*'|[\pL\pN_]+|\s+|.`)

func words(text string) []string { return wordPattern.FindAllString(text, -1) }

// maxCells bounds the table of common. Longer texts are compared from both ends.
const maxCells = 1 << 20

// common tells which words of two lists are in their longest common subsequence.
func common(a, b []string) (inA, inB []bool) {
	inA, inB = make([]bool, len(a)), make([]bool, len(b))
	start := 0
	for start < min(len(a), len(b)) && a[start] == b[start] {
		inA[start], inB[start] = true, true
		start++
	}
	endA, endB := len(a), len(b)
	for endA > start && endB > start && a[endA-1] == b[endB-1] {
		endA, endB = endA-1, endB-1
		inA[endA], inB[endB] = true, true
	}
	rows, columns := endA-start, endB-start
	if rows*columns > maxCells {
		return inA, inB
	}
	length := make([][]int, rows+1) // of the longest for the rest of both
	for i := range slices.Backward(length) {
		length[i] = make([]int, columns+1)
		if i == rows {
			continue
		}
		for j := columns - 1; j >= 0; j-- {
			length[i][j] = max(length[i+1][j], length[i][j+1])
			if a[start+i] == b[start+j] {
				length[i][j] = length[i+1][j+1] + 1
			}
		}
	}
	for i, j := 0, 0; i < rows && j < columns; {
		switch {
		case a[start+i] == b[start+j]:
			inA[start+i], inB[start+j] = true, true
			i, j = i+1, j+1
		case length[i+1][j] >= length[i][j+1]:
			i++
		default:
			j++
		}
	}
	return inA, inB
}

// printable is a text on one line that cannot steer a terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
