package report

import (
	"bufio"
	"fmt"
	"io"
	"text/tabwriter"

	"caper/annotate"
)

// WriteSummary prints what an annotation run did, for a terminal.
func WriteSummary(out io.Writer, s annotate.Summary) error {
	w := bufio.NewWriter(out)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range yields([]Annotation{{Summary: s}}).Rows {
		fmt.Fprintf(table, "%s\t%s\n", row.Name, row.Cells[0])
	}
	table.Flush()
	writeBars(w, countBars("Tuples by dataset", s.ByDataset, nil))
	writeBars(w, countBars("Tuples by source", s.BySource, nil))
	for _, list := range countedAnnotations([]Annotation{{Summary: s}})[0].Lists {
		writeBars(w, list)
	}
	return w.Flush()
}

// writeBars prints counts under their title; nothing when there are none.
func writeBars(out io.Writer, b bars) {
	if len(b.Rows) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s\n", b.Title)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range b.Rows {
		fmt.Fprintf(table, "%11s  %s", row.Label, row.Name)
		if row.Note != "" {
			fmt.Fprintf(table, "\t%s", row.Note)
		}
		fmt.Fprintln(table)
	}
	table.Flush()
}
