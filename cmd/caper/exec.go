package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"caper/sqlexec"
)

type execCommand struct {
	DB      string        `help:"SQLite file; opened read-only." required:"" type:"path"`
	SQL     string        `arg:"" help:"The query."`
	Timeout time.Duration `help:"Time limit." default:"5s"`
	Rows    int           `help:"Rows at most." default:"100"`
	JSON    bool          `help:"Print the result as JSON on stdout."`
}

func (c *execCommand) Help() string {
	return `Example:
  caper exec --db concert.sqlite "SELECT count(*) FROM singer"`
}

// Validate checks the flags.
func (c *execCommand) Validate() error {
	return cmp.Or(checkTimeout(c.Timeout), checkNumber("--rows", c.Rows, 1, math.MaxInt32))
}

func (c *execCommand) Run(ctx context.Context) error {
	limits := sqlexec.DefaultLimits()
	limits.Timeout, limits.Rows = c.Timeout, c.Rows
	started := time.Now()
	db, err := sqlexec.Open(c.DB, limits)
	if err != nil {
		return fmt.Errorf("%w; name an intact SQLite file with --db", err)
	}
	defer db.Close()
	result, err := db.Query(ctx, c.SQL)
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

// breaks would tear a cell apart.
var breaks = strings.NewReplacer("\t", `\t`, "\n", `\n`, "\r", `\r`)

// print lays the rows out for people.
func (t table) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(t.Columns, "\t"))
	for _, row := range t.Rows {
		cells := make([]string, len(row))
		for i, v := range row {
			cells[i] = "NULL"
			if v != nil {
				cells[i] = breaks.Replace(fmt.Sprint(v))
			}
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}
