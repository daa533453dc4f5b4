// Command selector measures how well one of several candidates is chosen without a
// model: the best single system, plain majority, each method of the selector, and the
// best that any choice could do, with McNemar's test against majority; then pools of
// some systems drawn at random.
//
//	go run ./benchmarks/selector --bench spider --candidates predictions.jsonl --not-db wta_1 --rule bird
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"caper/data"
	"caper/eval"
	"caper/solve"
)

func main() {
	bench := flag.String("bench", "", "benchmark folder")
	candidates := flag.String("candidates", "", "candidate file")
	split := flag.String("split", "dev", "split of the benchmark")
	db := flag.String("db", "", "only this database")
	notDB := flag.String("not-db", "", "all databases but this")
	rule := flag.String("rule", "bird", "rule of the verdicts")
	draws := flag.Int("draws", 200, "random pools")
	seed := flag.Uint64("seed", 1, "of the draws")
	complete := flag.Bool("complete", false, "only systems with a candidate for every question")
	flag.Parse()
	keep := func(id string) bool { return (*db == "" || id == *db) && id != *notDB }
	if err := run(*bench, *candidates, *split, keep, eval.Rule(*rule), *draws, *seed, *complete); err != nil {
		fmt.Fprintln(os.Stderr, "selector:", err)
		os.Exit(1)
	}
}

func run(dir, path, split string, keep func(string) bool, rule eval.Rule, draws int, seed uint64, complete bool) error {
	bench, err := data.OpenBenchmark(dir, "auto")
	if err != nil {
		return err
	}
	defer bench.Close()
	m := &measurement{bench: bench, split: split, rule: rule}
	if err := m.judge(path, keep); err != nil {
		return err
	}
	if err := m.examine(path, keep); err != nil {
		return err
	}
	systems := slices.Sorted(maps.Keys(m.correct))
	if complete {
		systems = slices.DeleteFunc(systems, func(s string) bool { return m.answered[s] < len(m.questions) })
	}
	if err := m.table(systems); err != nil {
		return err
	}
	return m.draws(systems, draws, seed)
}

// measurement holds what is known of every candidate.
type measurement struct {
	bench     *data.Benchmark
	split     string
	rule      eval.Rule
	by        eval.Evaluator
	questions []question
	correct   map[string]int // by system
	answered  map[string]int
	verdicts  map[candidate]eval.Verdict
	rollouts  map[string]data.Rollout // one for each question, to stand for it
}

type question struct {
	solve.Pool
	examined []solve.Examined
}

type candidate struct{ question, source, sql string }

// judge gives verdicts; nothing but the tables below sees them.
func (m *measurement) judge(path string, keep func(string) bool) error {
	m.correct, m.answered = map[string]int{}, map[string]int{}
	m.verdicts, m.rollouts = map[candidate]eval.Verdict{}, map[string]data.Rollout{}
	all := func(yield func(data.Rollout, error) bool) {
		for r, err := range data.ReadPredictions([]string{path}, m.bench, m.split) {
			if (err != nil || keep(r.DBID)) && !yield(r, err) {
				return
			}
		}
	}
	o := eval.ExecutionOptions{Rule: m.rule, Workers: 8}
	m.by = o.Evaluator()
	return eval.Execute(context.Background(), m.bench, all, o, func(j eval.Judged) error {
		m.verdicts[candidate{j.QuestionID.String(), j.Source, j.SQL}] = j.Verdict
		m.rollouts[j.QuestionID.String()] = j.Rollout
		m.answered[j.Source]++
		if j.Verdict == eval.Correct {
			m.correct[j.Source]++
		}
		return nil
	})
}

func (m *measurement) examine(path string, keep func(string) bool) error {
	pools, err := solve.ReadPools([]string{path}, m.bench, m.split, keep)
	if err != nil {
		return err
	}
	examiner := solve.NewExaminer(m.bench, 256<<20)
	for _, p := range pools {
		examined, _, err := examiner.Examine(context.Background(), p)
		if err != nil {
			return err
		}
		m.questions = append(m.questions, question{p, examined})
	}
	return nil
}

// method is a way to choose among a question's candidates.
type method struct {
	name   string
	choose func(q data.Question, pool []solve.Examined) (solve.Examined, bool)
}

func selector(name string, change func(*solve.Options)) method {
	o := solve.DefaultOptions()
	change(&o)
	return method{name, func(q data.Question, pool []solve.Examined) (solve.Examined, bool) {
		d, err := solve.Select(context.Background(), q, pool, o)
		if err != nil {
			return solve.Examined{}, false // no candidates
		}
		return d.Candidates[d.Chosen], true
	}}
}

var methods = []method{
	selector("majority", func(o *solve.Options) { o.Method = solve.Majority }),
	selector("S_maj, mean", func(o *solve.Options) { o.Method, o.Consensus = solve.ByConsensus, solve.Mean }),
	selector("S_maj, jaccard", func(o *solve.Options) { o.Method = solve.ByConsensus }),
	selector("S_maj, mean, gate", func(o *solve.Options) { o.Consensus = solve.Mean }),
	selector("S_maj, jaccard, gate", func(*solve.Options) {}),
}

// outcome is how a method fares on pools of some systems.
func (m *measurement) outcome(name string, systems []string, choose func(question, []solve.Examined) (solve.Examined, bool)) (*eval.Verdicts, int, error) {
	v := &eval.Verdicts{Name: name, By: m.by, Dataset: m.bench.Name}
	correct := 0
	for _, q := range m.questions {
		var pool []solve.Examined
		for _, x := range q.examined {
			if slices.Contains(systems, x.Source) {
				pool = append(pool, x)
			}
		}
		verdict := eval.Wrong
		if x, ok := choose(q, pool); ok {
			verdict = m.verdicts[candidate{x.QuestionID.String(), x.Source, x.SQL}]
		}
		if verdict == eval.Correct {
			correct++
		}
		if err := v.Add(m.rollouts[q.Question.ID.String()], verdict); err != nil {
			return nil, 0, err
		}
	}
	return v, correct, nil
}

func (m *measurement) oracle(q question, pool []solve.Examined) (solve.Examined, bool) {
	for _, x := range pool {
		if m.verdicts[candidate{x.QuestionID.String(), x.Source, x.SQL}] == eval.Correct {
			return x, true
		}
	}
	return solve.Examined{}, false
}

// table compares every method with plain majority.
func (m *measurement) table(systems []string) error {
	best := slices.MaxFunc(systems, func(a, b string) int { return m.correct[a] - m.correct[b] })
	all := []method{{"best single: " + best, func(_ data.Question, pool []solve.Examined) (solve.Examined, bool) {
		i := slices.IndexFunc(pool, func(x solve.Examined) bool { return x.Source == best })
		if i < 0 {
			return solve.Examined{}, false
		}
		return pool[i], true
	}}}
	all = append(all, methods...)
	fmt.Printf("%d questions, %d systems, rule %s\n\n| choice | correct | share | against majority: only it, only majority | McNemar p |\n|---|---|---|---|---|\n",
		len(m.questions), len(systems), m.rule)
	majority, _, err := m.outcome("majority", systems, func(q question, pool []solve.Examined) (solve.Examined, bool) {
		return methods[0].choose(q.Question, pool)
	})
	if err != nil {
		return err
	}
	print := func(name string, choose func(question, []solve.Examined) (solve.Examined, bool)) error {
		v, correct, err := m.outcome(name, systems, choose)
		if err != nil {
			return err
		}
		c, err := eval.CompareVerdicts(majority, v, 1, 1)
		if err != nil {
			return err
		}
		fmt.Printf("| %s | %d | %.2f %% | %d, %d | %.3g |\n", name, correct, 100*float64(correct)/float64(len(m.questions)), c.OnlyB, c.OnlyA, c.P)
		return nil
	}
	for _, way := range all {
		if err := print(way.name, func(q question, pool []solve.Examined) (solve.Examined, bool) { return way.choose(q.Question, pool) }); err != nil {
			return err
		}
	}
	return print("any right (oracle)", m.oracle)
}

// draws compares methods with majority on pools of 3 to 8 systems drawn at random.
func (m *measurement) draws(systems []string, draws int, seed uint64) error {
	random := rand.New(rand.NewPCG(seed, 0))
	type tally struct{ better, worse, equal, significantlyBetter, significantlyWorse, sum, least int }
	tallies := make([]tally, len(methods))
	var worst []string
	for range draws {
		n := 3 + random.IntN(min(8, len(systems))-2)
		drawn := slices.Clone(systems)
		random.Shuffle(len(drawn), func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
		drawn = drawn[:n]
		slices.Sort(drawn)
		var majority *eval.Verdicts
		base := 0
		for k, way := range methods {
			v, correct, err := m.outcome(way.name, drawn, func(q question, pool []solve.Examined) (solve.Examined, bool) { return way.choose(q.Question, pool) })
			if err != nil {
				return err
			}
			if k == 0 {
				majority, base = v, correct
			}
			c, err := eval.CompareVerdicts(majority, v, 1, 1)
			if err != nil {
				return err
			}
			t := &tallies[k]
			t.sum += correct - base
			t.least = min(t.least, correct-base)
			switch {
			case correct > base:
				t.better++
				if c.P < 0.05 {
					t.significantlyBetter++
				}
			case correct < base:
				t.worse++
				if c.P < 0.05 {
					t.significantlyWorse++
					worst = append(worst, way.name+": "+strings.Join(drawn, " "))
				}
			default:
				t.equal++
			}
		}
	}
	fmt.Printf("\n%d pools of 3 to %d systems, seed %d, against majority on the same pool (p < 0.05 by McNemar)\n\n", draws, min(8, len(systems)), seed)
	fmt.Printf("| choice | mean gain, questions | least | better | equal | worse | significantly better | significantly worse |\n|---|---|---|---|---|---|---|---|\n")
	for k, way := range methods[1:] {
		t := tallies[k+1]
		fmt.Printf("| %s | %+.1f | %+d | %d | %d | %d | %d | %d |\n", way.name, float64(t.sum)/float64(draws), t.least, t.better, t.equal, t.worse,
			t.significantlyBetter, t.significantlyWorse)
	}
	for _, w := range worst {
		fmt.Println("significantly worse:", w)
	}
	return nil
}
