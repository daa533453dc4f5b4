package plan

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteText writes what a job takes for people.
func (n *Needs) WriteText(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s of %s on one %s\tGB\n", n.Stage, n.Model, n.Card.Name)
	for _, p := range n.Parts {
		fmt.Fprintf(w, "  %s\t%.1f\n", p.Name, p.Bytes/1e9)
	}
	verdict := "fits"
	if !n.Fits {
		verdict = "does not fit"
	}
	fmt.Fprintf(w, "  all\t%.1f\tof %.0f, a twentieth of it kept free: %s\n", n.Total/1e9, n.Card.Memory/1e9, verdict)
	for stage := 1; stage <= 3 && !n.Fits; stage++ {
		cards := "no number of cards is enough"
		if g := n.GPUs[stage]; g > 0 {
			cards = fmt.Sprintf("%d cards", g)
		}
		fmt.Fprintf(w, "  ZeRO-%d\t%s\n", stage, cards)
	}
	if !n.Fits {
		fmt.Fprintln(w, "  caper trains on one GPU: several are not implemented yet")
	}
	l := n.Load
	fmt.Fprintf(w, "\na step: %s prompts of %s tokens, %s answers of %s\tPFLOP\tseconds\n", grouped(l.Prompts), grouped(l.Prompt), grouped(l.Continuations), grouped(l.Answer))
	for _, p := range n.Phases {
		fmt.Fprintf(w, "  %s\t%.2f\t%.1f\n", p.Name, p.FLOPs/1e15, p.Seconds)
	}
	fmt.Fprintf(w, "  all\t\t%.1f\n", n.Seconds)
	if n.Steps > 0 {
		fmt.Fprintf(w, "%s steps\t\t%.3g hours\n", grouped(n.Steps), n.Hours)
	} else {
		fmt.Fprintln(w, "steps\tdepend on the data: --items N says how many pairs or questions there are")
	}
	return w.Flush()
}
