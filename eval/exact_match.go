package eval

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"caper/data"
	"caper/eval/exactmatch"
	"caper/sqlexec"
)

// Matched is a candidate with its exact-match verdict: Correct, Wrong, Failed where
// the official parser cannot read it, or GoldFailed where it cannot read gold.
type Matched struct {
	data.Rollout
	By       Evaluator
	Verdict  Verdict
	Message  string
	Hardness exactmatch.Hardness // of gold; empty where it cannot be read
	Score    exactmatch.Score
	// Strict is the verdict when nothing is overlooked: values, DISTINCT, join
	// conditions and the tables of columns count.
	Strict Verdict
	// Quirks are a smallest set that gives the verdict, where it is not the strict
	// one and MatchOptions.Explain asks for them.
	Quirks sqlexec.Quirks
}

// Line returns the candidate with the verdict among its extra fields.
func (m Matched) Line() data.Rollout {
	parts := map[string]matchedPart{}
	for i, p := range m.Score.Parts {
		parts[exactmatch.PartNames[i]] = matchedPart(p)
	}
	fields := m.By.fields()
	fields["verdict"], fields["message"], fields["strict_verdict"] = m.Verdict, m.Message, m.Strict
	fields["hardness"], fields["parts"] = m.Hardness, parts
	if len(m.Quirks) > 0 {
		fields["quirks"] = explained(m.Quirks)
	}
	return withFields(m.Rollout, fields)
}

type matchedPart struct {
	Match bool `json:"match"`
	Pred  int  `json:"pred"`
	Gold  int  `json:"gold"`
}

// MatchOptions say how MatchExactly judges.
type MatchOptions struct {
	Schemas *Schemas
	Workers int
	Script  exactmatch.Script
	Explain bool
	// Without are quirks of the script to leave out.
	Without sqlexec.Quirks
}

// MatchExactly judges candidates by Spider's exact match and hands them to emit in
// their order.
func MatchExactly(ctx context.Context, rollouts iter.Seq2[data.Rollout, error], o MatchOptions, emit func(Matched) error) error {
	return InOrder(ctx, rollouts, o.Workers, o.match, emit)
}

func (o MatchOptions) match(_ context.Context, r data.Rollout) (Matched, error) {
	m := Matched{Rollout: r, By: o.Evaluator()}
	schema, err := o.Schemas.Get(r.DBID)
	if err != nil {
		m.Verdict, m.Message, err = failure(err)
		m.Strict = m.Verdict
		return m, err
	}
	gold, err := o.Script.Parse(schema, r.Gold)
	if err != nil {
		m.Verdict, m.Message, _ = unreadGold(err)
		m.Strict = m.Verdict
		return m, nil
	}
	m.Hardness = gold.Hardness()
	m.Verdict, m.Message, m.Score = o.verdict(schema, gold, o.predicted(r.SQL), o.quirks())
	m.Strict, _, _ = o.verdict(schema, gold, r.SQL, nil)
	if o.Explain && m.Strict != m.Verdict {
		m.Quirks = o.smallest(schema, gold, m)
	}
	return m, nil
}

// quirks are those of the script that are not left out.
func (o MatchOptions) quirks() exactmatch.Quirks {
	quirks := o.Script.Quirks()
	for _, q := range o.Without {
		quirks = quirks.Without(exactmatch.Quirk(q))
	}
	return quirks
}

// predicted is the text that the script reads in place of a prediction.
func (o MatchOptions) predicted(sql string) string {
	if o.Script == exactmatch.TestSuite && !o.Without.Has(sqlexec.ValueWord) {
		return sqlexec.Quirks{sqlexec.ValueWord}.RewritePrediction(sql)
	}
	return sql
}

func (o MatchOptions) verdict(schema *exactmatch.Schema, gold *exactmatch.Query, sql string, quirks exactmatch.Quirks) (Verdict, string, exactmatch.Score) {
	pred, err := o.Script.Parse(schema, sql)
	score := exactmatch.Compare(gold, pred, schema, quirks)
	switch {
	case err != nil:
		return Failed, "the exact-match parser cannot read the prediction: " + err.Error(), score
	case score.Exact:
		return Correct, "", score
	}
	return Wrong, "", score
}

// smallest leaves out one quirk after the other as long as the verdict stays.
func (o MatchOptions) smallest(schema *exactmatch.Schema, gold *exactmatch.Query, m Matched) (needed sqlexec.Quirks) {
	quirks := o.quirks()
	text := m.SQL
	if v, _, _ := o.verdict(schema, gold, text, quirks); v != m.Verdict {
		text = o.predicted(text)
		needed = append(needed, sqlexec.ValueWord)
	}
	for _, q := range o.quirks() {
		fewer := quirks.Without(q)
		if v, _, _ := o.verdict(schema, gold, text, fewer); v == m.Verdict {
			quirks = fewer
		}
	}
	for _, q := range quirks {
		needed = append(needed, sqlexec.Quirk(q))
	}
	return needed
}

// unreadGold is the verdict where the official parser, which would stop here, cannot
// read gold.
func unreadGold(err error) (Verdict, string, error) {
	var unread *exactmatch.ParseError
	if !errors.As(err, &unread) {
		return "", "", err
	}
	return GoldFailed, fmt.Sprintf("the exact-match parser cannot read gold: %s", strings.TrimSpace(unread.Error())), nil
}
