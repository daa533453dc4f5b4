package sft

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"caper/data"
	"caper/engine"
	"caper/eval"
	"caper/train/run"
)

// query is a question with a query that answers it.
type query struct {
	question data.Question
	sql      string
}

// sources are what is read before there is a model.
type sources struct {
	queries      []query         // to learn from
	seen, unseen []data.Question // held out: of databases that queries are of, and of others
}

// example is a query as tokens.
type example struct {
	db     string
	tokens []int32 // of the prompt, the query and the end
	prompt int     // how many of them are the prompt's
	group  [1][]int32
}

// dataset is what a run learns from, and its held-out questions.
type dataset struct {
	examples []example
	// bundles are the examples that go into a step together: of one database.
	bundles [][]*example
	// tooLong counts the queries, and held-out questions, left out because of their length.
	tooLong      int
	seen, unseen []asked
}

// asked is a held-out question with its prompt.
type asked struct {
	question data.Question
	prompt   []int32
}

func (d *dataset) heldOut() int { return len(d.seen) + len(d.unseen) }

// read reads the questions and the queries to learn from, and holds questions out.
func (r *sft) read(ctx context.Context) (sources, error) {
	c := r.config.Train
	questions, err := r.bench.Questions(c.Split)
	if err != nil {
		return sources{}, r.config.mistake("train.split", "%w", err)
	}
	training, s, err := holdOut(questions, c)
	if err != nil {
		return s, r.config.mistake("train.holdout_databases", "%w", err)
	}
	if len(c.Rollouts) > 0 {
		s.queries, err = r.correct(ctx, training)
		return s, err
	}
	for _, q := range training {
		if q.Gold != "" {
			s.queries = append(s.queries, query{q, q.Gold})
		}
	}
	if len(s.queries) == 0 {
		return s, r.config.mistake("train.split", "its questions have no gold queries: choose another split, or name candidates (train.rollouts)")
	}
	return s, nil
}

// holdOut keeps questions for validation: all of a share of the databases, at least one
// where the share is above zero, and a share of the others' questions.
func holdOut(questions []data.Question, c Training) (training []data.Question, s sources, err error) {
	var names []string
	for _, q := range questions {
		names = append(names, q.DBID)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	count := int(math.Ceil(c.HoldoutDatabases * float64(len(names))))
	if count >= len(names) {
		return nil, s, fmt.Errorf("of %d databases leaves none to train on: choose a split of more databases, or train.holdout_databases=0", len(names))
	}
	engine.Random(c.Seed, "holdout", 0, 0).Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	held := map[string]bool{}
	for _, name := range names[:count] {
		held[name] = true
	}
	for _, q := range questions {
		if held[q.DBID] {
			s.unseen = append(s.unseen, q)
		} else {
			training = append(training, q)
		}
	}
	shuffled := shuffle(training, c.Seed, "holdout questions")
	count = int(c.HoldoutQuestions * float64(len(training)))
	s.seen, training = shuffled[:count], shuffled[count:]
	if len(training) == 0 {
		return nil, s, fmt.Errorf("with train.holdout_questions = %g leaves nothing to train on", c.HoldoutQuestions)
	}
	s.unseen = shuffle(s.unseen, c.Seed, "validation")
	s.seen, s.unseen = s.seen[:min(len(s.seen), c.ValidateQuestions)], s.unseen[:min(len(s.unseen), c.ValidateQuestions)]
	return training, s, nil
}

func shuffle(questions []data.Question, seed uint64, purpose string) []data.Question {
	all := slices.Clone(questions)
	engine.Random(seed, purpose, 0, 0).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// correct reads the candidates to learn from: each query once for its question.
func (r *sft) correct(ctx context.Context, training []data.Question) ([]query, error) {
	c := r.config.Train
	type key struct{ db, id string }
	known := map[key]data.Question{}
	for _, q := range training {
		known[key{q.DBID, q.ID.String()}] = q
	}
	seen := map[query]bool{}
	var all []query
	for _, path := range c.Rollouts {
		for candidate, err := range data.ReadRollouts(path, r.bench, c.Split) {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return nil, err
			}
			q, ok := known[key{candidate.DBID, candidate.QuestionID.String()}]
			right, err := isRight(candidate)
			if err != nil {
				return nil, fmt.Errorf("%s: question %s: %w", path, candidate.QuestionID, err)
			}
			if k := (query{q, candidate.SQL}); ok && right && !seen[k] && strings.TrimSpace(k.sql) != "" {
				seen[k] = true
				all = append(all, k)
			}
		}
	}
	if len(all) == 0 {
		return nil, r.config.mistake("train.rollouts", "no correct candidate of a question that is trained on: see what caper eval ex says of them")
	}
	return all, nil
}

// isRight tells whether a candidate's line, if it has a verdict, says that it is correct.
func isRight(r data.Rollout) (bool, error) {
	raw, ok := r.Extra["verdict"]
	if !ok {
		return true, nil
	}
	var verdict eval.Verdict
	if err := json.Unmarshal(raw, &verdict); err != nil {
		return false, fmt.Errorf("verdict: %w", data.PlainJSONError(err))
	}
	return verdict == eval.Correct, nil
}

// texts yields what a new vocabulary is trained on: each prompt once, and the queries.
func (r *sft) texts(queries []query) iter.Seq[string] {
	return func(yield func(string) bool) {
		seen := map[string]bool{}
		for _, q := range queries {
			prompt, err := r.bench.Prompt(q.question)
			if err == nil && !seen[prompt] {
				seen[prompt] = true
				if !yield(prompt) {
					return
				}
			}
			if !yield(q.sql) {
				return
			}
		}
	}
}

// encode turns the sources into tokens, and makes what validates.
func (r *sft) encode(s sources) error {
	c := r.config.Train
	folder := ""
	if c.Chat {
		folder = r.config.Model.Path
	}
	prompt, err := run.Prompter(r.bench, r.run.Model, folder)
	if err != nil {
		return r.config.mistake("train.chat", "%w", err)
	}
	words := r.run.Model.Tokenizer
	end, ok := words.ID(r.run.Model.Config.EndToken)
	if !ok {
		return r.config.mistake("model.end_token", "the tokenizer has no token %q", r.run.Model.Config.EndToken)
	}
	r.data = &dataset{}
	for _, q := range s.queries {
		e := example{db: q.question.DBID}
		if e.tokens, err = prompt(q.question); err != nil {
			return fmt.Errorf("question %s: %w", q.question.ID, err)
		}
		e.prompt = len(e.tokens)
		e.tokens = append(words.EncodeText(q.sql, e.tokens), end)
		if len(e.tokens) > c.MaxLength {
			r.data.tooLong++
			continue
		}
		e.group[0] = e.tokens
		r.data.examples = append(r.data.examples, e)
	}
	if len(r.data.examples) == 0 {
		return r.config.mistake("train.max_length", "no query with its prompt is that short: raise it")
	}
	r.data.bundle(c.Together, c.Seed)
	if r.data.seen, err = r.ask(s.seen, prompt); err != nil {
		return err
	}
	if r.data.unseen, err = r.ask(s.unseen, prompt); err != nil {
		return err
	}
	return r.makeValidator(end)
}

// ask returns held-out questions with prompts that leave room for an answer.
func (r *sft) ask(questions []data.Question, prompt func(data.Question) ([]int32, error)) (all []asked, err error) {
	for _, q := range questions {
		a := asked{question: q}
		if a.prompt, err = prompt(q); err != nil {
			return nil, fmt.Errorf("question %s: %w", q.ID, err)
		}
		if len(a.prompt)+r.config.Train.MaxNewTokens > max(r.config.Train.MaxLength, r.config.Train.MaxNewTokens) {
			r.data.tooLong++
			continue
		}
		all = append(all, a)
	}
	return all, nil
}

// bundle puts examples of a database together, drawn at random, at most n in a bundle.
func (d *dataset) bundle(n int, seed uint64) {
	order := engine.Random(seed, "bundles", 0, 0).Perm(len(d.examples))
	open := map[string]int{} // of a database: the bundle that is not full
	for _, i := range order {
		e := &d.examples[i]
		b, ok := open[e.db]
		if !ok || len(d.bundles[b]) == n {
			b = len(d.bundles)
			open[e.db], d.bundles = b, append(d.bundles, nil)
		}
		d.bundles[b] = append(d.bundles[b], e)
	}
}

// passes goes through the bundles, as many queries a step as train.batch_queries says.
func (d *dataset) passes(at *run.Position, c Training) *run.Passes {
	var sizes []int
	for _, b := range d.bundles {
		sizes = append(sizes, len(b))
	}
	return run.NewPasses(at, c.Seed, sizes, c.BatchQueries)
}
