package eval

import (
	"context"
	"errors"
	"iter"
	"maps"
	"strings"
	"syscall"

	"caper/data"
	"caper/sqlexec"
)

// Verdict says whether a candidate query gave the gold result.
type Verdict string

const (
	Correct     Verdict = "correct"
	Wrong       Verdict = "wrong"        // it ran, with another result
	Failed      Verdict = "error"        // it did not run
	TimedOut    Verdict = "timeout"      // it ran out of time
	GoldFailed  Verdict = "gold_error"   // the gold query did not run
	GoldTimeout Verdict = "gold_timeout" // the gold query ran out of time
	// DatabaseFailed: the database is damaged or cannot be read.
	DatabaseFailed Verdict = "database_error"
)

var verdicts = []Verdict{Correct, Wrong, Failed, TimedOut, GoldFailed, GoldTimeout, DatabaseFailed}

// ofGold reports that gold is at fault, and the candidate was not judged.
func (v Verdict) ofGold() bool { return v == GoldFailed || v == GoldTimeout }

// isJudgement reports that the verdict is about the candidate, not about what it was to
// be judged by.
func (v Verdict) isJudgement() bool { return !v.ofGold() && v != DatabaseFailed }

// Judged is a candidate with its verdict.
type Judged struct {
	data.Rollout
	By      Evaluator
	Verdict Verdict
	// Message says what went wrong, for every verdict but Correct and Wrong.
	Message string
	// Strict is the verdict under the strict rule, which forgives nothing.
	Strict Verdict
	// Quirks are a smallest set of the rule's quirks that gives the verdict, where
	// it is not the strict one and ExecutionOptions.Explain asks for them.
	Quirks sqlexec.Quirks
}

// Line returns the candidate with the verdict among its extra fields, as the
// verdicts file holds it.
func (j Judged) Line() data.Rollout {
	fields := j.By.fields()
	fields["verdict"], fields["message"], fields["strict_verdict"] = j.Verdict, j.Message, j.Strict
	if len(j.Quirks) > 0 {
		fields["quirks"] = explained(j.Quirks)
	}
	return withFields(j.Rollout, fields)
}

// withFields returns a candidate with more extra fields.
func withFields(r data.Rollout, fields map[string]any) data.Rollout {
	r.Extra = maps.Clone(r.Extra)
	if r.Extra == nil {
		r.Extra = data.Extra{}
	}
	for field, value := range fields {
		text, err := data.Marshal(value)
		if err != nil {
			panic(err) // the fields are texts, finite numbers and structs of them
		}
		r.Extra[field] = text
	}
	return r
}

// explanation is a quirk in a verdicts file.
type explanation struct {
	Quirk  sqlexec.Quirk `json:"quirk"`
	Reason string        `json:"reason"`
}

func explained(quirks sqlexec.Quirks) (list []explanation) {
	for _, q := range quirks {
		list = append(list, explanation{q, Reason(q)})
	}
	return list
}

// Databases opens databases by name; data.Benchmark is one. Variants returns the
// database first, then the others that belong to it.
type Databases interface {
	Database(dbID string) (*sqlexec.Database, error)
	Variants(dbID string) ([]*sqlexec.Database, error)
}

// ExecutionOptions say how Execute judges.
type ExecutionOptions struct {
	Rule    Rule
	Workers int // at least 1
	// Cache holds results between queries, nil for a new one.
	Cache *sqlexec.Cache
	// Schemas are needed by the rule Spider.
	Schemas *Schemas
	// Explain finds the quirks behind verdicts that the strict rule does not share.
	Explain bool
	// Without are quirks of the rule to leave out. The test-suite evaluator with
	// --keep_distinct is the rule without DistinctStripped and FirstStatement.
	Without sqlexec.Quirks
}

// cacheBytes is the size of the cache that Execute makes for itself.
const cacheBytes = 256 << 20

// Execute judges candidates and hands them to emit in their order, whatever the
// number of workers. It holds only a few candidates at a time. It stops at the
// first error of the candidates, of emit or of the context; that a query fails is
// a verdict and no error.
func Execute(ctx context.Context, databases Databases, rollouts iter.Seq2[data.Rollout, error], o ExecutionOptions,
	emit func(Judged) error) error {
	return InOrder(ctx, rollouts, o.Workers, newJudge(databases, o, o.Evaluator()).judge, emit)
}

// judge gives verdicts.
type judge struct {
	databases Databases
	schemas   *Schemas
	cache     *sqlexec.Cache
	by        Evaluator
	quirks    sqlexec.Quirks // of the rule
	explain   bool
}

func newJudge(databases Databases, o ExecutionOptions, by Evaluator) *judge {
	j := &judge{databases: databases, schemas: o.Schemas, cache: o.Cache, by: by, quirks: o.Rule.Quirks(), explain: o.Explain}
	for _, q := range o.Without {
		j.quirks = j.quirks.Without(q)
	}
	if j.cache == nil {
		j.cache = sqlexec.NewCache(cacheBytes)
	}
	return j
}

// judge judges one candidate. Its error is that of the context or of the machine, or
// says that the database is missing; a damaged one is a verdict.
func (j *judge) judge(ctx context.Context, r data.Rollout) (out Judged, err error) {
	out = Judged{Rollout: r, By: j.by}
	c := &candidate{Rollout: r, ran: map[execution]records{}}
	if c.variants, err = j.databases.Variants(r.DBID); err != nil {
		out.Verdict, out.Message, err = failure(err)
		out.Strict = out.Verdict
		return out, err
	}
	if out.Verdict, out.Message, err = j.verdict(ctx, c, j.quirks); err != nil {
		return out, err
	}
	out.Strict = out.Verdict
	if len(j.quirks) > 0 {
		if out.Strict, _, err = j.verdict(ctx, c, nil); err != nil {
			return out, err
		}
	}
	if j.explain && out.Strict != out.Verdict {
		out.Quirks, err = j.smallest(ctx, c, out.Verdict)
	}
	return out, err
}

// candidate is one that is judged, under one set of quirks after the other.
type candidate struct {
	data.Rollout
	variants []*sqlexec.Database
	ran      map[execution]records
}

// execution is what runs on a database, records what comes of it.
type (
	execution struct {
		db *sqlexec.Database
		texts
	}
	records struct {
		gold, pred sqlexec.Record
		err        error
	}
)

// IsDatabaseFault tells a database that cannot be used from a machine that gives no more
// files, processes or memory, where the next database would fare no better.
func IsDatabaseFault(err error) bool {
	var file *sqlexec.FileError
	if !errors.As(err, &file) {
		return false
	}
	for _, scarce := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM} {
		if errors.Is(err, scarce) {
			return false
		}
	}
	return true
}

// smallest leaves out one quirk after the other as long as the verdict stays.
func (j *judge) smallest(ctx context.Context, c *candidate, verdict Verdict) (sqlexec.Quirks, error) {
	quirks := j.quirks
	for _, q := range j.quirks {
		fewer := quirks.Without(q)
		v, _, err := j.verdict(ctx, c, fewer)
		if err != nil {
			return nil, err
		}
		if v == verdict {
			quirks = fewer
		}
	}
	return quirks, nil
}

// verdict judges under a set of quirks.
func (j *judge) verdict(ctx context.Context, c *candidate, quirks sqlexec.Quirks) (Verdict, string, error) {
	same := func(gold, pred sqlexec.Record) (bool, error) { return quirks.SameRecords(gold, pred, c.Gold), nil }
	unreadable := false
	if quirks.Has(SelectKeys) || quirks.Has(Unreadable) {
		keys, unread, err := newSelectKeys(j.schemas, c.Rollout, quirks)
		if err != nil {
			return unreadGold(err)
		}
		unreadable = unread && quirks.Has(Unreadable)
		if quirks.Has(SelectKeys) && !unread {
			same = func(gold, pred sqlexec.Record) (bool, error) {
				return keys.same(gold.Result(), pred.Result(), c.Gold, quirks)
			}
		}
	}
	variants := c.variants
	if quirks.Has(OneDatabase) {
		variants = variants[:1]
	}
	texts := newTexts(c.Rollout, quirks)
	if v, message := texts.refusal(quirks); v != "" {
		return v, message, nil
	}
	for _, db := range variants {
		e := execution{db, texts}
		ran, known := c.ran[e]
		if !known {
			ran.gold, ran.pred, ran.err = j.run(ctx, db, texts)
			c.ran[e] = ran
		}
		gold, pred := ran.gold, ran.pred
		if ran.err != nil {
			return failure(ran.err)
		}
		if quirks.Has(sqlexec.BadBytesFail) {
			if v := unreadText(gold, pred); v != "" {
				return v, "the result has a text that is not UTF-8", nil
			}
		}
		if quirks.Has(SharedTime) && gold.Elapsed()+pred.Elapsed() > db.Limits().Timeout {
			return TimedOut, "gold and prediction together ran out of time", nil
		}
		if isSame, err := same(gold, pred); err != nil {
			return Failed, err.Error(), nil
		} else if !isSame || unreadable {
			if texts.blank {
				return Failed, "no statement in the text", nil
			}
			return Wrong, "", nil
		}
	}
	return Correct, "", nil
}

// texts are what runs for a candidate.
type texts struct {
	gold, pred string
	// blank says that the prediction holds no statement, and something runs in its place.
	blank bool
}

func newTexts(r data.Rollout, quirks sqlexec.Quirks) texts {
	t := texts{gold: quirks.Rewrite(r.Gold), pred: quirks.RewritePrediction(r.SQL)}
	// Where the test-suite script looks for DISTINCT it ends at an empty text.
	ends := quirks.Has(sqlexec.DistinctStripped) && strings.TrimSpace(t.pred) == ""
	if quirks.Has(NoStatement) && hasNoStatement(t.pred) && !ends {
		t.pred, t.blank = emptyResult, true
	}
	return t
}

// refusal is the verdict on texts that an evaluator does not run.
func (t texts) refusal(quirks sqlexec.Quirks) (Verdict, string) {
	const message = "a second semicolon is a second statement to the script"
	switch {
	case !quirks.Has(SecondSemicolon):
	case hasSecondSemicolon(t.gold):
		return GoldFailed, message
	case hasSecondSemicolon(t.pred):
		return Failed, message
	}
	return "", ""
}

// goldFailure is the failure of a gold query.
type goldFailure struct{ error }

func (e goldFailure) Unwrap() error { return e.error }

// run runs both queries, in one round trip as a rule.
func (j *judge) run(ctx context.Context, db *sqlexec.Database, t texts) (gold, pred sqlexec.Record, err error) {
	j.cache.Prefetch(ctx, db, []string{t.gold, t.pred})
	if gold, err = j.cache.Record(ctx, db, t.gold); err != nil {
		return nil, nil, goldFailure{err}
	}
	pred, err = j.cache.Record(ctx, db, t.pred)
	return gold, pred, err
}

// unreadText is the verdict where a result has a text that the evaluator cannot read.
func unreadText(gold, pred sqlexec.Record) Verdict {
	switch {
	case !gold.Result().Decodable():
		return GoldFailed
	case !pred.Result().Decodable():
		return Failed
	}
	return ""
}

// failure turns the error of a query or of a database into a verdict. Any other is
// passed on.
func failure(err error) (Verdict, string, error) {
	if IsDatabaseFault(err) {
		return DatabaseFailed, err.Error(), nil
	}
	var e *sqlexec.Error
	if !errors.As(err, &e) {
		return "", "", err
	}
	ofGold := errors.As(err, &goldFailure{})
	switch {
	case e.Failure == sqlexec.Timeout && ofGold:
		return GoldTimeout, e.Message, nil
	case e.Failure == sqlexec.Timeout:
		return TimedOut, e.Message, nil
	case ofGold:
		return GoldFailed, e.Error(), nil
	}
	return Failed, e.Error(), nil
}
