package solve

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"caper/data"
)

// Candidate is one query that a generator wrote for a question.
type Candidate struct {
	data.Rollout
	// Style is the prompt style that the generator was asked in, "" where it has one.
	Style string
	// Repairs are what became of the generator's own query, oldest first.
	Repairs []Repair
}

// Repair is one step from a query that did not work to one that does.
type Repair struct {
	// Of is the query before it, State and Message what that came to.
	Of      string `json:"of"`
	State   State  `json:"state"`
	Message string `json:"message,omitempty"`
	// By is the operator that mended it, Note what it changed.
	By   string `json:"by"`
	Note string `json:"note,omitempty"`
}

// Group is the provenance group (sirius.md 2.5): generator and prompt style. A repair
// stays in that of its parent, so that it is no second opinion.
func (c *Candidate) Group() string { return c.Source + "\x00" + c.Style }

// candidateOf is a text as a candidate of nobody.
func candidateOf(query string) Candidate { return Candidate{Rollout: data.Rollout{SQL: query}} }

// Names of the extra fields of a candidate file.
const (
	styleField   = "style"
	repairsField = "repairs"
)

// newCandidate takes the candidate's own fields out of a rollout's extra ones. The
// others, verdicts perhaps, are left behind, and so is gold.
func newCandidate(r data.Rollout) (c Candidate, err error) {
	c.Rollout = r
	c.Extra, c.Gold = nil, ""
	for name, value := range map[string]any{styleField: &c.Style, repairsField: &c.Repairs} {
		if raw, ok := r.Extra[name]; ok {
			if err := json.Unmarshal(raw, value); err != nil {
				return c, fmt.Errorf("%s: %w", name, data.PlainJSONError(err))
			}
		}
	}
	return c, nil
}

// line is the candidate as a file holds it.
func (c *Candidate) line(fields map[string]any) (data.Rollout, error) {
	r := c.Rollout
	r.Extra = data.Extra{}
	all := map[string]any{}
	if c.Style != "" {
		all[styleField] = c.Style
	}
	if len(c.Repairs) > 0 {
		all[repairsField] = c.Repairs
	}
	for name, value := range fields {
		all[name] = value
	}
	for name, value := range all {
		text, err := data.Marshal(value)
		if err != nil {
			return r, fmt.Errorf("%s: %w", name, err)
		}
		r.Extra[name] = text
	}
	return r, nil
}

// Pool is a question with its candidates, sorted (NewPool).
type Pool struct {
	Question   data.Question
	Candidates []Candidate
}

// NewPool sorts candidates, so that nothing depends on the order in which they came,
// and keeps one of those that say the same: of one generator, style and sample, with
// one text.
func NewPool(q data.Question, candidates []Candidate) Pool {
	sorted := slices.Clone(candidates)
	slices.SortStableFunc(sorted, func(a, b Candidate) int { return a.compare(&b) })
	sorted = slices.CompactFunc(sorted, func(a, b Candidate) bool { return a.compare(&b) == 0 })
	return Pool{q, sorted}
}

func (c *Candidate) compare(d *Candidate) int {
	return cmp.Or(strings.Compare(c.Source, d.Source), strings.Compare(c.Style, d.Style), cmp.Compare(c.Sample, d.Sample),
		strings.Compare(c.SQL, d.SQL))
}

// questionKey tells questions apart.
type questionKey struct {
	id   data.QuestionID
	text string
}

// keys tells questions by id, and by their text too where ids repeat, as they
// do in one benchmark.
type keys map[data.QuestionID]int

func keysOf(pools []Pool) keys {
	k := keys{}
	for _, p := range pools {
		k[p.Question.ID]++
	}
	return k
}

func (k keys) of(id data.QuestionID, text string) questionKey {
	if k[id] == 1 {
		text = ""
	}
	return questionKey{id, text}
}

// Questions are a split's questions as pools without candidates, of the databases that
// keep chooses. They carry no gold.
func Questions(bench *data.Benchmark, split string, keep func(dbID string) bool) ([]Pool, error) {
	questions, err := bench.Questions(split)
	if err != nil {
		return nil, err
	}
	var pools []Pool
	for _, q := range questions {
		if keep(q.DBID) {
			q.Gold = ""
			pools = append(pools, Pool{Question: q})
		}
	}
	return pools, nil
}

// ReadPools reads candidate files, in any format of data.ReadRollouts, as the pools of
// a split's questions, in the split's order; questions without candidates are left
// out. keep chooses databases.
func ReadPools(paths []string, bench *data.Benchmark, split string, keep func(dbID string) bool) ([]Pool, error) {
	pools, err := Questions(bench, split, keep)
	if err != nil {
		return nil, err
	}
	if err := AddCandidates(pools, paths, bench, split); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(pools, func(p Pool) bool { return len(p.Candidates) == 0 }), nil
}

// AddCandidates adds those in files to pools; candidates for other questions are passed
// over.
func AddCandidates(pools []Pool, paths []string, bench *data.Benchmark, split string) error {
	keys := keysOf(pools)
	place := map[questionKey]int{}
	for i, p := range pools {
		place[keys.of(p.Question.ID, p.Question.Question)] = i
	}
	all := make([][]Candidate, len(pools))
	for _, path := range paths {
		for r, err := range data.ReadRollouts(path, bench, split) {
			if err != nil {
				return err
			}
			i, ok := place[keys.of(r.QuestionID, r.Question)]
			if !ok {
				continue
			}
			c, err := newCandidate(r)
			if err != nil {
				return fmt.Errorf("%s: question %s, source %q: %w", path, r.QuestionID, r.Source, err)
			}
			all[i] = append(all[i], c)
		}
	}
	for i := range pools {
		if len(all[i]) > 0 {
			pools[i] = NewPool(pools[i].Question, append(pools[i].Candidates, all[i]...))
		}
	}
	return nil
}
