package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"caper/data"
	"caper/model/generate"
	"caper/solve"
)

// generatorFlags say who writes candidates.
type generatorFlags struct {
	Generator      []string `help:"server:KEY=VALUE,... or model:KEY=VALUE,..., once for each: name, style (compact or ddl), n, temperature, max_tokens; of a model also path; of a server also url and model, where they are not --server's." sep:"none" placeholder:"SPEC"`
	Demonstrations string   `help:"Training split whose questions are shown as examples, in the style ddl." placeholder:"SPLIT"`
	Shown          int      `help:"Examples shown with a question." default:"3"`
	Seed           uint64   `help:"Keys the samples." default:"1"`
}

func (f *generatorFlags) check(split string, s *serverFlags) error {
	if f.Demonstrations != "" && f.Demonstrations == split {
		return fmt.Errorf("--demonstrations %s: that is the split to be answered: name a training split", split)
	}
	for _, text := range f.Generator {
		if _, err := f.spec(text, s); err != nil {
			return fmt.Errorf("--generator %s: %w", text, err)
		}
	}
	return checkNumber("--shown", f.Shown, 0, 100)
}

// generatorSpec is a --generator.
type generatorSpec struct {
	solve.Draw
	kind, path, url, model string
}

func (f *generatorFlags) spec(text string, s *serverFlags) (g generatorSpec, err error) {
	kind, rest, _ := strings.Cut(text, ":")
	g = generatorSpec{Draw: solve.Draw{Name: kind, Style: solve.DDL, Count: 1, MaxTokens: 1024, Seed: f.Seed}, kind: kind, url: s.Server, model: s.ServerModel}
	switch kind {
	case "server":
	case "model":
		g.Style, g.MaxTokens = solve.Compact, 256
	default:
		return g, errors.New("want server:... or model:...")
	}
	for _, pair := range strings.Split(rest, ",") {
		if pair == "" {
			continue
		}
		key, value, _ := strings.Cut(pair, "=")
		if err := g.set(key, value); err != nil {
			return g, err
		}
	}
	switch {
	case kind == "model" && g.path == "":
		return g, errors.New("path is missing: name the folder of a language model")
	case kind == "server" && g.url == "":
		return g, errors.New("url is missing: give it here, or --server for all")
	}
	return g, nil
}

func (g *generatorSpec) set(key, value string) (err error) {
	texts := map[string]*string{"name": &g.Name, "path": &g.path, "url": &g.url, "model": &g.model}
	numbers := map[string]*int{"n": &g.Count, "max_tokens": &g.MaxTokens}
	switch {
	case texts[key] != nil:
		*texts[key] = value
	case numbers[key] != nil:
		*numbers[key], err = strconv.Atoi(value)
		if err != nil || *numbers[key] < 1 || *numbers[key] > 1<<20 {
			return fmt.Errorf("%s=%s: want a number from 1 on", key, value)
		}
	case key == "temperature":
		if g.Temperature, err = strconv.ParseFloat(value, 64); err != nil || !(g.Temperature >= 0 && g.Temperature <= 100) {
			return fmt.Errorf("temperature=%s: want a number from 0 to 100", value)
		}
	case key == "style":
		g.Style, err = solve.ParseStyle(value)
		return err
	default:
		known := slices.Sorted(maps.Keys(texts))
		return fmt.Errorf("%q: want one of max_tokens, n, style, temperature, %s", key, strings.Join(known, ", "))
	}
	return nil
}

// open makes the generators.
func (f *generatorFlags) open(bench *data.Benchmark, split string, where *modelFlags, s *serverFlags) ([]solve.Generator, *solve.Prompter, error) {
	prompter := solve.NewPrompter(bench)
	if f.Demonstrations != "" {
		training, err := bench.Questions(f.Demonstrations)
		if err != nil {
			return nil, nil, err
		}
		asked, err := bench.Questions(split)
		if err != nil {
			return nil, nil, err
		}
		if prompter.Demonstrations, err = solve.NewDemonstrations(training, asked, f.Shown); err != nil {
			return nil, nil, err
		}
	}
	var all []solve.Generator
	for _, text := range f.Generator {
		spec, err := f.spec(text, s)
		if err != nil {
			return nil, nil, err
		}
		g, err := spec.open(prompter, where, s)
		if err != nil {
			return nil, nil, fmt.Errorf("--generator %s: %w", text, err)
		}
		all = append(all, g)
	}
	return all, prompter, nil
}

func (g generatorSpec) open(prompter *solve.Prompter, where *modelFlags, s *serverFlags) (solve.Generator, error) {
	if g.kind == "server" {
		server, err := s.open()
		if err != nil {
			return nil, err
		}
		server.URL, server.Model = g.url, g.model
		return &solve.ServerGenerator{Draw: g.Draw, Server: server, Prompter: prompter}, nil
	}
	m, err := where.load(g.path)
	if err != nil {
		return nil, err
	}
	ends, err := generate.EndTokens(g.path)
	if err != nil {
		return nil, err
	}
	return solve.NewModelGenerator(g.Draw, prompter, m, generate.Request{StopTokens: ends, StopStrings: []string{";"}})
}

type solveCandidatesCommand struct {
	benchFlags     `embed:""`
	generatorFlags `embed:""`
	modelFlags     `embed:""`
	serverFlags    `embed:""`
	Candidates     files  `help:"Files with more candidates." placeholder:"FILE..."`
	Out            string `help:"File to write." required:"" type:"path"`
	Resume         bool   `help:"Go on where a stopped run to the same file left off."`
}

func (c *solveCandidatesCommand) Help() string {
	return `Example:
  caper solve candidates --bench spider --split dev --server http://localhost:8000/v1 --server-model qwen \
    --generator server:name=ge,style=ddl,n=4,temperature=0.7 --generator server:name=ge,style=compact,n=4,temperature=0.7 \
    --generator model:name=sp,path=runs/sft/model,n=8,temperature=0.8 --demonstrations train --out candidates.jsonl

The lines carry who wrote each candidate in which prompt style: its provenance group.`
}

// Validate checks the flags.
func (c *solveCandidatesCommand) Validate() error {
	var err error
	if len(c.Generator) == 0 && len(c.Candidates) == 0 {
		err = errors.New("--generator is missing: say who writes candidates, or give --candidates")
	}
	return cmp.Or(err, c.benchFlags.check(), c.generatorFlags.check(c.Split, &c.serverFlags), c.modelFlags.check(), c.serverFlags.check(), checkOutput(c.Out, c.Candidates...),
		checkRereadable("--candidates", c.Candidates...))
}

func (c *solveCandidatesCommand) Run(ctx context.Context) error {
	bench, err := c.benchFlags.open()
	if err != nil {
		return err
	}
	defer bench.Close()
	if err := c.checkDatabases(bench); err != nil {
		return err
	}
	pools, err := solve.Questions(bench, c.Split, c.keeps)
	if err != nil {
		return err
	}
	if err := solve.AddCandidates(pools, c.Candidates, bench, c.Split); err != nil {
		return err
	}
	generators, _, err := c.generatorFlags.open(bench, c.Split, &c.modelFlags, &c.serverFlags)
	if err != nil {
		return err
	}
	files := solveFlags{poolFlags{benchFlags: c.benchFlags, Out: c.Out}, c.Resume}
	out, done := files.output(bench, map[string]string{"generators": c.generatorFlags.String()}, len(pools))
	defer done()
	written, cost := 0, solve.Cost{}
	work := func(ctx context.Context, p solve.Pool) (solve.Generated, error) {
		return solve.Generate(ctx, p, generators)
	}
	tell := func(g solve.Generated) error {
		written += len(g.Candidates)
		cost.Add(g.Cost)
		return nil
	}
	if err := solve.Write(ctx, out, pools, work, tell); err != nil {
		return err
	}
	done()
	fmt.Fprintf(os.Stderr, "%s for %s in %s%s\n", counted(written, "candidate"), counted(len(pools), "question"), c.Out, spentOn(cost))
	return nil
}

// String is what candidates depend on.
func (f *generatorFlags) String() string {
	return fmt.Sprintf("%q, %d demonstrations of %q, seed %d", f.Generator, f.Shown, f.Demonstrations, f.Seed)
}
