package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"caper/data"
	"caper/eval"
	"caper/report/series"
	"caper/train/run"
)

// addPolicy adds the run folder of a policy.
func (p *Page) addPolicy(dir, name, config string) error {
	lines, _, err := series.NewReader(dir).Next()
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	policy := Policy{Name: name, Config: config, Lines: lines}
	texts, err := run.ReadMetrics[struct {
		Step   int
		Alarms []string
	}](dir)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	for _, l := range texts {
		for _, a := range l.Alarms {
			policy.Alarms = append(policy.Alarms, fmt.Sprintf("Step %s: %s", Thousands(l.Step), a))
		}
	}
	if policy.Groups, err = readGroups(filepath.Join(dir, "rollouts.jsonl")); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	p.Policies = append(p.Policies, policy)
	p.dateOf(dir)
	return nil
}

// summary says what the policy began with and was rewarded for.
func (p Policy) summary() string {
	var c struct {
		Model  struct{ Path string }
		Train  struct{ Bench string }
		Reward *struct{ Kind, Model string }
	}
	if err := toml.Unmarshal([]byte(p.Config), &c); err != nil || c.Model.Path == "" {
		return ""
	}
	text := fmt.Sprintf("A policy from the weights of %s, trained on %s", c.Model.Path, c.Train.Bench)
	if c.Reward != nil {
		text += ", reward: " + c.Reward.Kind
		if c.Reward.Model != "" {
			text += " (" + c.Reward.Model + ")"
		}
	}
	return text + "."
}

// sampledLine is a line of a policy's rollouts.jsonl.
type sampledLine struct {
	Step     int             `json:"step"`
	Question data.QuestionID `json:"question_id"`
	Database string          `json:"db_id"`
	Text     string          `json:"question"`
	Gold     string          `json:"gold"`
	SQL      string          `json:"sql"`
	Sample   int             `json:"sample"`
	Verdict  string          `json:"verdict"`
	Message  string          `json:"message"`
	Missing  string          `json:"missing"`
	Clauses  []struct {
		Text      string   `json:"text"`
		Score     *float64 `json:"score"`
		Advantage *float64 `json:"advantage"`
	} `json:"clauses"`
}

// readGroups reads the answers that a run wrote, none where it wrote none. The last line
// of a run under way may be cut short.
func readGroups(path string) ([]Group, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Group
	var before sampledLine
	n := 0
	for line := range strings.Lines(string(text)) {
		if n++; !strings.HasSuffix(line, "\n") {
			break
		}
		var l sampledLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, data.PlainJSONError(err))
		}
		if len(all) == 0 || l.Step != before.Step || l.Question != before.Question || l.Sample <= before.Sample {
			all = append(all, Group{Step: l.Step, Question: l.Text, DBID: l.Database, Gold: l.Gold})
		}
		g := &all[len(all)-1]
		g.Answers = append(g.Answers, l.answer())
		before = l
	}
	return all, nil
}

func (l sampledLine) answer() Sampled {
	a := Sampled{Sample: l.Sample, Verdict: l.Verdict, Message: l.Message, SQL: l.SQL}
	if l.Missing != "" {
		a.Verdict, a.Message = "no reward", l.Missing
	}
	for _, c := range l.Clauses {
		a.Clauses = append(a.Clauses, RewardedClause(c))
	}
	return a
}

// addVerdicts reads RUN=FILE.
func (p *Page) addVerdicts(given string) error {
	name, path, named := strings.Cut(given, "=")
	if !named {
		return fmt.Errorf("report: verdicts %q: want RUN=FILE, RUN one of the run folders", given)
	}
	i := slices.IndexFunc(p.Policies, func(policy Policy) bool { return policy.Name == name })
	if i < 0 {
		return fmt.Errorf("report: verdicts %q: there is no policy run %q", given, name)
	}
	sources, err := eval.ReadVerdicts(path)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if len(sources) != 1 {
		return fmt.Errorf("report: %s: answers of %d sources: want those of one run", path, len(sources))
	}
	for _, v := range sources {
		p.Policies[i].Verdicts = v
	}
	return nil
}
