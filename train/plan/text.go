package plan

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// WriteText writes the plan for people.
func (p *Plan) WriteText(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	p.writeModel(w)
	p.writeMemory(w)
	p.writeFits(w)
	p.writeTime(w)
	if p.Sharing != nil {
		p.writeSharing(w)
	}
	return w.Flush()
}

func (p *Plan) writeModel(w io.Writer) {
	fmt.Fprintf(w, "model\t%s, %s parameters: %s\n", p.Model, grouped(p.Weights.Parameters), p.Weights)
	if p.Trained != p.Weights.Parameters {
		fmt.Fprintf(w, "trained\t%s parameters\n", grouped(p.Trained))
	}
	fmt.Fprintf(w, "checkpoint\t%s bytes in %d tensors", grouped(p.Weights.TensorSize), p.Weights.Tensors)
	if r := p.Weights.Release; r.Tensors > 0 {
		fmt.Fprintf(w, "; as published, with vision tower and next-token block, %s in %d", grouped(r.TensorSize), r.Tensors)
	}
	fmt.Fprintf(w, "\nGFLOP a token\t%.2f to train (%.2f forward, %.2f backward); %.2f with what operators compute twice, %.2f with full recomputation\n",
		p.FLOPs.Model/1e9, p.FLOPs.Forward/1e9, p.FLOPs.Backward/1e9, p.FLOPs.Computed/1e9, p.FLOPs.Full/1e9)
}

func (p *Plan) writeMemory(w io.Writer) {
	fmt.Fprintf(w, "\nactivations of %d x %d tokens, GB\tkept\tat most\n", p.Batch.Sequences, p.Batch.Length)
	for _, row := range []struct {
		name string
		Checkpointing
	}{{"none", p.Memory.None}, {"selective", p.Memory.Selective}, {"full", p.Memory.Full}} {
		fmt.Fprintf(w, "  %s\t%.2f\t%.2f\n", row.name, row.Kept/1e9, row.Peak/1e9)
	}
}

func (p *Plan) writeFits(w io.Writer) {
	fmt.Fprintf(w, "\nGB a GPU of %d\tZeRO\tweights\tgradients\tmaster\tmoments\tall\twith activations: none\tselective\tfull\tfits %s, %.0f GB\n", p.GPUs, p.Card.Name, p.Card.Memory/1e9)
	for _, f := range p.Fits {
		fmt.Fprintf(w, "  %s\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%s\n", f.Recipe, f.Stage,
			f.Weights/1e9, f.Gradients/1e9, f.Master/1e9, f.Moments/1e9, f.Total()/1e9, f.None/1e9, f.Selective/1e9, f.Full/1e9, f.Best)
	}
}

func (p *Plan) writeTime(w io.Writer) {
	fmt.Fprintf(w, "\nspeed at %.0f %% of %.0f TFLOP/s\t%.0f tokens/s a GPU, %.0f on all; with full recomputation %.0f a GPU\n",
		100*p.Speed.MFU, p.Card.Peak/1e12, p.Speed.Tokens, p.Speed.Tokens*float64(p.GPUs), p.Speed.TokensFull)
}

func (p *Plan) writeSharing(w io.Writer) {
	s := p.Sharing
	how := ""
	if s.Estimated {
		how = fmt.Sprintf(" (bytes / %g: no tokenizer)", BytesPerToken)
	}
	fmt.Fprintf(w, "\none epoch of %s sequences on %s prompts%s\ttokens\thours\n", grouped(s.Sequences), grouped(s.Prompts), how)
	fmt.Fprintf(w, "  each sequence alone\t%s\t%.3g\n", grouped(int(s.Separate)), s.SeparateHours)
	fmt.Fprintf(w, "  prompts and prefixes once\t%s\t%.3g\n", grouped(int(s.Packed)), s.PackedHours)
	fmt.Fprintf(w, "  saved\t%.1f times\t%.1f times\n", s.Separate/s.Packed, s.SeparateHours/s.PackedHours)
}

// WriteText lists the launches of a dry run, and sums by operator.
func (r *Walk) WriteText(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "launch\tphase\toperator\tGFLOP\tMB moved\tMB alive\treads\twrites")
	for i, l := range r.Launches {
		fmt.Fprintf(w, "%d\t%s\t%s\t%.3f\t%.2f\t%.1f\t%s\t%s\n", i+1, l.Phase, l.Operator, l.FLOPs/1e9, l.Bytes/1e6, l.Live/1e6, l.Reads, l.Writes)
	}
	fmt.Fprintln(w, "\noperator\tphase\tcalls\tGFLOP\tGB moved")
	for _, s := range r.sums() {
		fmt.Fprintf(w, "%s\t%s\t%d\t%.1f\t%.3f\n", s.operator, s.phase, s.calls, s.FLOPs/1e9, s.Bytes/1e9)
	}
	fmt.Fprintf(w, "\n%d launches, %.1f GFLOP, %.1f GB moved; activations: %.2f GB kept for the backward pass, at most %.2f GB at once\n",
		len(r.Launches), (r.Forward.FLOPs+r.Replay.FLOPs+r.Backward.FLOPs)/1e9, (r.Forward.Bytes+r.Replay.Bytes+r.Backward.Bytes+r.Update.Bytes)/1e9, r.Kept/1e9, r.Peak/1e9)
	return w.Flush()
}

// sum is what all calls of an operator in a phase take.
type sum struct {
	operator, phase string
	calls           int
	Work
}

// sums groups the launches, those with the most operations first, then bytes.
func (r *Walk) sums() []sum {
	var all []sum
	for _, l := range r.Launches {
		i := slices.IndexFunc(all, func(s sum) bool { return s.operator == l.Operator && s.phase == l.Phase })
		if i < 0 {
			i = len(all)
			all = append(all, sum{operator: l.Operator, phase: l.Phase})
		}
		all[i].calls++
		all[i].FLOPs += l.FLOPs
		all[i].Bytes += l.Bytes
	}
	slices.SortStableFunc(all, func(a, b sum) int { return cmp.Or(cmp.Compare(b.FLOPs, a.FLOPs), cmp.Compare(b.Bytes, a.Bytes)) })
	return all
}

// grouped writes a count with commas: 8,953,803,264.
func grouped(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
