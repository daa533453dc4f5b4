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
	Title string
	Rows  []forestRow
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
	Test, Top1, Interval, Weighing string
	Rival, RivalTop1               string // empty without baselines
	Leads                          bool
	Lead                           string // or, if the model does not lead, how far it trails
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
		if l.Counts != "" {
			l.Counts += "; "
		}
		l.Counts += fmt.Sprintf("%s: %s faults of %s questions", w.name, thousands(w.result.Count), thousands(w.result.Questions))
		l.Against = append(l.Against, againstRules(w))
		l.Figures = append(l.Figures, figuresOf(w))
		l.Labels = append(l.Labels, byLabel(w))
	}
	natural := ws[len(ws)-1].result // within one kind the weighings agree
	l.Parts = []forest{
		parts("By kind of the faulty clause", natural.ByKind, natural.Best, func(kind string) (string, int) {
			return kind, sql.ClauseKind(kind).Rank()
		}),
		parts("By number of clauses", natural.ByClauses, natural.Best, func(n string) (string, int) {
			clauses, _ := strconv.Atoi(n)
			return n + " clauses", clauses
		}),
	}
	return l
}

func headlineOf(test string, w weighed) headline {
	r := w.result
	h := headline{Test: test, Weighing: w.name, Top1: digits(r.Top1), Interval: span(r.Top1Interval)}
	if rival, ok := r.Baselines[r.Best]; ok {
		h.Rival, h.RivalTop1 = r.Best, digits(rival.Top1)
		lead, interval := rival.Lead.Top1, rival.Lead.Top1Interval
		h.Leads = lead >= 0
		if !h.Leads {
			lead, interval = -lead, eval.Interval{-interval[1], -interval[0]}
		}
		h.Lead = fmt.Sprintf("%s points (%s)", digits(lead), span(interval))
	}
	return h
}

// againstRules compares the model with every rule.
func againstRules(w weighed) forest {
	f := forest{Title: title(w)}
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
			r.LeadTop1, r.LeadInterval = fmt.Sprintf("%+.1f", 100*b.Lead.Top1), span(b.Lead.Top1Interval)
			t.Rows = append(t.Rows, r)
		}
	}
	return t
}

// byLabel compares the model with the best rule of each set: faults of each source,
// and the failures of which exactly one single-clause repair is known to work.
func byLabel(w weighed) forest {
	f := forest{Title: "By label, " + w.name}
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
	row := forestRow{Name: name, Note: thousands(c.Count), Figure: digits(c.Top1)}
	if rival, ok := c.Baselines[rule]; ok {
		row.Marks = append(row.Marks, markOf("rule", rival.Measure))
		row.Figure += " vs " + digits(rival.Top1) + " " + rule
	}
	row.Marks = append(row.Marks, markOf("model", c.Measure))
	return row
}

// ablations puts the runs beside each other on every test that more than one of
// them took, with the best rule for comparison.
func ablations(p Page) []forest {
	var charts []forest
	for _, first := range p.Tests {
		if first.Run != p.mainRun() {
			continue
		}
		for _, w := range first.weighings() {
			f := forest{Title: first.Name + ", " + w.name}
			for _, t := range p.Tests {
				for _, other := range t.weighings() {
					if t.Name == first.Name && other.name == w.name {
						f.Rows = append(f.Rows, forestRow{
							Name: t.Run, Own: t.Run == first.Run,
							Marks: []mark{markOf("model", other.result.Measure)}, Figure: withSpan(other.result.Measure),
						})
					}
				}
			}
			if len(f.Rows) < 2 {
				continue
			}
			if rival, ok := w.result.Baselines[w.result.Best]; ok {
				f.Rows = append(f.Rows, forestRow{
					Name: w.result.Best, Note: "best rule", Marks: []mark{markOf("rule", rival.Measure)}, Figure: withSpan(rival.Measure),
				})
			}
			charts = append(charts, f)
		}
	}
	return charts
}

// digits writes a share in percent, span an interval of shares.
func digits(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) }

func span(i eval.Interval) string { return digits(i[0]) + " to " + digits(i[1]) }

func withSpan(m eval.Measure) string {
	return digits(m.Top1) + " (" + span(m.Top1Interval) + ")"
}
