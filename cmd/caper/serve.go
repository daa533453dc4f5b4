package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"caper/data"
	"caper/serve"
	"caper/solve"
)

type serveCommand struct {
	Bench          string        `help:"Benchmark folder, whose databases are asked." required:"" type:"path"`
	Format         string        `help:"auto, spider, bird or synsql." default:"auto" enum:"auto,spider,bird,synsql"`
	Split          string        `help:"Split of --candidates." default:"dev"`
	Candidates     files         `help:"Files of candidates that were written before: their questions are offered as examples." placeholder:"FILE..."`
	Listen         string        `help:"Address. One that other machines reach needs a token." default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
	Token          string        `help:"Environment variable that holds the token which requests have to bring." default:"CAPER_SERVE_TOKEN" placeholder:"VARIABLE"`
	Host           []string      `help:"Names by which a proxy on this machine passes requests on." placeholder:"NAME,..."`
	Timeout        time.Duration `help:"Time limit of one query." default:"5s"`
	RequestTime    time.Duration `help:"Time limit of one request." default:"1m"`
	Together       int           `help:"Requests worked on at a time." default:"4"`
	generatorFlags `embed:""`
	repairFlags    `embed:""`
	selectFlags    `embed:""`
	modelFlags     `embed:""`
	serverFlags    `embed:""`
}

func (c *serveCommand) Help() string {
	return `Example:
  caper serve --bench spider --candidates rollouts.jsonl --model runs/prm/model
  caper serve --bench spider --generator model:path=runs/policy/model,n=8,temperature=1 --model runs/prm/model
  caper serve --bench spider --server http://localhost:8000/v1 --server-model qwen --generator server:style=ddl,n=8

Open http://127.0.0.1:8080. Programs use POST /api/ask and POST /api/score; docs/serving.md describes them. --model colours clauses, and judges with --judge prm.`
}

// Validate checks the flags.
func (c *serveCommand) Validate() error {
	return cmp.Or(checkTimeout(c.Timeout), checkTimeout(c.RequestTime), checkNumber("--together", c.Together, 1, 1024), c.generatorFlags.check(c.Split, &c.serverFlags),
		c.repairFlags.check(&c.serverFlags), c.selectFlags.check(&c.serverFlags), c.modelFlags.check(), c.serverFlags.check())
}

func (c *serveCommand) Run(ctx context.Context) error {
	defer overlapWaits()()
	token, err := c.token()
	if err != nil {
		return err
	}
	bench, err := data.OpenBenchmark(c.Bench, c.Format)
	if err != nil {
		return err
	}
	defer bench.Close()
	const mostRows, mostBytes = 2_000, 16 << 20 // of a result; a request holds one for each candidate
	bench.Limits.Timeout, bench.Limits.Rows, bench.Limits.Bytes = c.Timeout, mostRows, mostBytes
	if ids, err := bench.DatabaseIDs(); err != nil {
		return err
	} else if len(ids) == 0 {
		return fmt.Errorf("benchmark %s has no databases: put the file of a database NAME at %s", c.Bench, bench.DatabasePath("NAME"))
	}
	service, err := c.service(bench)
	if err != nil {
		return err
	}
	for _, name := range c.Host {
		service.Hosts = append(service.Hosts, strings.ToLower(name))
	}
	service.Token, service.Limits.Time, service.Limits.Together = token, c.RequestTime, c.Together
	l, err := net.Listen("tcp", c.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("--listen %s: another program has this port: end it, or choose another port; 0 is any that is free", c.Listen)
	}
	if err != nil {
		return fmt.Errorf("--listen %s: %w: choose another address", c.Listen, err)
	}
	fmt.Fprintf(os.Stderr, "http://%s answers; ctrl-C ends it\n", l.Addr())
	return service.Serve(ctx, l)
}

func (c *serveCommand) savesWhenInterrupted() {}

// token is the secret that requests bring, "" for none.
func (c *serveCommand) token() (string, error) {
	token := os.Getenv(c.Token)
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return "", usageError{fmt.Errorf("--listen %s: want HOST:PORT", c.Listen)}
	}
	if ip := net.ParseIP(host); token == "" && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", usageError{fmt.Errorf("--listen %s: other machines reach it: put a token into the environment variable %s", c.Listen, c.Token)}
	}
	return token, nil
}

// service opens models and candidates.
func (c *serveCommand) service(bench *data.Benchmark) (*serve.Service, error) {
	s := &serve.Service{Bench: bench, Limits: serve.DefaultLimits(), Known: map[serve.Question][]solve.Candidate{}}
	var prompter *solve.Prompter
	var err error
	if s.Generators, prompter, err = c.generatorFlags.open(bench, c.Split, &c.modelFlags, &c.serverFlags); err != nil {
		return nil, err
	}
	if s.Repairer, err = c.repairFlags.open(bench, prompter, &c.serverFlags); err != nil {
		return nil, err
	}
	if s.Select, err = c.selectFlags.options(bench, &c.modelFlags, &c.serverFlags); err != nil {
		return nil, err
	}
	if judge, ok := s.Select.Judge.(*solve.RewardJudge); ok {
		s.Scorer = judge
	} else if c.Model != "" {
		scorer, err := c.scorer(c.Model)
		if err != nil {
			return nil, err
		}
		s.Scorer = solve.NewRewardJudge(scorer, bench.Prompt)
	}
	if questions, err := bench.Questions(c.Split); err == nil {
		for _, q := range questions {
			s.Examples = append(s.Examples, serve.Question{Database: q.DBID, Text: q.Question, Evidence: q.Evidence})
		}
	}
	if len(c.Candidates) == 0 {
		return s, nil
	}
	pools, err := solve.ReadPools(c.Candidates, bench, c.Split, func(string) bool { return true })
	if err != nil {
		return nil, err
	}
	if len(pools) == 0 {
		return nil, errors.New("--candidates: none is for a question of the split: name another --split")
	}
	for _, p := range pools {
		q := serve.Question{Database: p.Question.DBID, Text: p.Question.Question, Evidence: p.Question.Evidence}.Normal()
		s.Known[q] = append(s.Known[q], p.Candidates...)
	}
	return s, nil
}
