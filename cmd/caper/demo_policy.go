package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"caper/configs"
	"caper/data"
	"caper/data/sample"
	"caper/kernels/sampling"
	"caper/report"
	"caper/train/grpo"
	"caper/train/run"
	"caper/train/sft"
)

// demoModels loads models of the demonstration.
var demoModels = &modelFlags{deviceFlag: deviceFlag{"cpu"}}

// Names of the policies beside those named by their reward, and of the reward model.
const (
	startPolicy = "start" // taught by gold, and no further than the rest of the part needs
	wholePolicy = "whole" // taught to the end
	ownPRM      = "prm"   // a Clause-PRM that has learned from the policy's own failures
)

// policyLoop is the policy's part with one seed, in a folder of its own.
type policyLoop struct {
	*demo
	seed  uint64
	bench *data.Benchmark // the databases, with more questions
}

func (p *policyLoop) path(parts ...string) string {
	return p.demo.path(append([]string{"policy", fmt.Sprintf("seed-%d", p.seed)}, parts...)...)
}

// model is where a policy lies. Of those trained by reward it is the last, which no
// validation has chosen.
func (p *policyLoop) model(name string) string {
	if name == startPolicy || name == wholePolicy || name == ownPRM {
		return p.path(name, "model")
	}
	return p.path(name, "last")
}

// policies trains and measures policies with every seed.
func (d *demo) policies(ctx context.Context) error {
	bench, err := d.askMore(ctx)
	if err != nil {
		return err
	}
	defer bench.Close()
	var whole, fromStart policyResults
	for i := range d.size.seeds {
		p := &policyLoop{demo: d, seed: d.seed + uint64(i), bench: bench}
		if err := p.run(ctx, &fromStart); err != nil {
			return err
		}
		if i > 0 {
			continue
		}
		if err := p.runWhole(ctx, &whole); err != nil {
			return err
		}
		if err := p.show(); err != nil {
			return err
		}
	}
	for _, r := range []*policyResults{&whole, &fromStart} {
		compared, err := r.compare()
		if err != nil {
			return err
		}
		d.page.Comparisons = append(d.page.Comparisons, compared...)
	}
	return nil
}

// askMore writes the benchmark again with as many questions as a policy needs.
func (d *demo) askMore(ctx context.Context) (*data.Benchmark, error) {
	started := time.Now()
	o := d.size.bench
	o.Seed, o.Questions = d.seed, d.size.questions
	dir := d.path("policy", "bench")
	if _, err := sample.Write(ctx, dir, o); err != nil {
		return nil, err
	}
	d.timed("questions for policies", started)
	return openDemoBench(dir)
}

// run makes and measures a policy, the reward model of its failures, and policies trained
// by reward from there.
func (p *policyLoop) run(ctx context.Context, results *policyResults) error {
	if err := p.supervise(ctx, startPolicy, p.size.sft); err != nil {
		return err
	}
	if err := p.learnFailures(ctx); err != nil {
		return err
	}
	for _, kind := range p.size.rewards {
		if err := p.reward(ctx, kind); err != nil {
			return err
		}
	}
	return p.measure(ctx, results, append([]string{startPolicy}, p.size.rewards...))
}

// runWhole makes and measures the policy that learns from gold to the end.
func (p *policyLoop) runWhole(ctx context.Context, results *policyResults) error {
	if p.size.whole == nil {
		return nil
	}
	if err := p.supervise(ctx, wholePolicy, p.size.whole); err != nil {
		return err
	}
	return p.measure(ctx, results, []string{wholePolicy})
}

// stage notes how long a stage of this seed took.
func (p *policyLoop) stage(name string, started time.Time) {
	p.timed(fmt.Sprintf("%s, seed %d", name, p.seed), started)
}

// seedOverride keys a training.
func seedOverride(seed uint64) string { return fmt.Sprintf("train.seed=%d", seed) }

// supervise trains a policy on gold.
func (p *policyLoop) supervise(ctx context.Context, name string, overrides []string) error {
	started := time.Now()
	const file = "sft-tiny.toml"
	text, err := configs.Files.ReadFile(file)
	if err != nil {
		return err
	}
	config, err := sft.ParseConfig(text, "configs/"+file, append([]string{
		"train.bench=" + p.demo.path("policy", "bench"), "train.out=" + p.path(name), seedOverride(p.seed)}, overrides...))
	if err != nil {
		return err
	}
	p.log.Info("training", "policy", name, "seed", p.seed)
	if _, err = trainSFT(ctx, config, run.Options{}); err != nil {
		return err
	}
	p.stage("supervision: "+name, started)
	return nil
}

// learnFailures has the policy answer training questions, finds the clauses at fault in
// what it got wrong, and goes on with the training of the Clause-PRM on them: so far it
// has seen simulated failures only.
func (p *policyLoop) learnFailures(ctx context.Context) error {
	started := time.Now()
	questions, err := p.questions(sample.Train, p.size.answered)
	if err != nil {
		return err
	}
	rollouts, err := p.answers(ctx, startPolicy, questions, sampling.Rule{Temperature: 1}, samples)
	if err != nil {
		return err
	}
	if err := data.WriteRollouts(p.path("candidates.jsonl"), slices.Values(rollouts)); err != nil {
		return err
	}
	p.stage("the policy's candidates", started)
	tuples := p.path("own-failures.jsonl")
	again := readRollouts([]string{p.path("candidates.jsonl")}, p.bench, sample.Train, nil)
	if err := p.annotate(ctx, p.bench, again, sample.Train, true, tuples); err != nil {
		return err
	}
	started = time.Now()
	p.log.Info("training", "clause_prm", "on the policy's own failures", "seed", p.seed)
	if _, err = p.trainReward(ctx, p.path(ownPRM), tuples, p.seed, append([]string{"model.path=" + p.rewardModel()}, p.size.ownPRM...)); err != nil {
		return err
	}
	p.stage("training: Clause-PRM on own failures", started)
	return nil
}

// reward trains the first policy further by a kind of reward.
func (p *policyLoop) reward(ctx context.Context, kind string) error {
	started := time.Now()
	const file = "grpo-tiny.toml"
	text, err := configs.Files.ReadFile(file)
	if err != nil {
		return err
	}
	config, err := grpo.ParseConfig(text, "configs/"+file, append([]string{
		"train.bench=" + p.demo.path("policy", "bench"), "train.out=" + p.path(kind), seedOverride(p.seed),
		"model.path=" + p.model(startPolicy), "reward.model=" + p.model(ownPRM), "reward.kind=" + kind}, p.size.grpo...))
	if err != nil {
		return err
	}
	p.log.Info("training", "policy", kind, "seed", p.seed)
	if _, err = trainGRPO(ctx, config, run.Options{}); err != nil {
		return err
	}
	p.stage("reward: "+kind, started)
	return nil
}

// show puts the trainings on the page.
func (p *policyLoop) show() error {
	folders := []string{p.path(startPolicy)}
	if p.size.whole != nil {
		folders = append(folders, p.path(wholePolicy))
	}
	for _, kind := range p.size.rewards {
		folders = append(folders, p.path(kind))
	}
	runs, err := report.RunPage(folders, nil, nil)
	if err != nil {
		return err
	}
	p.page.Policies = runs.Policies
	for i := range p.page.Policies {
		p.page.Policies[i].Note = policyNotes[p.page.Policies[i].Name]
	}
	return nil
}

// policyNotes say what sets each policy apart.
var policyNotes = map[string]string{
	startPolicy: "learned from gold; what the others go on from",
	wholePolicy: "learned from gold to the end",
	"clause":    "rewarded for right results, and clause by clause by the Clause-PRM",
	"sparse":    "rewarded for right results alone",
	"token":     "rewarded for right results, and by the Clause-PRM's score spread over the tokens",
}
