package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"caper/eval"
	"caper/sql"
)

// rules are the baselines in the order shown: from the one that knows most to the
// one that knows nothing.
var rules = []string{eval.Logistic, eval.Lexical, eval.Frequent, eval.Longest, eval.First, eval.Random}

// forest is a chart of shares: on each row dots with their 95 % whiskers.
type forest struct {
	Title   string
	Measure string // what the shares are of; empty: Top-1
	Count   string // of failed queries, if the rows have no counts of their own
	Rows    []forestRow
}

type forestRow struct {
	Name, Note string
	Own        bool // the row that the chart is about
	Marks      []mark
	Figure     string // what the marks say, in digits
}

// mark is a dot between the ends of its interval; all three in percent.
type mark struct {
	Class         string // "model" or "rule"
	At, Low, High float64
}

func markOf(class string, m eval.Measure) mark {
	return mark{class, percent(m.Top1), percent(m.Top1Interval[0]), percent(m.Top1Interval[1])}
}

// percent turns a share into percent; what is not a share is moved to the nearest.
func percent(share float64) float64 {
	if math.IsNaN(share) {
		return 0
	}
	return 100 * min(max(share, 0), 1)
}

// located is one test of the main run, in full.
type located struct {
	Test     string
	Headline headline
	Counts   string
	Against  []forest // the rules, one chart a weighing
	Figures  []figures
	Labels   []forest // all labels and verified ones, one chart a weighing
	Parts    []forest // by clause kind, by number of clauses
}

// headline is the one figure of a test that a reader should remember.
type headline struct {
	Test, Count, Top1, Interval, Weighing string
	Rival, RivalTop1                      string // empty without baselines
	Lead                                  string // what the model's lead over the rival comes to
}

// figures are a chart's numbers as a table.
type figures struct {
	Title string
	Rows  []figureRow
}

type figureRow struct {
	Name                         string
	Own                          bool
	Top1, Top1Interval           string
	MRR, MRRInterval             string
	LeadTop1, LeadInterval, Note string
}

// weighed is a result with the name of how its faults are weighed.
type weighed struct {
	name   string
	result *eval.Localization
}

// weighings returns the results that a test has, the balanced one first: it does
// not reward knowing which kinds of clauses fail most.
func (t Test) weighings() []weighed {
	var all []weighed
	if t.Balanced != nil {
		all = append(all, weighed{"balanced", t.Balanced})
	}
	if t.Natural != nil {
		all = append(all, weighed{"natural", t.Natural})
	}
	return all
}

// mainRun is the name of the run that the page is about.
func (p Page) mainRun() string {
	switch {
	case len(p.Runs) > 0:
		return p.Runs[0].Name
	case len(p.Tests) > 0:
		return p.Tests[0].Run
	}
	return ""
}

func locatedTests(p Page) []located {
	var all []located
	for _, t := range p.Tests {
		if ws := t.weighings(); t.Run == p.mainRun() && len(ws) > 0 {
			all = append(all, locatedTest(t, ws))
		}
	}
	return all
}

func locatedTest(t Test, ws []weighed) located {
	l := located{Test: t.Name, Headline: headlineOf(t.Name, ws[0])}
	for _, w := range ws {
		l.Against = append(l.Against, againstRules(w))
		l.Figures = append(l.Figures, figuresOf(w))
		l.Labels = append(l.Labels, byLabel(w))
	}
	l.Counts = countsOf(ws)
	last := ws[len(ws)-1] // natural, if there is one; within one kind the weighings agree
	l.Parts = []forest{
		parts("By kind of the faulty clause", last.result.ByKind, last.result.Best, func(kind string) (string, int) {
			return kind, sql.ClauseKind(kind).Rank()
		}),
		parts("By number of clauses, "+last.name, last.result.ByClauses, last.result.Best, func(n string) (string, int) {
			clauses, _ := strconv.Atoi(n)
			return n + " clauses", clauses
		}),
	}
	return l
}

// countsOf says how many faults a test has, and how many a balanced figure leaves out.
func countsOf(ws []weighed) string {
	all := ws[len(ws)-1].result
	text := fmt.Sprintf("%s failed queries of %s questions", Thousands(all.Count), Thousands(all.Questions))
	if rare := all.Count - ws[0].result.Count; rare > 0 {
		text += fmt.Sprintf("; %s of them fail in kinds of clauses too rare for a balanced figure", Thousands(rare))
	}
	return text
}

func headlineOf(test string, w weighed) headline {
	r := w.result
	h := headline{
		Test: test, Count: Thousands(r.Count), Top1: digits(r.Top1), Interval: span(r.Top1Interval), Weighing: weighingNames[w.name],
	}
	if rival, ok := r.Baselines[r.Best]; ok {
		h.Rival, h.RivalTop1, h.Lead = r.Best, digits(rival.Top1), leadText(rival.Lead)
	}
	return h
}

// leadText says who leads, unless the interval of the lead holds 0.
func leadText(lead eval.Measure) string {
	low, high := lead.Top1Interval[0], lead.Top1Interval[1]
	switch {
	case low > 0:
		return fmt.Sprintf("the model leads by %s points (%s)", digits(lead.Top1), span(lead.Top1Interval))
	case high < 0:
		return fmt.Sprintf("the model trails by %s points (%s)", digits(-lead.Top1), span(eval.Interval{-high, -low}))
	}
	return fmt.Sprintf("no significant difference (the model's lead is %s points, %s)", points(lead.Top1), span(lead.Top1Interval))
}

// weighingNames explain the weighings where there is room for a few words.
var weighingNames = map[string]string{
	"balanced": "every clause kind weighing the same (balanced)",
	"natural":  "every fault weighing the same (natural)",
}

// againstRules compares the model with every rule.
func againstRules(w weighed) forest {
	f := forest{Title: title(w), Count: Thousands(w.result.Count)}
	f.Rows = append(f.Rows, forestRow{
		Name: "Clause-PRM", Own: true, Marks: []mark{markOf("model", w.result.Measure)}, Figure: withSpan(w.result.Measure),
	})
	for _, name := range rules {
		if b, ok := w.result.Baselines[name]; ok {
			f.Rows = append(f.Rows, forestRow{Name: name, Marks: []mark{markOf("rule", b.Measure)}, Figure: withSpan(b.Measure)})
		}
	}
	return f
}

func title(w weighed) string {
	if w.name == "balanced" {
		return "Balanced: every clause kind weighs the same"
	}
	return "Natural: every fault weighs the same"
}

func figuresOf(w weighed) figures {
	row := func(name string, m eval.Measure) figureRow {
		return figureRow{Name: name, Top1: digits(m.Top1), Top1Interval: span(m.Top1Interval), MRR: digits(m.MRR), MRRInterval: span(m.MRRInterval)}
	}
	t := figures{Title: title(w), Rows: []figureRow{row("Clause-PRM", w.result.Measure)}}
	t.Rows[0].Own = true
	for _, name := range rules {
		if b, ok := w.result.Baselines[name]; ok {
			r := row(name, b.Measure)
			r.LeadTop1, r.LeadInterval = points(b.Lead.Top1), span(b.Lead.Top1Interval)
			t.Rows = append(t.Rows, r)
		}
	}
	return t
}

// byLabel compares the model with the best rule of each set: faults of each source,
// and the failures of which exactly one single-clause repair is known to work.
func byLabel(w weighed) forest {
	f := forest{Title: "By origin of the label, " + w.name}
	add := func(name string, c eval.Comparison, ok bool) {
		if ok && c.Count > 0 {
			f.Rows = append(f.Rows, comparisonRow(name, c, c.Best))
		}
	}
	r := w.result
	injected, okInjected := r.BySource["injection"]
	repaired, okRepaired := r.BySource["counterfactual"]
	single, okSingle := r.ByOperator["single"]
	add("all faults", r.Comparison, true)
	add("injected", injected, okInjected)
	add("failing, all", repaired, okRepaired)
	add("failing, verified", single, okSingle)
	return f
}

// parts compares the model on each part of a set with the rule that is best on the
// whole set: the best of a part would be chosen in hindsight (what always accuses
// SELECT finds every fault in SELECT). order gives a part its name and place.
func parts(title string, by map[string]eval.Comparison, rule string, order func(key string) (name string, place int)) forest {
	keys := make([]string, 0, len(by))
	for key := range by {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int {
		_, i := order(a)
		_, j := order(b)
		return i - j
	})
	f := forest{Title: title}
	for _, key := range keys {
		name, _ := order(key)
		f.Rows = append(f.Rows, comparisonRow(name, by[key], rule))
	}
	return f
}

func comparisonRow(name string, c eval.Comparison, rule string) forestRow {
	row := forestRow{Name: name, Note: "n = " + Thousands(c.Count), Figure: digits(c.Top1)}
	if rival, ok := c.Baselines[rule]; ok {
		row.Marks = append(row.Marks, markOf("rule", rival.Measure))
		row.Figure += " vs " + digits(rival.Top1) + " " + rule
	}
	row.Marks = append(row.Marks, markOf("model", c.Measure))
	return row
}

// digits writes a share in percent, span an interval of shares.
func digits(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) }

func span(i eval.Interval) string { return digits(i[0]) + " to " + digits(i[1]) }

func withSpan(m eval.Measure) string {
	return digits(m.Top1) + " (" + span(m.Top1Interval) + ")"
}
