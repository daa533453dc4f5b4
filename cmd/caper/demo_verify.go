package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"caper/data"
	"caper/data/sample"
	"caper/eval"
	"caper/kernels/sampling"
	"caper/model/generate"
	"caper/report"
	"caper/train/ablation"
	"caper/train/rollout"
	"caper/train/run"
)

// asked are the splits whose questions policies answer.
var asked = []struct{ split, name string }{
	{sample.Dev, "unseen questions of seen databases"},
	{sample.Test, "unseen databases, known words"},
	{sample.NewWords, "databases of words never seen"},
}

// questions are some of a split's, spread evenly.
func (p *policyLoop) questions(split string, count int) ([]data.Question, error) {
	all, err := p.bench.Questions(split)
	if err != nil {
		return nil, err
	}
	count = min(count, len(all))
	some := make([]data.Question, count)
	for i := range some {
		some[i] = all[i*len(all)/count]
	}
	return some, nil
}

// answers draws answers of a policy as candidates, in the order of the questions.
func (p *policyLoop) answers(ctx context.Context, policy string, questions []data.Question, rule sampling.Rule, count int) ([]data.Rollout, error) {
	m, err := demoModels.load(p.model(policy))
	if err != nil {
		return nil, err
	}
	ends, err := generate.EndTokens(p.model(policy))
	if err != nil {
		return nil, err
	}
	prompt, err := run.Prompter(p.bench, m, "")
	if err != nil {
		return nil, err
	}
	prompts := make([]rollout.Question, len(questions))
	for i, q := range questions {
		prompts[i].Index = i
		if prompts[i].Tokens, err = prompt(q); err != nil {
			return nil, err
		}
	}
	source, err := rollout.NewNative(m, rollout.Options{Samples: count, MaxTokens: 96, Rule: rule, EndTokens: ends, Seed: p.seed,
		Memory: generate.Options{Batch: 128, Tokens: 1 << 16}}, 0)
	if err != nil {
		return nil, err
	}
	answered := make([][]data.Rollout, len(questions))
	for g, err := range source.Groups(ctx, 0, prompts) {
		if err != nil {
			return nil, err
		}
		q := questions[g.Question]
		for i, s := range g.Samples {
			answered[g.Question] = append(answered[g.Question], data.Rollout{Dataset: q.Dataset, QuestionID: q.ID, DBID: q.DBID,
				Question: q.Question, Evidence: q.Evidence, Gold: q.Gold, SQL: s.Text, Source: policy, Sample: i})
		}
	}
	return slices.Concat(answered...), nil
}

// policyMeasure is a figure of policies, on a split.
type policyMeasure struct{ split, figure string }

// policyResults are outcomes of questions by figure, policy and seed. All policies answer
// the same questions.
type policyResults struct {
	measures []policyMeasure // in the order of the page
	policies []string
	outcomes map[policyMeasure]map[string][][]eval.Outcome
}

func (r *policyResults) add(m policyMeasure, policy string, outcomes []eval.Outcome) {
	if r.outcomes == nil {
		r.outcomes = map[policyMeasure]map[string][][]eval.Outcome{}
	}
	if r.outcomes[m] == nil {
		r.outcomes[m] = map[string][][]eval.Outcome{}
		r.measures = append(r.measures, m)
	}
	if !slices.Contains(r.policies, policy) {
		r.policies = append(r.policies, policy)
	}
	r.outcomes[m][policy] = append(r.outcomes[m][policy], outcomes)
}

// compare compares every policy with the first.
func (r *policyResults) compare() ([]ablation.Comparison, error) {
	var all []ablation.Comparison
	for _, m := range r.measures {
		reference := r.outcomes[m][r.policies[0]]
		c := ablation.Comparison{Test: m.figure + ", " + m.split, Items: len(reference[0]), Seeds: len(reference)}
		for _, policy := range r.policies {
			by, err := eval.CompareSeeds(reference, r.outcomes[m][policy], verifyResamples, 1)
			if err != nil {
				return nil, fmt.Errorf("%s of policy %s: %w", c.Test, policy, err)
			}
			c.Rows = append(c.Rows, ablation.Row{Variant: policy, Note: policyNotes[policy], Mean: by.Variant, Interval: by.VariantInterval,
				Difference: by.Difference, Apart: by.Interval})
		}
		all = append(all, c)
	}
	return all, ablation.WriteText(os.Stderr, all)
}

// verifyResamples of each interval.
const verifyResamples = 2000

// measure has policies of a seed answer the test splits, greedily and by samples.
func (p *policyLoop) measure(ctx context.Context, results *policyResults, policies []string) error {
	scorer, err := demoModels.scorer(p.model(ownPRM))
	if err != nil {
		return err
	}
	o := eval.VerificationOptions{Aggregate: eval.Mean, Resamples: verifyResamples, Seed: 1}
	o.Rule, o.Workers, o.Schemas = eval.Rule(p.bench.Rule()), runtime.NumCPU(), eval.NewSchemas(p.bench)
	for _, a := range asked {
		started := time.Now()
		questions, err := p.questions(a.split, p.size.verified)
		if err != nil {
			return err
		}
		for _, policy := range policies {
			var first, vote []eval.Outcome
			o.Each = func(f, v eval.Outcome) { first, vote = append(first, f), append(vote, v) }
			if _, err := p.verify(ctx, policy, questions, sampling.Rule{}, 1, nil, o); err != nil {
				return err
			}
			results.add(policyMeasure{a.name, "execution accuracy of greedy answers"}, policy, first)
			first, vote = nil, nil
			v, err := p.verify(ctx, policy, questions, sampling.Rule{Temperature: 1}, samples, scorer, o)
			if err != nil {
				return err
			}
			results.add(policyMeasure{a.name, fmt.Sprintf("majority of %d samples", samples)}, policy, vote)
			p.page.Verifications = append(p.page.Verifications, report.Verification{
				Test: a.name, Name: fmt.Sprintf("%s, seed %d", policy, p.seed), Verification: v})
		}
		p.stage("answers: "+a.name, started)
	}
	return nil
}

// verify judges a policy's answers to questions.
func (p *policyLoop) verify(ctx context.Context, policy string, questions []data.Question, rule sampling.Rule, count int,
	scorer eval.Scorer, o eval.VerificationOptions) (eval.Verification, error) {
	rollouts, err := p.answers(ctx, policy, questions, rule, count)
	if err != nil {
		return eval.Verification{}, err
	}
	var pools []eval.Pool
	for i, r := range rollouts {
		if i == 0 || r.QuestionID != rollouts[i-1].QuestionID {
			prompt, err := promptOf(r, p.bench)
			if err != nil {
				return eval.Verification{}, err
			}
			pools = append(pools, eval.Pool{Prompt: prompt})
		}
		last := &pools[len(pools)-1]
		last.Candidates = append(last.Candidates, r)
	}
	return eval.Verify(ctx, p.bench, pools, scorer, o)
}
