package eval

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"caper/data"
	"caper/eval/exactmatch"
	"caper/sqlexec"
)

// verdictCounts counts candidates by verdict.
type verdictCounts struct {
	Count    int             `json:"count"`
	Verdicts map[Verdict]int `json:"verdicts"`
	// GoldProblems counts candidates whose gold could not be used, DatabaseProblems
	// those whose database could not.
	GoldProblems     int `json:"gold_problems"`
	DatabaseProblems int `json:"database_problems"`
	// Disagree counts the verdicts that the strict rule does not share, Quirks what
	// is behind them, when they were explained.
	Disagree int                   `json:"strict_disagrees"`
	Quirks   map[sqlexec.Quirk]int `json:"quirks,omitempty"`

	// The first gold problem's message, and each damaged database's.
	goldMessage      string
	databaseMessages map[string]string
}

func newVerdictCounts() verdictCounts {
	return verdictCounts{Verdicts: map[Verdict]int{}, Quirks: map[sqlexec.Quirk]int{}, databaseMessages: map[string]string{}}
}

// add counts the verdict on one more candidate.
func (c *verdictCounts) add(r data.Rollout, verdict, strict Verdict, quirks sqlexec.Quirks, message string) {
	c.Count++
	c.Verdicts[verdict]++
	if strict != verdict {
		c.Disagree++
	}
	for _, q := range quirks {
		c.Quirks[q]++
	}
	switch {
	case verdict.ofGold():
		c.GoldProblems++
		if c.goldMessage == "" {
			c.goldMessage = fmt.Sprintf("question %s: %s", r.QuestionID, message)
		}
	case verdict == DatabaseFailed:
		c.DatabaseProblems++
		c.databaseMessages[r.DBID] = message
	}
}

// judged counts the candidates that could be judged.
func (c *verdictCounts) judged() int { return c.Count - c.GoldProblems - c.DatabaseProblems }

// writeDatabases says which databases could not be used.
func (c *verdictCounts) writeDatabases(out *strings.Builder) {
	if c.DatabaseProblems == 0 {
		return
	}
	fmt.Fprintf(out, "  %d candidates are about databases that cannot be used, and count as not correct\n", c.DatabaseProblems)
	for _, id := range slices.Sorted(maps.Keys(c.databaseMessages)) {
		fmt.Fprintf(out, "    %s: %s\n", id, c.databaseMessages[id])
	}
}

// ExecutionSummary adds up execution verdicts.
type ExecutionSummary struct {
	Rule Rule `json:"rule"`
	// Accuracy is the share of correct ones among all (EX).
	Accuracy float64 `json:"ex"`
	verdictCounts
	// Judged is the share of correct ones among those whose gold runs, on a database
	// that can be used.
	Judged float64 `json:"ex_where_gold_runs"`
	*Groups
}

// NewExecutionSummary returns one without candidates.
func NewExecutionSummary(rule Rule, groups *Groups) *ExecutionSummary {
	return &ExecutionSummary{Rule: rule, Groups: groups, verdictCounts: newVerdictCounts()}
}

// Add counts one more candidate.
func (s *ExecutionSummary) Add(j Judged) {
	s.add(j.Rollout, j.Verdict, j.Strict, j.Quirks, j.Message)
	s.Accuracy = share(s.Verdicts[Correct], s.Count)
	s.Judged = share(s.Verdicts[Correct], s.judged())
	s.Groups.Add(j.Rollout, score(j.Verdict))
}

func score(v Verdict) float64 {
	if v == Correct {
		return 1
	}
	return 0
}

func share(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// String is the summary for people.
func (s *ExecutionSummary) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "EX %.2f %% of %d (rule %s)\n", 100*s.Accuracy, s.Count, s.Rule)
	for _, verdict := range slices.Sorted(maps.Keys(s.Verdicts)) {
		fmt.Fprintf(&out, "  %-14s %d\n", verdict, s.Verdicts[verdict])
	}
	if s.GoldProblems > 0 {
		fmt.Fprintf(&out, "  gold is at fault for %d candidates, which count as not correct; the first: %s\n", s.GoldProblems, s.goldMessage)
	}
	s.writeDatabases(&out)
	if s.judged() < s.Count {
		fmt.Fprintf(&out, "  EX of the others %.2f %%\n", 100*s.Judged)
	}
	if s.Rule != Strict {
		fmt.Fprintf(&out, "  the strict rule disagrees on %d\n", s.Disagree)
	}
	writeQuirks(&out, s.Quirks)
	out.WriteString(s.Groups.String())
	return out.String()
}

func writeQuirks(out *strings.Builder, quirks map[sqlexec.Quirk]int) {
	for _, q := range slices.Sorted(maps.Keys(quirks)) {
		fmt.Fprintf(out, "    %-24s %5d  %s\n", q, quirks[q], Reason(q))
	}
}

// MatchSummary adds up exact-match verdicts.
type MatchSummary struct {
	Accuracy float64 `json:"em"`
	verdictCounts
	Levels map[exactmatch.Hardness]emLevel `json:"levels"`
	*Groups

	report *exactmatch.Report
}

type emLevel struct {
	Count int                              `json:"count"`
	Exact float64                          `json:"exact"`
	Parts map[string]exactmatch.PartReport `json:"parts"`
}

// NewMatchSummary returns one without candidates.
func NewMatchSummary(groups *Groups) *MatchSummary {
	return &MatchSummary{Groups: groups, verdictCounts: newVerdictCounts(), report: exactmatch.NewReport()}
}

// Add counts one more candidate. One that could not be judged is not in the table.
func (s *MatchSummary) Add(m Matched) {
	s.add(m.Rollout, m.Verdict, m.Strict, m.Quirks, m.Message)
	if m.Verdict.isJudgement() {
		s.report.Add(m.Hardness, m.Score)
	}
	s.Accuracy = share(s.Verdicts[Correct], s.Count)
	s.Groups.Add(m.Rollout, score(m.Verdict))
}

// Finish fills in the means by level.
func (s *MatchSummary) Finish() {
	s.Levels = map[exactmatch.Hardness]emLevel{}
	for level, l := range s.report.Levels {
		parts := map[string]exactmatch.PartReport{}
		for i, name := range exactmatch.PartNames {
			parts[name] = l.Part(i)
		}
		s.Levels[level] = emLevel{l.Count, l.Share(), parts}
	}
}

// String is the official script's table, and what it does not say.
func (s *MatchSummary) String() string {
	var out strings.Builder
	out.WriteString(s.report.String() + "\n")
	fmt.Fprintf(&out, "EM %.2f %% of %d\n", 100*s.Accuracy, s.Count)
	fmt.Fprintf(&out, "  the parser cannot read %d of the predictions\n", s.Verdicts[Failed])
	if s.GoldProblems > 0 {
		fmt.Fprintf(&out, "  nor gold of %d, which count as not correct; the first: %s\n", s.GoldProblems, s.goldMessage)
	}
	s.writeDatabases(&out)
	fmt.Fprintf(&out, "  with nothing overlooked, %d verdicts are others\n", s.Disagree)
	writeQuirks(&out, s.Quirks)
	out.WriteString(s.Groups.String())
	return out.String()
}

// MeanSummary is the mean of a score over candidates, with the share of correct ones.
type MeanSummary struct {
	key, title string
	sum        float64
	median     *float64 // sum of what the medians of the times give
	counts     verdictCounts
	groups     *Groups
}

// NewMeanSummary returns one of a score with its names in JSON and for people.
func NewMeanSummary(key, title string, groups *Groups) *MeanSummary {
	return &MeanSummary{key: key, title: title, counts: newVerdictCounts(), groups: groups}
}

// Add counts one more candidate.
func (s *MeanSummary) Add(j Judged, value float64) {
	s.counts.add(j.Rollout, j.Verdict, j.Strict, nil, j.Message)
	s.sum += value
	s.groups.Add(j.Rollout, value)
}

// AddMedian counts the value that the median of the candidate's time ratios gives.
func (s *MeanSummary) AddMedian(value float64) {
	if s.median == nil {
		s.median = new(float64)
	}
	*s.median += value
}

func (s *MeanSummary) mean(sum float64) float64 {
	if s.counts.Count == 0 {
		return 0
	}
	return 100 * sum / float64(s.counts.Count)
}

// MarshalJSON names the score by its key; in percent, as the official scripts do.
func (s *MeanSummary) MarshalJSON() ([]byte, error) {
	fields := map[string]any{
		s.key: s.mean(s.sum), "count": s.counts.Count, "ex": share(s.counts.Verdicts[Correct], s.counts.Count),
		"verdicts": s.counts.Verdicts, "groups": s.groups,
	}
	if s.median != nil {
		fields[s.key+"_median"] = s.mean(*s.median)
	}
	return json.Marshal(fields)
}

// String is the summary for people.
func (s *MeanSummary) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s %.2f of %d; EX %.2f %% (rule bird)\n", s.title, s.mean(s.sum), s.counts.Count, 100*share(s.counts.Verdicts[Correct], s.counts.Count))
	if s.median != nil {
		fmt.Fprintf(&out, "  from the median of each query's times %.2f\n", s.mean(*s.median))
	}
	for _, verdict := range slices.Sorted(maps.Keys(s.counts.Verdicts)) {
		fmt.Fprintf(&out, "  %-14s %d\n", verdict, s.counts.Verdicts[verdict])
	}
	s.counts.writeDatabases(&out)
	out.WriteString(s.groups.String())
	return out.String()
}
