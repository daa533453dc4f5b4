// Command repair measures the lifecycle of candidates without a model: what the filters
// reject, how many queries with errors run behind repair, and what becomes of those
// that returned nothing. Verdicts come from eval and are seen by nothing but the counts.
//
//	go run ./benchmarks/repair --bench spider --candidates predictions.jsonl --not-db wta_1 --rule bird
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
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
	quorum := flag.Int("quorum", solve.DefaultRepairOptions().Quorum, "groups that agree on nothing; 1000: never")
	show := flag.String("show", "", "list candidates: wrong, correct, changed or failed")
	flag.Parse()
	keep := func(id string) bool { return (*db == "" || id == *db) && id != *notDB }
	if err := run(*bench, *candidates, *split, keep, eval.Rule(*rule), *quorum, *show); err != nil {
		fmt.Fprintln(os.Stderr, "repair:", err)
		os.Exit(1)
	}
}

func run(dir, path, split string, keep func(string) bool, rule eval.Rule, quorum int, show string) error {
	bench, err := data.OpenBenchmark(dir, "auto")
	if err != nil {
		return err
	}
	defer bench.Close()
	questions, err := bench.Questions(split)
	if err != nil {
		return err
	}
	pools, err := solve.ReadPools([]string{path}, bench, split, keep)
	if err != nil {
		return err
	}
	o := solve.DefaultRepairOptions()
	o.Quorum = quorum
	examiner := solve.NewExaminer(bench, 256<<20)
	repairer := &solve.Repairer{Examiner: examiner, RepairOptions: o}
	gold := map[data.QuestionID]string{}
	for _, q := range questions {
		gold[q.ID] = q.Gold
	}
	j := &judge{bench: bench, rule: rule, gold: gold, known: map[key]eval.Verdict{}}
	var repaired []solve.Repaired
	for _, p := range pools {
		r, err := repairer.Repair(context.Background(), p)
		if err != nil {
			return err
		}
		repaired = append(repaired, r)
		for _, x := range r.Candidates {
			j.ask(x.Rollout, original(x))
			j.ask(x.Rollout, x.SQL)
		}
		j.ask(r.Candidates[0].Rollout, gold[p.Question.ID])
		j.ask(r.Candidates[0].Rollout, nothing)
	}
	if err := j.run(); err != nil {
		return err
	}
	count(repaired, j, show)
	return selection(repaired, pools, examiner, j)
}

// nothing is a query that returns nothing: it is right where gold does.
const nothing = "SELECT NULL WHERE 0"

func original(x solve.Examined) string {
	if len(x.Repairs) > 0 {
		return x.Repairs[0].Of
	}
	return x.SQL
}

type key struct {
	id  data.QuestionID
	sql string
}

// judge gives verdicts on queries.
type judge struct {
	bench *data.Benchmark
	rule  eval.Rule
	gold  map[data.QuestionID]string
	asked []data.Rollout
	known map[key]eval.Verdict
}

func (j *judge) ask(r data.Rollout, query string) {
	k := key{r.QuestionID, query}
	if _, ok := j.known[k]; !ok {
		j.known[k] = ""
		r.SQL, r.Gold = query, j.gold[r.QuestionID]
		j.asked = append(j.asked, r)
	}
}

func (j *judge) run() error {
	all := func(yield func(data.Rollout, error) bool) {
		for _, r := range j.asked {
			if !yield(r, nil) {
				return
			}
		}
	}
	return eval.Execute(context.Background(), j.bench, all, eval.ExecutionOptions{Rule: j.rule, Workers: 8}, func(v eval.Judged) error {
		j.known[key{v.QuestionID, v.SQL}] = v.Verdict
		return nil
	})
}

func (j *judge) correct(id data.QuestionID, query string) bool {
	return j.known[key{id, query}] == eval.Correct
}

// tally counts the fate of candidates of one kind.
type tally struct{ all, mended, correct int }

func (t *tally) add(mended, correct bool) {
	t.all++
	if mended {
		t.mended++
		if correct {
			t.correct++
		}
	}
}

func (t tally) String() string {
	return fmt.Sprintf("%d | %d (%.0f %%) | %d", t.all, t.mended, 100*float64(t.mended)/float64(max(t.all, 1)), t.correct)
}

func count(repaired []solve.Repaired, j *judge, show string) {
	codes, wronglyRejected := map[solve.Code]int{}, map[solve.Code]int{}
	kinds := map[string]*tally{}
	operators := map[string]*tally{}
	add := func(m map[string]*tally, name string, mended, correct bool) {
		if m[name] == nil {
			m[name] = &tally{}
		}
		m[name].add(mended, correct)
	}
	ran := func(s solve.State) bool { return s == solve.Clean || s == solve.Empty || s == solve.Degenerate }
	for _, r := range repaired {
		goldEmpty := j.correct(r.Question.ID, nothing)
		for i, x := range r.Candidates {
			before := original(x)
			state := x.State
			if len(x.Repairs) > 0 {
				state = x.Repairs[0].State
			}
			wasCorrect, isCorrect := j.correct(r.Question.ID, before), j.correct(r.Question.ID, x.SQL)
			for _, f := range r.Findings[i] {
				codes[f.Code]++
				if wasCorrect && state == solve.Rejected {
					wronglyRejected[f.Code]++
				}
			}
			name := ""
			switch {
			case state == solve.Clean:
				continue
			case state == solve.Empty && goldEmpty:
				name = "empty, as gold is"
			case state == solve.Degenerate && wasCorrect:
				name = "degenerate, and right"
			case state == solve.Empty:
				name = "empty, unlike gold"
			default:
				name = string(state)
			}
			mended := len(x.Repairs) > 0 && ran(x.State)
			add(kinds, name, mended, isCorrect)
			for _, step := range x.Repairs {
				add(operators, string(step.State)+" by "+step.By, true, isCorrect)
			}
			listed := map[string]bool{
				"wrong": mended && !isCorrect, "correct": mended && isCorrect, "changed": mended && wasCorrect, "failed": !mended && name == "empty, unlike gold", "broken": !mended && (state == solve.Rejected || state == solve.Failed),
			}
			if listed[show] {
				fmt.Printf("-- %s %s: %s\n   GOLD %s\n   WAS  %s\n", r.Question.ID, r.Question.DBID, name, j.gold[r.Question.ID], strings.Join(strings.Fields(before), " "))
				for _, f := range r.Findings[i] {
					fmt.Printf("   %s %s\n", f.Code, f.Message)
				}
				for _, step := range x.Repairs {
					fmt.Printf("   %s: %s\n", step.By, step.Note)
				}
				fmt.Printf("   IS   %s\n", x.SQL)
			}
		}
	}
	fmt.Print("| candidates that were | number | mended | correct then |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Printf("| %s | %v |\n", name, kinds[name])
	}
	fmt.Print("\n| operator | uses | | correct then |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(operators)) {
		fmt.Printf("| %s | %v |\n", name, operators[name])
	}
	fmt.Println("\nfindings:", codes, "of candidates that were correct and rejected:", wronglyRejected)
}

// selection compares choosing with and without repair.
func selection(repaired []solve.Repaired, pools []solve.Pool, examiner *solve.Examiner, j *judge) error {
	before, after, oracleBefore, oracleAfter := 0, 0, 0, 0
	for i, r := range repaired {
		examined, _, err := examiner.Examine(context.Background(), pools[i])
		if err != nil {
			return err
		}
		for _, way := range []struct {
			pool            []solve.Examined
			correct, oracle *int
		}{{examined, &before, &oracleBefore}, {r.Candidates, &after, &oracleAfter}} {
			d, err := solve.Select(context.Background(), r.Question, way.pool, solve.DefaultOptions())
			if err != nil {
				return err
			}
			if j.correct(r.Question.ID, d.Candidates[d.Chosen].SQL) {
				*way.correct++
			}
			if slices.ContainsFunc(way.pool, func(x solve.Examined) bool { return j.correct(r.Question.ID, x.SQL) }) {
				*way.oracle++
			}
		}
	}
	fmt.Printf("\nchosen correctly without repair %d, with %d of %d; any right %d, %d\n", before, after, len(repaired), oracleBefore, oracleAfter)
	return nil
}
