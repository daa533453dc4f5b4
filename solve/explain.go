package solve

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Explain writes the pool, the classes with their scores, and why one candidate was
// taken.
func (d *Decision) Explain(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "question %s on %s: %s\n", d.Question.ID, d.Question.DBID, oneLine(d.Question.Question))
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	class := map[int]int{}
	for k, c := range d.Classes {
		for _, i := range c.Members {
			class[i] = k + 1
		}
	}
	for i := range d.Candidates {
		x := &d.Candidates[i]
		mark, of := " ", "-"
		if i == d.Chosen {
			mark = ">"
		}
		if k := class[i]; k > 0 {
			of = fmt.Sprint(k)
		}
		fmt.Fprintf(table, "%s %s\t%s\tclass %s\t%s\n", mark, x.origin(), x.outcome(), of, oneLine(x.SQL))
		for _, r := range x.Repairs {
			fmt.Fprintf(table, "  \t  by %s\t\t%s of %s\n", r.By, r.Note, oneLine(r.Of))
		}
	}
	table.Flush()
	for k, c := range d.Classes {
		fmt.Fprintf(&out, "  class %d: %s by %s, S_maj %.4f, S_rm %.4f, score %.4f", k+1, amount(c.Votes, "candidate"), amount(c.Groups, "group"),
			c.Consensus, c.Reward, c.Score)
		if c.Support > 0 {
			fmt.Fprintf(&out, "; structure %s in %s", c.Shape, amount(c.Support, "group"))
		}
		out.WriteString("\n")
	}
	fmt.Fprintf(&out, "  %s: %s\n\n", d.Stage, d.Why())
	_, err := io.WriteString(w, out.String())
	return err
}

// Why is the reason for the choice, in words.
func (d *Decision) Why() string {
	switch d.Stage {
	case OnlyClass:
		return "all candidates that count give this answer"
	case Structure:
		return fmt.Sprintf("the best %d classes are within %.4f of one another; most groups wrote this structure", d.Close, d.Classes[0].Score-d.Classes[d.Close-1].Score)
	case NoConsensus:
		return "no candidate ran, so there is no answer to vote on; most groups wrote this structure"
	}
	return fmt.Sprintf("the best class leads by %.4f", d.Margin)
}

func (c *Candidate) origin() string {
	name := c.Source
	if c.Style != "" {
		name += "/" + c.Style
	}
	return fmt.Sprintf("%s#%d", name, c.Sample)
}

func (x *Examined) outcome() string {
	if x.Result != nil {
		return fmt.Sprintf("%s, %s", x.State, amount(len(x.Result.Rows), "row"))
	}
	return fmt.Sprintf("%s: %s", x.State, oneLine(x.Message))
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func amount(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
