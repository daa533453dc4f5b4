package main

import "caper/data/sample"

// demoSize says how much of everything the demonstration does.
type demoSize struct {
	bench    sample.Options
	variants []variant
	prm      []string // overrides of configs/prm-tiny.toml, for all variants

	// The policy's part, once with each seed. Its questions are of the same databases.
	seeds     int
	questions int      // to learn from, of each training database
	sft       []string // overrides of configs/sft-tiny.toml: the policy that the rest starts from
	whole     []string // and one that learns on, with the first seed; nil: none
	// answered is the number of training questions that the policy answers for its reward
	// model, whose training starts from the first variant's: ownPRM over prm-tiny.toml.
	answered int
	ownPRM   []string
	rewards  []string // kinds of reward, one training each
	grpo     []string // overrides of configs/grpo-tiny.toml
	verified int      // questions of each test split
	note     string   // what a reader has to know of these lengths
}

// samples of each question, wherever a policy answers by sampling.
const samples = 8

// shortDemo is what fits into ten minutes with the build, on two cores.
func shortDemo() demoSize {
	return demoSize{
		bench:     sample.DefaultOptions(),
		variants:  []variant{method, shortMethod, withoutPropagation},
		seeds:     1,
		questions: 24,
		sft:       []string{"train.epochs=2"},
		answered:  400,
		ownPRM:    []string{"train.max_steps=40", "train.lr=1e-3"},
		rewards:   []string{"clause", "sparse"},
		grpo:      []string{"train.max_steps=20", "train.validate_every=10"},
		verified:  150,
		note: "The policies are of a short run: two passes of supervision and twenty steps of reward show how the parts work together, " +
			"not how good a policy becomes. caper demo --full trains longer, with three seeds.",
	}
}

// fullDemo may take forty minutes on two cores.
func fullDemo() demoSize {
	return demoSize{
		bench:     sample.DefaultOptions(),
		variants:  []variant{method, shortMethod, withoutPropagation, withoutMargin},
		seeds:     3,
		questions: 80,
		sft:       []string{"train.epochs=2", "train.stop_at_ex=0.55", "train.validate_every=100"},
		whole:     []string{"train.epochs=2"},
		answered:  1000,
		ownPRM:    []string{"train.max_steps=150", "train.lr=1e-3"},
		rewards:   []string{"clause", "sparse", "token"},
		grpo:      []string{"train.max_steps=100"},
		verified:  500,
	}
}
