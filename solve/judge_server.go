package solve

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"caper/data"
	"caper/model/remote"
	"caper/sqlexec"
)

// ServerJudge asks a model server which of two queries answers the question, and shows
// it both results. Each pair is asked about in both orders. A call that fails, or an
// answer that names neither, is a tie.
type ServerJudge struct {
	Server *remote.Server
	// Prompt gives the schema with the question; data.Benchmark.Prompt is one.
	Prompt func(data.Question) (string, error)
}

// shownRows is how much of a result the judge sees.
const shownRows = 10

// Compare implements Judge.
func (j *ServerJudge) Compare(ctx context.Context, q data.Question, candidates []*Examined) ([]float64, Cost, error) {
	var cost Cost
	prompt, err := j.Prompt(q)
	if err != nil {
		return nil, cost, fmt.Errorf("question %s: %w", q.ID, err)
	}
	scores, err := roundRobin(len(candidates), func(a, b int) (float64, error) {
		text := fmt.Sprintf("%s\n%s\n%s\nWhich query answers the question? Reply with one word: A, B or TIE.",
			prompt, shown("A", candidates[a]), shown("B", candidates[b]))
		answers, spent, err := j.Server.Ask(ctx, remote.Call{
			Messages: []remote.Message{{Role: "system", Content: "You compare two SQLite queries for one question."}, {Role: "user", Content: text}},
			N:        1, MaxTokens: 2048,
		})
		cost.addCalls(spent)
		switch {
		case err == nil:
			return readPreference(answers[0]), nil
		case errors.As(err, new(*remote.CallError)):
			return tied, nil
		}
		return tied, err
	})
	return scores, cost, err
}

// shown is a candidate as the judge sees it.
func shown(name string, x *Examined) string {
	var out strings.Builder
	fmt.Fprintf(&out, "Query %s:\n%s\nResult %s", name, strings.TrimSpace(x.SQL), name)
	if x.Result == nil {
		out.WriteString(": none\n")
		return out.String()
	}
	fmt.Fprintf(&out, " (%s):\n%s\n", amount(len(x.Result.Rows), "row"), strings.Join(x.Result.Columns, " | "))
	for _, row := range x.Result.Rows[:min(len(x.Result.Rows), shownRows)] {
		cells := make([]string, len(row))
		for i, v := range row {
			cells[i] = cellText(v)
		}
		out.WriteString(strings.Join(cells, " | ") + "\n")
	}
	return out.String()
}

// cellText is a value in a prompt, cut where it is long.
func cellText(v sqlexec.Value) string {
	const most = 100
	text := ""
	switch v := v.(type) {
	case nil:
		return "NULL"
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		text = oneLine(v)
	case []byte:
		return fmt.Sprintf("%d bytes", len(v))
	}
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

var verdict = regexp.MustCompile(`\b(A|B|TIE|Tie|tie)\b`)

// readPreference reads the last verdict in an answer: 1 for A, 0 for B, a tie for
// anything else.
func readPreference(text string) float64 {
	words := verdict.FindAllString(thoughts.ReplaceAllString(text, ""), -1)
	if len(words) == 0 {
		return tied
	}
	switch words[len(words)-1] {
	case "A":
		return 1
	case "B":
		return 0
	}
	return tied
}
