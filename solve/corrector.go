package solve

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"caper/data"
	"caper/model/remote"
)

// Corrector asks a model server to mend what the operators could not, and to start anew
// where a pool has collapsed.
type Corrector struct {
	Server   *remote.Server
	Prompter *Prompter
	Style    Style
	// Samples is how many queries a recovery asks for.
	Samples int
	// Untyped asks for a correction in the same words whatever went wrong: an ablation.
	Untyped bool
}

// Correct asks for a query in the place of one that does not work; "" where none
// comes.
func (c *Corrector) Correct(ctx context.Context, q data.Question, x *Examined, diagnosis []string) (string, Cost, error) {
	return c.ask(ctx, q, fmt.Sprintf("This query does not work:\n%s\n\n%s", strings.TrimSpace(x.SQL), c.complaint(x, diagnosis)))
}

// complaint says what went wrong: an error in the engine's own words.
func (c *Corrector) complaint(x *Examined, facts []string) string {
	diagnosis := ""
	if len(facts) > 0 {
		diagnosis = " Found: " + strings.Join(facts, "; ") + "."
	}
	switch {
	case c.Untyped:
		return "Correct it."
	case x.State == TimedOut:
		return fmt.Sprintf("It runs too long: %s.%s Write an equivalent query that runs fast: no sub-query for each row, joins by keys.", x.Message, diagnosis)
	case x.State == Empty:
		return "It returns no rows." + diagnosis + " Correct the condition or the join that keeps all rows out."
	case x.State == Degenerate:
		return "It returns only NULL or 0." + diagnosis + " Correct the condition or the join that keeps the rows out."
	}
	return fmt.Sprintf("SQLite says: %s%s", x.Message, diagnosis)
}

// ask puts a complaint behind the question's prompt.
func (c *Corrector) ask(ctx context.Context, q data.Question, complaint string) (string, Cost, error) {
	answers, cost, err := c.sample(ctx, q, complaint, 1, 0)
	if err != nil || len(answers) == 0 {
		return "", cost, err
	}
	return answers[0], cost, nil
}

func (c *Corrector) sample(ctx context.Context, q data.Question, complaint string, n int, temperature float64) ([]string, Cost, error) {
	prompt, err := c.Prompter.Text(ctx, q, c.Style)
	if err != nil {
		return nil, Cost{}, err
	}
	answers, spent, err := c.Server.Ask(ctx, remote.Call{
		Messages: []remote.Message{{Role: "user", Content: prompt + "\n" + complaint + "\n" + instruction}}, N: n, Temperature: temperature, MaxTokens: 2048,
	})
	var cost Cost
	cost.addCalls(spent)
	if errors.As(err, new(*remote.CallError)) {
		return nil, cost, nil
	}
	var queries []string
	for _, a := range answers {
		if query := ExtractSQL(a); query != "" {
			queries = append(queries, query)
		}
	}
	return queries, cost, err
}

// recoverySource is the generator of recovered candidates: one provenance group.
const recoverySource = "recovery"

// maxFacts is how many failures a recovery is told.
const maxFacts = 10

// Recover asks for new queries, warned by what failed.
func (c *Corrector) Recover(ctx context.Context, q data.Question, failed []Examined) ([]Candidate, Cost, error) {
	var facts strings.Builder
	for i := range failed[:min(len(failed), maxFacts)] {
		x := &failed[i]
		fmt.Fprintf(&facts, "- %s %s: %s\n", x.State, x.Message, cellText(oneLine(x.SQL)))
	}
	queries, cost, err := c.sample(ctx, q, "These attempts failed; avoid their mistakes:\n"+facts.String(), c.Samples, 0.8)
	d := Draw{Name: recoverySource, Style: c.Style}
	return d.candidates(q, queries, func(s string) string { return s }), cost, err
}
