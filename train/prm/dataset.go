package prm

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"caper/data"
	"caper/engine"
	"caper/model"
	"caper/sql"
	"caper/train/run"
)

// question is all that a run trains on for one prompt: its pairs share the prompt
// and most of their prefixes, so they go into one packed tree, computed once.
type question struct {
	db     string
	prompt []int32
	pairs  []pair
	// correct is a whole correct query with its end, for the next-token loss. That is
	// over predictions tokens: each is predicted once however many of the question's
	// correct queries begin with it. correct predicts from its token number correctFrom
	// on, counted with the prompt, and a pair's chosen query from chosenFrom on.
	correct     []int32
	correctFrom int
	predictions int
}

// pair is one preference: two continuations of the prompt that end at the scored
// tokens, and delta, the margin.
type pair struct {
	chosen, rejected []int32
	margin           float64
	// wrong is the whole rejected query with its end, for the contrast between its
	// clauses: scored at marks, of which number faulty belongs to the clause that
	// holds the root cause. Empty without that term, and for enclosing clauses.
	wrong  []int32
	marks  []int32
	faulty int

	chosenFrom int // see question.correct
}

// assignPredictions gives each token of the question's correct queries to the first of
// them, in sorted order, that has it.
func (q *question) assignPredictions() {
	type query struct {
		tokens []int32
		from   *int
	}
	var queries []query
	for i := range q.pairs {
		queries = append(queries, query{q.pairs[i].chosen, &q.pairs[i].chosenFrom})
	}
	if q.correct != nil {
		queries = append(queries, query{q.correct, &q.correctFrom})
	}
	slices.SortStableFunc(queries, func(a, b query) int { return slices.Compare(a.tokens, b.tokens) })
	q.predictions = 0
	for i, s := range queries {
		*s.from = 0
		if i > 0 {
			shared := len(q.prompt)
			for k, id := range queries[i-1].tokens {
				if k == len(s.tokens) || s.tokens[k] != id {
					break
				}
				shared++
			}
			*s.from = max(0, shared-1) // the last shared token predicts another one here
		}
		q.predictions += len(q.prompt) + len(s.tokens) - 1 - *s.from
	}
}

// dataset is the training questions, in the order of their first tuples.
type dataset struct {
	questions []question
	// tooLong counts pairs left out because a sequence passed the length limit.
	tooLong int
	pairs   int
}

// passes goes through the questions, as many pairs a step as train.batch_pairs says.
func (d *dataset) passes(at *run.Position, c Training) *run.Passes {
	var sizes []int
	for i := range d.questions {
		sizes = append(sizes, len(d.questions[i].pairs))
	}
	return run.NewPasses(at, c.Seed, sizes, c.BatchPairs)
}

// readTuples reads every file of the configuration. It stops when ctx ends.
func readTuples(ctx context.Context, paths []string) ([]data.Tuple, error) {
	var all []data.Tuple
	for _, path := range paths {
		for tuple, err := range data.ReadTuples(path) {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return nil, err
			}
			all = append(all, tuple)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no tuples: see what caper annotate said of its rollouts", strings.Join(paths, ", "))
	}
	return all, nil
}

// holdOut splits tuples by database: a random share of the databases, at least
// one when the share is above zero, is kept for validation.
func holdOut(tuples []data.Tuple, share float64, seed uint64) (train, heldOut []data.Tuple, err error) {
	var names []string
	for _, t := range tuples {
		names = append(names, t.DBID)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	count := int(math.Ceil(share * float64(len(names))))
	if share > 0 && count >= len(names) {
		return nil, nil, fmt.Errorf("of %d databases leaves none to train on: give tuples of more databases, or train.holdout_databases=0", len(names))
	}
	engine.Random(seed, "holdout", 0, 0).Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	held := map[string]bool{}
	for _, name := range names[:count] {
		held[name] = true
	}
	for _, t := range tuples {
		if held[t.DBID] {
			heldOut = append(heldOut, t)
		} else {
			train = append(train, t)
		}
	}
	return train, heldOut, nil
}

// severityReference returns c_ref, the 75th percentile of the edit costs
// (caper.md 1.4.6).
func severityReference(tuples []data.Tuple) float64 {
	costs := make([]float64, len(tuples))
	for i, t := range tuples {
		costs[i] = t.EditCost
	}
	slices.Sort(costs)
	return costs[min(len(costs)-1, len(costs)*3/4)]
}

// encode groups tuples by prompt, in order of first appearance, and turns them
// into token sequences.
func encode(tuples []data.Tuple, layout *model.Layout, c Config) (*dataset, error) {
	reference := severityReference(tuples)
	d := &dataset{}
	byPrompt := map[string]int{}
	for i := range tuples {
		t := &tuples[i]
		n, ok := byPrompt[t.Prompt]
		if !ok {
			n = len(d.questions)
			byPrompt[t.Prompt] = n
			d.questions = append(d.questions, question{db: t.DBID, prompt: layout.Prompt(nil, t.Prompt)})
		}
		q := &d.questions[n]
		prefix, opened := prefixUnits(t)
		p := pair{
			chosen:   continuation(layout, prefix, opened, t.Chosen),
			rejected: continuation(layout, prefix, opened, t.Rejected),
			margin:   t.Margin,
		}
		if c.Loss.Severity && reference > 0 {
			p.margin *= min(1, max(0.25, t.EditCost/reference))
		}
		if c.Loss.Contrast > 0 && t.RootClause {
			whole := wholeQuery(layout, t.SQLRejected)
			p.wrong, p.marks, p.faulty = whole.Tokens, whole.Marks, t.ClauseIndex
		}
		if len(q.prompt)+max(len(p.chosen), len(p.rejected), len(p.wrong)) > c.Train.MaxLength {
			d.tooLong++
			continue
		}
		if c.Loss.LanguageModel > 0 && q.correct == nil {
			if whole := wholeQuery(layout, t.SQLChosen).Tokens; len(q.prompt)+len(whole) <= c.Train.MaxLength {
				q.correct = whole
			}
		}
		q.pairs = append(q.pairs, p)
		d.pairs++
	}
	d.questions = slices.DeleteFunc(d.questions, func(q question) bool { return len(q.pairs) == 0 })
	if len(d.questions) == 0 {
		return nil, c.mistake("train.max_length", "no pair is that short: raise it")
	}
	if c.Loss.LanguageModel > 0 {
		for i := range d.questions {
			d.questions[i].assignPredictions()
		}
	}
	return d, nil
}

// continuation returns the tokens that follow the prompt, up to the one at which
// the clause is scored. An empty clause is the END unit.
func continuation(layout *model.Layout, prefix []string, opened, clause string) []int32 {
	var s model.Sequence
	for _, unit := range prefix {
		layout.Clause(&s, unit)
	}
	layout.Opened(&s, opened)
	if clause == "" {
		layout.End(&s)
	} else {
		layout.Clause(&s, clause)
	}
	return s.Tokens
}

// wholeQuery returns a query and its end as they follow the prompt.
func wholeQuery(layout *model.Layout, query string) model.Sequence {
	var units []string
	for _, c := range sql.Clauses(query) {
		units = append(units, query[c.Start:c.End])
	}
	return layout.Query(nil, units)
}

// prefixUnits cuts a tuple's prefix into its clause units. What it holds of the
// clause under way is opened: the tuple then is about a clause inside of that one.
func prefixUnits(t *data.Tuple) (units []string, opened string) {
	for _, c := range sql.Clauses(t.SQLRejected) {
		if c.Start >= len(t.Prefix) {
			break
		}
		unit := t.SQLRejected[c.Start:min(c.End, len(t.Prefix))]
		if c.End > len(t.Prefix) && strings.TrimSpace(t.SQLRejected[len(t.Prefix):c.End]) != "" {
			return units, unit
		}
		units = append(units, unit)
	}
	return units, ""
}

// texts yields what the vocabulary is trained on: each prompt once, and the SQL in
// the pieces in which it will be encoded.
func texts(tuples []data.Tuple) iter.Seq[string] {
	return func(yield func(string) bool) {
		seen := map[string]bool{}
		for i := range tuples {
			t := &tuples[i]
			pieces, opened := prefixUnits(t)
			pieces = append(pieces, opened, t.Chosen, t.Rejected)
			if !seen[t.Prompt] {
				seen[t.Prompt] = true
				pieces = append(pieces, t.Prompt)
			}
			for _, piece := range pieces {
				if !yield(piece) {
					return
				}
			}
		}
	}
}
