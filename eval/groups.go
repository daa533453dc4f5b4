package eval

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"caper/data"
	"caper/eval/exactmatch"
)

// Tally is the mean score of a group of candidates.
type Tally struct {
	Count int     `json:"count"`
	Score float64 `json:"score"`
}

func (t *Tally) add(score float64) {
	t.Count++
	t.Score += (score - t.Score) / float64(t.Count)
}

// Groups holds mean scores by property of the question and by source. Hardness is
// Spider's, computed from gold; "unknown" where its parser cannot read gold. Where
// the benchmark gives a difficulty that takes hardness's place.
type Groups struct {
	ByHardness   map[string]*Tally `json:"by_hardness,omitempty"`
	ByDifficulty map[string]*Tally `json:"by_difficulty,omitempty"`
	ByDatabase   map[string]*Tally `json:"by_database"`
	BySource     map[string]*Tally `json:"by_source"`
	// Missing counts the questions without a candidate, for each source.
	Missing map[string]int `json:"missing"`
	// Repeated counts candidates beyond a source's first for a question.
	Repeated int `json:"repeated"`
	// OtherGold counts candidates that came with another gold query than the question's,
	// NotText those that were no text.
	OtherGold int `json:"other_gold"`
	NotText   int `json:"not_text"`

	schemas    *Schemas
	difficulty map[questionKey]string
	hardness   map[goldKey]string
	answered   map[string]map[questionKey]bool // by source
}

// questionKey tells questions apart; ids alone do not in every benchmark.
type questionKey struct{ id, db, text string }

func keyOf(r data.Rollout) questionKey { return questionKey{r.QuestionID.String(), r.DBID, r.Question} }

// NewGroups prepares groups of candidates for some questions of a benchmark.
func NewGroups(questions []data.Question, schemas *Schemas) *Groups {
	g := &Groups{
		ByHardness: map[string]*Tally{}, ByDifficulty: map[string]*Tally{}, ByDatabase: map[string]*Tally{}, BySource: map[string]*Tally{},
		Missing: map[string]int{}, schemas: schemas,
		difficulty: map[questionKey]string{}, hardness: map[goldKey]string{}, answered: map[string]map[questionKey]bool{},
	}
	for _, q := range questions {
		g.difficulty[questionKey{q.ID.String(), q.DBID, q.Question}] = q.Difficulty
	}
	return g
}

// Add counts one candidate.
func (g *Groups) Add(r data.Rollout, score float64) {
	key := keyOf(r)
	if difficulty := g.difficulty[key]; difficulty != "" {
		add(g.ByDifficulty, difficulty, score)
	} else {
		add(g.ByHardness, g.hardnessOf(r), score)
	}
	add(g.ByDatabase, r.DBID, score)
	add(g.BySource, r.Source, score)
	if r.Extra[data.OtherGold] != nil {
		g.OtherGold++
	}
	if r.Extra[data.NotText] != nil {
		g.NotText++
	}
	if g.answered[r.Source] == nil {
		g.answered[r.Source] = map[questionKey]bool{}
		g.Missing[r.Source] = len(g.difficulty)
	}
	if g.answered[r.Source][key] {
		g.Repeated++
		return
	}
	g.answered[r.Source][key] = true
	g.Missing[r.Source]--
}

func add(groups map[string]*Tally, name string, score float64) {
	if groups[name] == nil {
		groups[name] = &Tally{}
	}
	groups[name].add(score)
}

// goldKey names a gold query; several questions may have the same.
type goldKey struct{ db, gold string }

func (g *Groups) hardnessOf(r data.Rollout) string {
	key := goldKey{r.DBID, r.Gold}
	if known := g.hardness[key]; known != "" {
		return known
	}
	level := "unknown"
	if schema, err := g.schemas.Get(r.DBID); err == nil {
		if gold, err := exactmatch.TestSuite.Parse(schema, r.Gold); err == nil {
			level = string(gold.Hardness())
		}
	}
	g.hardness[key] = level
	return level
}

// order of the groups whose names have one.
var order = []string{"easy", "medium", "hard", "extra", "unknown", "simple", "moderate", "challenging"}

// String is a table for people: scores in percent, and what is missing.
func (g *Groups) String() string {
	var out strings.Builder
	for _, block := range []struct {
		title  string
		groups map[string]*Tally
	}{{"hardness", g.ByHardness}, {"difficulty", g.ByDifficulty}, {"database", g.ByDatabase}, {"source", g.BySource}} {
		if len(block.groups) == 0 || block.title == "source" && len(block.groups) == 1 {
			continue
		}
		names := slices.SortedFunc(maps.Keys(block.groups), func(a, b string) int {
			if i, j := slices.Index(order, a), slices.Index(order, b); i != j {
				return i - j
			}
			return strings.Compare(a, b)
		})
		fmt.Fprintf(&out, "  by %s\n", block.title)
		for _, name := range names {
			t := block.groups[name]
			fmt.Fprintf(&out, "    %-32s %6.2f %% of %d\n", name, 100*t.Score, t.Count)
		}
	}
	for _, source := range slices.Sorted(maps.Keys(g.Missing)) {
		if n := g.Missing[source]; n > 0 {
			fmt.Fprintf(&out, "  %s has no prediction for %d of %d questions; they are not counted\n", source, n, len(g.difficulty))
		}
	}
	if g.Repeated > 0 {
		fmt.Fprintf(&out, "  %d candidates are further ones for a question of the same source, and count like the first\n", g.Repeated)
	}
	if g.OtherGold > 0 {
		fmt.Fprintf(&out, "  %d candidates came with another gold query than the benchmark's (%s in the verdict file), which was not used\n", g.OtherGold, data.OtherGold)
	}
	if g.NotText > 0 {
		fmt.Fprintf(&out, "  %d candidates were no texts (%s in the verdict file), and count as empty\n", g.NotText, data.NotText)
	}
	return out.String()
}
