package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"caper/eval"
	"caper/report/series"
	"caper/sql"
)

// Policy is the training of a policy: by demonstration (sft) or by reward (grpo, dapo).
type Policy struct {
	// Name is what the run is called everywhere on the page, Note what sets it apart.
	Name, Note string
	// Config is its config.toml.
	Config string
	Lines  []series.Line
	// Alarms are what the run warned of, by step.
	Alarms []string
	// Verdicts of its answers to a test; nil where there are none.
	Verdicts *eval.Verdicts
	Groups   []Group
}

// Group is a question with the answers sampled for it.
type Group struct {
	Step                 int
	Question, DBID, Gold string
	Answers              []Sampled
}

// Sampled is one answer. SQL is the whole of it where it has no clauses.
type Sampled struct {
	Sample                int
	Verdict, Message, SQL string
	Clauses               []RewardedClause
}

// RewardedClause is a clause with the probability that a reward model gives it and the
// advantage of its tokens; nil where there is none.
type RewardedClause struct {
	Text             string
	Score, Advantage *float64
}

// policyView is what the page shows of policies.
type policyView struct {
	Title, About string
	Legend       []legendEntry
	Judged       []forest
	Curves       []curve
	Table        grid
	Alone        []alone
	Sampled      *sampledView
}

// alone is what is shown of each policy by itself: parts of a whole.
type alone struct {
	Name, Note string
	Alarms     []string
	Curves     []curve
	Groups     []histogram
	Phases     bars
}

// policyMetric is a curve with the field that it shows, and one that must not be 0 for it
// to mean anything, if there is such a one.
type policyMetric struct {
	metric
	field, when string
}

var policyMetrics = []policyMetric{
	{metric{title: "Validation: execution accuracy, %", share: true, dotted: true}, "validation_ex", ""},
	{metric{title: "Samples whose result is right, %", share: true}, "ex", ""},
	{metric{title: "Mean reward of a sample"}, "reward", ""},
	{metric{title: "Loss"}, "loss", ""},
	{metric{title: "Entropy, nats a token"}, "entropy", ""},
	{metric{title: "KL to the reference"}, "kl", ""},
	{metric{title: "KL from sampler to trainer"}, "sampler_trainer_kl", ""},
	{metric{title: "Tokens past a clip bound, %", share: true}, "clip_share", ""},
	{metric{title: "Standard deviation of advantages"}, "advantage_std", ""},
	{metric{title: "Gradient norm"}, "grad_norm", ""},
	{metric{title: "Tokens of an answer"}, "length", ""},
	{metric{title: "Clauses of a query"}, "agreement/clauses", ""},
	{metric{title: "Reward model against execution: AUC, %", bounds: [2]float64{0.5, 1}, share: true}, "agreement/auc", "agreement/defined"},
	{metric{title: "Time waited for execution and scores, %", share: true}, "waited", ""},
}

// trainedPolicies makes the section on policies; nil without any.
func trainedPolicies(all []Policy) *policyView {
	if len(all) == 0 {
		return nil
	}
	t := &policyView{Title: "Policy", About: "A policy learns to write the queries of examples."}
	if slices.ContainsFunc(all, Policy.samples) {
		t.About = "A policy samples answers; execution and, where there is one, the reward model judge them; what earned more becomes likelier."
	}
	if len(all) > 1 {
		t.Title = "Policies"
	}
	var names []string
	for i, p := range all {
		names = append(names, p.Name)
		t.Legend = append(t.Legend, legendEntry{i % seriesStyles, p.Name, p.Note})
		t.Alone = append(t.Alone, p.alone())
	}
	for _, m := range policyMetrics {
		lines := make([][]point, len(all))
		for i, p := range all {
			lines[i] = m.points(p.Lines)
		}
		if anyPoints(lines) {
			t.Curves = append(t.Curves, m.draw(names, lines, true))
		}
	}
	t.Table = policyTable(all)
	t.Judged = judgedPolicies(all)
	t.Sampled = sampledGroups(all)
	return t
}

// samples tells a policy trained by reward.
func (p Policy) samples() bool { return len(values(p.Lines, "samples")) > 0 }

func (m policyMetric) points(lines []series.Line) []point {
	var points []point
	for _, l := range lines {
		y, ok := l.Value(m.field)
		if m.when != "" && ok {
			defined, _ := l.Value(m.when)
			ok = defined != 0
		}
		if ok {
			best, _ := l.Value("best")
			points = m.add(points, l.Step, y, best == 1)
		}
	}
	return points
}

func (p Policy) alone() alone {
	a := alone{Name: p.Name, Note: p.Note, Alarms: p.Alarms, Groups: groupOutcomes(p.Lines), Phases: phases(p.Lines)}
	for _, c := range []*curve{
		breakdown(metric{title: "Mean score of clauses, by kind, %", bounds: [2]float64{0, 1}, share: true}, p.Lines, "clause_scores", false),
		breakdown(metric{title: "Samples by outcome, %", bounds: [2]float64{0, 1}, share: true}, p.Lines, "outcomes", true),
	} {
		if c != nil {
			a.Curves = append(a.Curves, *c)
		}
	}
	return a
}

// breakdown draws the parts of a field as a line each, those that most lines have; as
// shares of their sum, where a part that is missing is none, or as they are.
func breakdown(m metric, lines []series.Line, field string, shares bool) *curve {
	seen := map[string]int{}
	for _, l := range lines {
		for part := range l.Parts(field) {
			seen[part]++
		}
	}
	names := mostSeen(seen)
	if len(names) == 0 {
		return nil
	}
	drawn := make([][]point, len(names))
	for _, l := range lines {
		all, sum := l.Parts(field), 0.0
		for _, n := range all {
			sum += n
		}
		for i, name := range names {
			n, ok := all[name]
			if shares && sum > 0 {
				n, ok = n/sum, true
			}
			if ok {
				drawn[i] = m.add(drawn[i], l.Step, n, false)
			}
		}
	}
	c := m.draw(names, drawn, false)
	for i, name := range names {
		c.Legend = append(c.Legend, legendEntry{Series: i, Name: name})
	}
	return &c
}

// mostSeen returns the names seen most often, as many as there are line styles; clauses in
// the order of a query.
func mostSeen(seen map[string]int) []string {
	var names []string
	for name := range seen {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(seen[b], seen[a]), cmp.Compare(sql.ClauseKind(a).Rank(), sql.ClauseKind(b).Rank()), strings.Compare(a, b))
	})
	names = names[:min(len(names), seriesStyles)]
	slices.SortStableFunc(names, func(a, b string) int { return sql.ClauseKind(a).Rank() - sql.ClauseKind(b).Rank() })
	return names
}

// groupOutcomes counts groups by their right samples, in the first and the last fifth of
// the steps.
func groupOutcomes(lines []series.Line) []histogram {
	var all [][]float64
	for _, l := range lines {
		for _, c := range l.Counts {
			if c.Name == "group_outcomes" {
				all = append(all, c.Counts)
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	places := 0
	for _, counts := range all {
		places = max(places, len(counts))
	}
	fifth := max(1, len(all)/5)
	return []histogram{
		outcomeHistogram(fmt.Sprintf("the first %s steps", Thousands(fifth)), places, all[:fifth]),
		outcomeHistogram(fmt.Sprintf("the last %s", Thousands(fifth)), places, all[len(all)-fifth:]),
	}
}

func outcomeHistogram(title string, places int, all [][]float64) histogram {
	h := histogram{Title: title, Ends: []string{"none", fmt.Sprint(places - 1)}}
	sums := make([]float64, places)
	for _, counts := range all {
		for i, n := range counts {
			sums[i] += n
		}
	}
	fullest := max(slices.Max(sums), 1)
	for i, n := range sums {
		b := bin{Share: 100 * n / fullest, Range: fmt.Sprintf("%d right", i)}
		if n > 0 {
			b.Label = Thousands(int(n))
		}
		h.Bins = append(h.Bins, b)
	}
	return h
}

// phases is the mean time of a step's parts.
func phases(lines []series.Line) bars {
	sums, n := map[string]float64{}, 0
	for _, l := range lines {
		seconds := l.Parts("seconds")
		for name, s := range seconds {
			sums[name] += s
		}
		if len(seconds) > 0 {
			n++
		}
	}
	b := bars{Title: "Mean time of a step's parts, which overlap"}
	var names []string
	for name := range sums {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), strings.Compare(a, b))
	})
	var values []float64
	for _, name := range names {
		mean := sums[name] / float64(n)
		b.Rows = append(b.Rows, bar{Name: name, Label: fmt.Sprintf("%.3g s", mean)})
		values = append(values, mean)
	}
	return b.scaled(values)
}
