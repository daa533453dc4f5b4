package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"caper/sqlexec"
)

type execCommand struct {
	DB      string        `help:"SQLite file; opened read-only." required:"" type:"path"`
	SQL     string        `arg:"" help:"The query."`
	Timeout time.Duration `help:"Time limit." default:"5s"`
	Rows    int           `help:"Rows at most." default:"100"`
	Memory  size          `help:"Memory of the result at most; SQLite may take four times as much to make it." default:"128MiB"`
	JSON    bool          `help:"Print the result, or the failure, as JSON on stdout."`
}

const maxMemory = 1 << 40

func (c *execCommand) Help() string {
	return `Example:
  caper exec --db concert.sqlite "SELECT count(*) FROM singer"

A query that fails is one of: syntax, no_such_name, not_select, timeout, memory,
error. It cannot change the file, nor reach another.`
}

// Validate checks the flags.
func (c *execCommand) Validate() error {
	if c.Memory > maxMemory {
		return fmt.Errorf("--memory %d: at most %dGiB", c.Memory, maxMemory>>30)
	}
	return cmp.Or(checkTimeout(c.Timeout), checkNumber("--rows", c.Rows, 1, math.MaxInt32))
}

func (c *execCommand) Run(ctx context.Context) error {
	limits := sqlexec.DefaultLimits()
	limits.Timeout, limits.Rows, limits.Bytes = c.Timeout, c.Rows, int(c.Memory)
	started := time.Now()
	db, err := sqlexec.Open(c.DB, limits)
	switch {
	case err != nil && scarcity(err) == "":
		return fmt.Errorf("%w; name an intact SQLite file with --db", err)
	case err != nil:
		return err
	}
	defer db.Close()
	result, err := db.Query(ctx, c.SQL)
	var failed *sqlexec.Error
	if c.JSON && errors.As(err, &failed) {
		if err := printJSON(failure{failed.Failure, failed.Message}); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	elapsed := time.Since(started)
	table := tableOf(result, elapsed)
	if c.JSON {
		return printJSON(table)
	}
	if err := table.print(os.Stdout); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s in %v\n", counted(len(result.Rows), "row"), elapsed.Round(10*time.Microsecond))
	if result.Truncated {
		fmt.Fprintf(os.Stderr, "cut at --rows %d\n", c.Rows)
	}
	return nil
}

// failure is why there is no result, as --json shows it.
type failure struct {
	Failure sqlexec.Failure `json:"failure"`
	Message string          `json:"message"`
}

// table is a result as --json shows it. What JSON lacks is written as in SQLite's
// shell: blobs as x'00ff', infinities as Inf and -Inf.
type table struct {
	Columns   []string `json:"columns"`
	Rows      [][]any  `json:"rows"`
	Truncated bool     `json:"truncated"`
	// Elapsed is what the caller waited for: opening the file and running the query.
	Elapsed float64 `json:"elapsed_ms"`
}

func tableOf(r *sqlexec.Result, elapsed time.Duration) table {
	t := table{r.Columns, make([][]any, len(r.Rows)), r.Truncated, elapsed.Seconds() * 1000}
	for i, row := range r.Rows {
		for _, value := range row {
			t.Rows[i] = append(t.Rows[i], cell(value))
		}
	}
	return t
}

func cell(value sqlexec.Value) any {
	switch v := value.(type) {
	case []byte:
		return fmt.Sprintf("x'%x'", v)
	case float64:
		if math.IsInf(v, 0) {
			return strings.TrimPrefix(fmt.Sprint(v), "+")
		}
	}
	return value
}

// print lays the rows out for people: columns of one width each, numbers to the
// right.
func (t table) print(out io.Writer) error {
	texts := [][]string{make([]string, len(t.Columns))}
	widths, numeric := make([]int, len(t.Columns)), make([]bool, len(t.Columns))
	for i, name := range t.Columns {
		texts[0][i], numeric[i] = printable(name), true
	}
	for _, row := range t.Rows {
		line := make([]string, len(row))
		for i, v := range row {
			line[i] = "NULL"
			if v != nil {
				line[i] = printable(fmt.Sprint(v))
			}
			numeric[i] = numeric[i] && isNumber(v)
		}
		texts = append(texts, line)
	}
	for _, line := range texts {
		for i, text := range line {
			widths[i] = max(widths[i], runewidth.StringWidth(text))
		}
	}
	w := bufio.NewWriter(out)
	for _, line := range texts {
		for i, text := range line {
			if numeric[i] {
				text = runewidth.FillLeft(text, widths[i])
			} else if i < len(line)-1 {
				text = runewidth.FillRight(text, widths[i])
			}
			if i > 0 {
				text = "  " + text
			}
			w.WriteString(text)
		}
		w.WriteByte('\n')
	}
	return w.Flush()
}

func isNumber(v any) bool {
	switch v.(type) {
	case nil, int64, float64:
		return true
	}
	return false
}

// printable escapes what would tear a line apart or command the terminal.
func printable(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		if strconv.IsPrint(r) && (r != utf8.RuneError || n > 1) {
			b.WriteString(text[:n])
		} else {
			b.WriteString(strings.Trim(strconv.Quote(text[:n]), `"`))
		}
		text = text[n:]
	}
	return b.String()
}
