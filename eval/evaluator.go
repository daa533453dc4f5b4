package eval

import (
	"fmt"
	"slices"

	"caper/eval/exactmatch"
	"caper/sqlexec"
)

// Evaluator says what a verdict was given by. Verdicts can be compared where it is the
// same.
type Evaluator struct {
	Metric string `json:"metric"` // ex, em, softf1, ves or rves
	// Rule is that of the execution, or the script of an exact match.
	Rule string `json:"rule"`
	// Without are the quirks of the rule that were left out, in order.
	Without sqlexec.Quirks `json:"without,omitempty"`
}

func newEvaluator(metric string, rule string, without sqlexec.Quirks) Evaluator {
	return Evaluator{metric, rule, slices.Sorted(slices.Values(without))}
}

// Evaluator is what Execute judges by.
func (o ExecutionOptions) Evaluator() Evaluator {
	return newEvaluator("ex", string(o.Rule), o.Without)
}

// Evaluator is what MatchExactly judges by.
func (o MatchOptions) Evaluator() Evaluator {
	return newEvaluator("em", string(o.Script), o.Without)
}

// Evaluator is what MeasureEfficiency judges by.
func (o EfficiencyOptions) Evaluator() Evaluator {
	return newEvaluator(string(o.Score), string(Bird), nil)
}

// check refuses what this program does not have.
func (e Evaluator) check() error {
	rules := []string{string(Bird)}
	switch e.Metric {
	case "ex":
		rules = []string{string(Spider), string(TestSuite), string(Bird), string(Strict)}
	case "em":
		rules = []string{string(exactmatch.Spider), string(exactmatch.TestSuite), string(exactmatch.First)}
	case "softf1", string(VES), string(RVES):
	case "":
		return fmt.Errorf("metric: missing: judge the predictions anew, or name the benchmark with --bench")
	default:
		return fmt.Errorf("metric: %q: want ex, em, softf1, ves or rves", e.Metric)
	}
	if !slices.Contains(rules, e.Rule) {
		return fmt.Errorf("rule: %q: want one of %q", e.Rule, rules)
	}
	return nil
}

// fields are those of a line in a verdict file.
func (e Evaluator) fields() map[string]any {
	fields := map[string]any{"metric": e.Metric, "rule": e.Rule}
	if len(e.Without) > 0 {
		fields["without"] = e.Without
	}
	return fields
}

func (e Evaluator) equal(other Evaluator) bool {
	return e.Metric == other.Metric && e.Rule == other.Rule && slices.Equal(e.Without, other.Without)
}

// String is the evaluator for people, as in "ex by the rule bird".
func (e Evaluator) String() string {
	word := "rule"
	if e.Metric == "em" {
		word = "script"
	}
	text := fmt.Sprintf("%s by the %s %s", e.Metric, word, e.Rule)
	if len(e.Without) > 0 {
		text += fmt.Sprintf(" without %v", e.Without)
	}
	return text
}
