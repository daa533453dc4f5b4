package engine

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"text/tabwriter"
	"time"
)

// Profile is an Observer that measures: how long every operator takes, and the
// operations and bytes a second that it reaches. It sums over all launches and keeps
// the first traceLaunches of them for a trace.
type Profile struct {
	mu        sync.Mutex
	started   time.Time // the first launch
	ended     time.Time // the end of the last one
	trace     []traced
	operators []*operatorSum // in the order of their first launch
	index     map[string]int
}

// traceLaunches bounds the trace: a file of some 40 MB, which viewers still open fast.
const traceLaunches = 200_000

// operatorSum is what all launches of an operator in a phase took.
type operatorSum struct {
	operator string
	phase    Phase
	launches int
	duration time.Duration
	flops    float64
	bytes    float64
}

// traced is a launch as the trace shows it.
type traced struct {
	sum           int // index in operators
	shapes        string
	flops, bytes  float64
	start, length time.Duration
}

// NewProfile returns an empty profile. Its time begins with the first launch.
func NewProfile() *Profile { return &Profile{index: map[string]int{}} }

// Observe adds a launch.
func (p *Profile) Observe(l *Launch) {
	bytes := l.Bytes()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started.IsZero() {
		p.started = l.Start
	}
	key := l.Operator + " " + l.Phase.String()
	i, ok := p.index[key]
	if !ok {
		i = len(p.operators)
		p.index[key] = i
		p.operators = append(p.operators, &operatorSum{operator: l.Operator, phase: l.Phase})
	}
	s := p.operators[i]
	s.launches++
	s.duration += l.Duration
	s.flops += l.FLOPs
	s.bytes += bytes
	p.ended = l.Start.Add(l.Duration)
	if len(p.trace) < traceLaunches {
		shapes := l.Reads.String() + " -> " + l.Writes.String()
		p.trace = append(p.trace, traced{i, shapes, l.FLOPs, bytes, l.Start.Sub(p.started), l.Duration})
	}
}

// WriteTable writes the sums, the longest first.
func (p *Profile) WriteTable(to io.Writer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	sums := slices.Clone(p.operators)
	slices.SortStableFunc(sums, func(a, b *operatorSum) int { return cmp.Compare(b.duration, a.duration) })
	whole := p.ended.Sub(p.started)
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "operator\tphase\tlaunches\tms\tshare\tus each\tGFLOP/s\tGB/s\t")
	rest := whole
	for _, s := range sums {
		rest -= s.duration
		seconds := s.duration.Seconds()
		fmt.Fprintf(w, "%s\t%s\t%d\t%.1f\t%.1f %%\t%.1f\t%.1f\t%.1f\t\n", s.operator, s.phase, s.launches, 1e3*seconds,
			100*seconds/whole.Seconds(), 1e6*seconds/float64(s.launches), rate(s.flops, seconds), rate(s.bytes, seconds))
	}
	fmt.Fprintf(w, "outside operators\t\t\t%.1f\t%.1f %%\t\t\t\t\n", 1e3*rest.Seconds(), 100*rest.Seconds()/whole.Seconds())
	return w.Flush()
}

// rate is n in billions a second.
func rate(n, seconds float64) float64 {
	if seconds == 0 {
		return 0
	}
	return n / seconds / 1e9
}

// WriteTrace writes the launches in the trace event format of Chrome, with a row for
// each operator: open it at ui.perfetto.dev or chrome://tracing.
func (p *Profile) WriteTrace(to io.Writer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := bufio.NewWriter(to)
	rows := map[string]int{} // by operator, from 1
	fmt.Fprint(w, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n")
	fmt.Fprint(w, `{"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"caper"}}`)
	for _, s := range p.operators {
		if _, ok := rows[s.operator]; !ok {
			rows[s.operator] = len(rows) + 1
			p.event(w, event{Phase: "M", Name: "thread_name", Row: rows[s.operator], Arguments: map[string]any{"name": s.operator}})
		}
	}
	for _, l := range p.trace {
		s := p.operators[l.sum]
		seconds := l.length.Seconds()
		p.event(w, event{
			Phase: "X", Name: s.operator + " " + s.phase.String(), Category: s.phase.String(), Row: rows[s.operator],
			Start: 1e6 * l.start.Seconds(), Length: 1e6 * seconds,
			Arguments: map[string]any{"shapes": l.shapes, "FLOP": l.flops, "bytes": l.bytes, "GFLOP/s": rate(l.flops, seconds), "GB/s": rate(l.bytes, seconds)},
		})
	}
	fmt.Fprint(w, "\n]}\n")
	return w.Flush()
}

// event is an entry of a trace. Times are in microseconds.
type event struct {
	Phase     string         `json:"ph"`
	Name      string         `json:"name"`
	Category  string         `json:"cat,omitempty"`
	Process   int            `json:"pid"`
	Row       int            `json:"tid"`
	Start     float64        `json:"ts"`
	Length    float64        `json:"dur,omitempty"`
	Arguments map[string]any `json:"args"`
}

func (p *Profile) event(w io.Writer, e event) {
	e.Process = 1
	text, err := json.Marshal(e)
	if err != nil {
		panic(err) // numbers and texts
	}
	fmt.Fprintf(w, ",\n%s", text)
}
