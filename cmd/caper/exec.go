package main

import (
	"context"
	"fmt"
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

func (c *execCommand) Run(ctx context.Context) error {
	limits := sqlexec.DefaultLimits()
	limits.Timeout, limits.Rows = c.Timeout, c.Rows
	db, err := sqlexec.Open(c.DB, limits)
	if err != nil {
		return err
	}
	defer db.Close()
	result, err := db.Query(ctx, c.SQL)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(result)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(result.Columns, "\t"))
	for _, row := range result.Rows {
		for i, v := range row {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			if v == nil {
				v = "NULL"
			}
			fmt.Fprint(w, v)
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d rows in %v\n", len(result.Rows), result.Elapsed.Round(time.Microsecond))
	if result.Truncated {
		fmt.Fprintf(os.Stderr, "cut at --rows %d\n", c.Rows)
	}
	return nil
}
