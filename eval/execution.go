package eval

import (
	"context"
	"errors"
	"iter"
	"maps"

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
)

// ofGold reports that gold is at fault, and the candidate was not judged.
func (v Verdict) ofGold() bool { return v == GoldFailed || v == GoldTimeout }

// Judged is a candidate with its verdict.
type Judged struct {
	data.Rollout
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
	r := withFields(j.Rollout, map[string]any{"verdict": j.Verdict, "message": j.Message, "strict_verdict": j.Strict})
	if len(j.Quirks) > 0 {
		r = withFields(r, map[string]any{"quirks": explained(j.Quirks)})
	}
	return r
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
	return inOrder(ctx, rollouts, o.Workers, newJudge(databases, o).judge, emit)
}

// judge gives verdicts.
type judge struct {
	databases Databases
	schemas   *Schemas
	cache     *sqlexec.Cache
	quirks    sqlexec.Quirks // of the rule
	explain   bool
}

func newJudge(databases Databases, o ExecutionOptions) *judge {
	j := &judge{databases: databases, schemas: o.Schemas, cache: o.Cache, quirks: o.Rule.Quirks(), explain: o.Explain}
	for _, q := range o.Without {
		j.quirks = j.quirks.Without(q)
	}
	if j.cache == nil {
		j.cache = sqlexec.NewCache(cacheBytes)
	}
	return j
}

// judge judges one candidate. Its error is that of the context, or of a missing or
// broken database.
func (j *judge) judge(ctx context.Context, r data.Rollout) (out Judged, err error) {
	out = Judged{Rollout: r}
	variants, err := j.databases.Variants(r.DBID)
	if err != nil {
		return out, err
	}
	if out.Verdict, out.Message, err = j.verdict(ctx, variants, j.quirks, r); err != nil {
		return out, err
	}
	out.Strict = out.Verdict
	if len(j.quirks) > 0 {
		if out.Strict, _, err = j.verdict(ctx, variants, nil, r); err != nil {
			return out, err
		}
	}
	if j.explain && out.Strict != out.Verdict {
		out.Quirks, err = j.smallest(ctx, variants, out)
	}
	return out, err
}

// smallest leaves out one quirk after the other as long as the verdict stays.
func (j *judge) smallest(ctx context.Context, variants []*sqlexec.Database, out Judged) (sqlexec.Quirks, error) {
	quirks := j.quirks
	for _, q := range j.quirks {
		fewer := quirks.Without(q)
		v, _, err := j.verdict(ctx, variants, fewer, out.Rollout)
		if err != nil {
			return nil, err
		}
		if v == out.Verdict {
			quirks = fewer
		}
	}
	return quirks, nil
}

// verdict judges under a set of quirks.
func (j *judge) verdict(ctx context.Context, variants []*sqlexec.Database, quirks sqlexec.Quirks, r data.Rollout) (Verdict, string, error) {
	same := func(gold, pred *sqlexec.Result) (bool, error) { return quirks.Same(gold, pred, r.Gold), nil }
	unreadable := false
	if quirks.Has(SelectKeys) || quirks.Has(Unreadable) {
		keys, unread, err := newSelectKeys(j.schemas, r, quirks)
		if err != nil {
			return unreadGold(err)
		}
		unreadable = unread && quirks.Has(Unreadable)
		if quirks.Has(SelectKeys) && !unread {
			same = func(gold, pred *sqlexec.Result) (bool, error) { return keys.same(gold, pred, r.Gold, quirks) }
		}
	}
	if quirks.Has(OneDatabase) {
		variants = variants[:1]
	}
	goldSQL, predSQL := quirks.Rewrite(r.Gold), quirks.RewritePrediction(r.SQL)
	for _, db := range variants {
		gold, err := j.cache.Query(ctx, db, goldSQL)
		if err != nil {
			return failure(err, GoldFailed, GoldTimeout)
		}
		pred, err := j.cache.Query(ctx, db, predSQL)
		if err != nil {
			return failure(err, Failed, TimedOut)
		}
		if quirks.Has(sqlexec.BadBytesFail) {
			if v := unreadText(gold, pred); v != "" {
				return v, "the result has a text that is not UTF-8", nil
			}
		}
		if quirks.Has(SharedTime) && gold.Elapsed+pred.Elapsed > db.Limits().Timeout {
			return TimedOut, "gold and prediction together ran out of time", nil
		}
		if isSame, err := same(gold, pred); err != nil {
			return Failed, err.Error(), nil
		} else if !isSame || unreadable {
			return Wrong, "", nil
		}
	}
	return Correct, "", nil
}

// unreadText is the verdict where a result has a text that the evaluator cannot read.
func unreadText(gold, pred *sqlexec.Result) Verdict {
	switch {
	case !gold.Decodable():
		return GoldFailed
	case !pred.Decodable():
		return Failed
	}
	return ""
}

// failure turns a query's error into a verdict. An error that no query caused is
// passed on.
func failure(err error, failed, timedOut Verdict) (Verdict, string, error) {
	var e *sqlexec.Error
	if !errors.As(err, &e) {
		return "", "", err
	}
	if e.Failure == sqlexec.Timeout {
		return timedOut, e.Message, nil
	}
	return failed, e.Error(), nil
}
