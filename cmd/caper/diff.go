package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"text/tabwriter"

	"golang.org/x/sys/unix"

	"caper/annotate"
	"caper/sql"
	"caper/sqlexec"
)

type diffCommand struct {
	A      string `arg:"" help:"A query, or a file that holds one."`
	B      string `arg:"" help:"The query to compare it with, or a file that holds it."`
	Schema string `help:"SQLite file whose schema tells which table a bare column belongs to." placeholder:"DB.sqlite" type:"path"`
	JSON   bool   `help:"Print the script as JSON on stdout."`
}

func (c *diffCommand) Help() string {
	return `Example:
  caper diff "SELECT name FROM singer WHERE age > 30" "select T1.name from singer T1 where T1.age >= 30"

What differs in meaning is marked: [-so-] where it goes or changes, {+so+} where it comes in, in colours on a terminal.
Names, letter case, order of operands and notation do not count. The script is the cheapest: 1 for an insertion, a
deletion or a change of value, 2 for a change of kind.`
}

func (c *diffCommand) Run() error {
	a, err := readQuery(c.A)
	if err != nil {
		return err
	}
	b, err := readQuery(c.B)
	if err != nil {
		return err
	}
	var schema *sql.Schema
	if c.Schema != "" {
		database, err := sqlexec.Open(c.Schema, sqlexec.DefaultLimits())
		if err != nil {
			return err
		}
		defer database.Close()
		if schema, err = database.Schema(); err != nil {
			return err
		}
	}
	d, isB, err := annotate.Compare(a.text, b.text, schema)
	switch {
	case err != nil && isB:
		return b.located(err)
	case err != nil:
		return a.located(err)
	case c.JSON:
		return printJSON(d)
	}
	marks := brackets
	if isTerminal(os.Stdout) && os.Getenv("NO_COLOR") == "" {
		marks = colours
	}
	return printDiff(os.Stdout, d, a.text, b.text, marks)
}

// queryArgument is the text of a query and the file it was read from, "" for none.
type queryArgument struct{ text, path string }

// readQuery takes an argument for a file's name where there is such a file, or
// where it cannot be a query.
func readQuery(argument string) (queryArgument, error) {
	const remedy = "name a file or give a query in quotes"
	if argument == "" {
		return queryArgument{}, errors.New("a query is empty; " + remedy)
	}
	info, err := os.Stat(argument)
	switch isMissing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR); {
	case isMissing && looksLikeQuery(argument), errors.Is(err, unix.ENAMETOOLONG):
		return queryArgument{text: argument}, nil
	case err != nil:
		return queryArgument{}, fmt.Errorf("%w; %s", err, remedy)
	case !info.Mode().IsRegular():
		return queryArgument{}, fmt.Errorf("%s is not a regular file; %s", argument, remedy)
	}
	text, err := readAtMost(argument, sql.MaxTextBytes)
	return queryArgument{text, argument}, err
}

// looksLikeQuery tells a query from the name of a file.
func looksLikeQuery(argument string) bool {
	if strings.ContainsAny(argument, " \t\r\n\f(") {
		return true
	}
	_, err := sql.Parse(argument)
	return err == nil
}

// readAtMost reads a file, and no more of a longer one than shows that it is longer.
func readAtMost(path string, most int) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if len(text) > most {
		return "", fmt.Errorf("%s is longer than %d bytes: name a file that holds one query", path, most)
	}
	return string(text), err
}

// located says where a query cannot be read.
func (q queryArgument) located(err error) error {
	var syntax *sql.ParseError
	if q.path != "" && errors.As(err, &syntax) {
		return fmt.Errorf("%s:%d:%d: %s", q.path, syntax.Line, syntax.Col, syntax.Message)
	}
	return fmt.Errorf("%w: %s", err, shortened(q.text))
}

// marks stand around what goes and what comes.
type marks struct{ deleted, inserted [2]string }

var (
	brackets = marks{[2]string{"[-", "-]"}, [2]string{"{+", "+}"}}
	colours  = marks{[2]string{"\x1b[1;31m", "\x1b[0m"}, [2]string{"\x1b[1;32m", "\x1b[0m"}}
)

// printDiff writes both texts with what differs marked, then the script, one line
// for each step.
func printDiff(out io.Writer, d *annotate.Diff, a, b string, m marks) error {
	fmt.Fprintf(out, "%s\n%s\n\n", marked(a, d.MarksA(a), m.deleted), marked(b, d.MarksB(b), m.inserted))
	if d.Cost == 0 {
		_, err := fmt.Fprintln(out, "no difference in meaning")
		return err
	}
	fmt.Fprintf(out, "cost %d\n", d.Cost)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, s := range d.Steps(a, b) {
		fmt.Fprintf(w, "  %s\t%s\t", s.Clause, s.Op)
		switch {
		case s.Op == sql.Relabel:
			fmt.Fprintf(w, "%s to %s\n", described(s.A, a, nil), described(s.B, b, nil))
		case s.Op == sql.Delete:
			fmt.Fprintln(w, described(s.A, a, s.Spans))
		case s.A == nil:
			fmt.Fprintln(w, described(s.B, b, s.Spans))
		default:
			fmt.Fprintf(w, "%s in %s\n", described(s.B, b, s.Spans), described(s.A, a, nil))
		}
	}
	return w.Flush()
}

// described names a node by its kind and its text, or the given parts of it, on one
// line and not too long.
func described(n *annotate.DiffNode, text string, parts []annotate.Span) string {
	if len(parts) == 0 {
		parts = []annotate.Span{n.Span}
	}
	var words []string
	for i, p := range parts {
		if i > 0 || p.Start > n.Start {
			words = append(words, "...")
		}
		words = append(words, strings.Fields(text[p.Start:p.End])...)
	}
	if parts[len(parts)-1].End < n.End {
		words = append(words, "...")
	}
	return fmt.Sprintf("%s `%s`", n.Kind, shortened(strings.Join(words, " ")))
}

// shortened is the beginning of a text, on one line.
func shortened(text string) string {
	const most = 56
	phrase := []rune(strings.Join(strings.Fields(text), " "))
	if len(phrase) > most {
		return string(phrase[:most-3]) + "..."
	}
	return string(phrase)
}

// marked puts a mark around each span of text.
func marked(text string, spans []annotate.Span, mark [2]string) string {
	var out strings.Builder
	at := 0
	for _, s := range spans {
		out.WriteString(text[at:s.Start] + mark[0] + text[s.Start:s.End] + mark[1])
		at = s.End
	}
	out.WriteString(text[at:])
	return strings.TrimRight(out.String(), " \t\r\n")
}

// isTerminal reports that someone reads the file on a screen.
func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
