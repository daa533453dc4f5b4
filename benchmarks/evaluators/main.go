// Command evaluators times the official test-suite evaluator of Spider and caper on
// the same prediction files, in turn, and checks that they give the same accuracy. See
// run.sh.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"caper/data"
)

func main() {
	bench := flag.String("bench", "", "benchmark folder in Spider layout")
	split := flag.String("split", "dev", "split of the benchmark")
	pred := flag.String("pred", "", "prediction file")
	official := flag.String("official", "", "folder of the official evaluation.py")
	python := flag.String("python", "python3", "interpreter with its packages")
	caper := flag.String("caper", "bin/caper", "our binary")
	out := flag.String("out", "out/evaluators", "folder to work in")
	rounds := flag.Int("rounds", 3, "times that everything runs")
	flag.Parse()
	p := pair{bench: *bench, official: *official, python: *python, caper: *caper, out: *out}
	if err := p.run(*split, *pred, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "evaluators:", err)
		os.Exit(1)
	}
}

// pair is the two evaluators and where they work.
type pair struct{ bench, official, python, caper, out string }

func (p pair) run(split, pred string, rounds int) error {
	files, err := p.export(split, pred)
	if err != nil {
		return err
	}
	fmt.Printf("%-32s %10s %10s %8s\n", "predictions", "official s", "caper s", "times")
	for round := range rounds {
		var theirs, ours time.Duration
		for _, file := range files {
			a, accuracyA, err := p.runOfficial(file)
			if err != nil {
				return err
			}
			b, accuracyB, err := p.runCaper(file)
			if err != nil {
				return err
			}
			if accuracyA != accuracyB {
				return fmt.Errorf("%s: the official script gives %s, caper %s", file, accuracyA, accuracyB)
			}
			fmt.Printf("%-32s %10.2f %10.2f %8.1f   EX %s\n", filepath.Base(file), a.Seconds(), b.Seconds(), a.Seconds()/b.Seconds(), accuracyA)
			theirs, ours = theirs+a, ours+b
		}
		together, _, err := p.runCaper(files...)
		if err != nil {
			return err
		}
		fmt.Printf("round %-26d %10.2f %10.2f %8.1f\n", round+1, theirs.Seconds(), ours.Seconds(), theirs.Seconds()/ours.Seconds())
		fmt.Printf("%-32s %10.2f %10.2f %8.1f\n", "  all files in one caper", theirs.Seconds(), together.Seconds(), theirs.Seconds()/together.Seconds())
	}
	return nil
}

// export writes gold and each system's predictions in the official form, one query a
// line, for the questions whose databases are there.
func (p pair) export(split, pred string) (files []string, err error) {
	bench, err := data.OpenBenchmark(p.bench, "spider")
	if err != nil {
		return nil, err
	}
	defer bench.Close()
	questions, err := bench.Questions(split)
	if err != nil {
		return nil, err
	}
	place, gold := map[data.QuestionID]int{}, []string{}
	for _, q := range questions {
		if _, err := os.Stat(bench.DatabasePath(q.DBID)); err == nil {
			place[q.ID] = len(gold)
			gold = append(gold, oneLine(q.Gold)+"\t"+q.DBID)
		}
	}
	systems := map[string][]string{}
	for r, err := range data.ReadRollouts(pred, bench, split) {
		if err != nil {
			return nil, err
		}
		if systems[r.Source] == nil {
			systems[r.Source] = slices.Repeat([]string{"SELECT"}, len(gold)) // an empty line would part two dialogues
		}
		if i, ok := place[r.QuestionID]; ok && oneLine(r.SQL) != "" {
			systems[r.Source][i] = oneLine(r.SQL)
		}
	}
	if err := p.write("gold.txt", gold); err != nil {
		return nil, err
	}
	for _, system := range slices.Sorted(maps.Keys(systems)) {
		if err := p.write(system+".txt", systems[system]); err != nil {
			return nil, err
		}
		files = append(files, filepath.Join(p.out, system+".txt"))
	}
	return files, nil
}

func oneLine(query string) string { return strings.Join(strings.Fields(query), " ") }

func (p pair) write(name string, lines []string) error {
	return os.WriteFile(filepath.Join(p.out, name), []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

// accuracyRow is the last figure of the official script's row of accuracies.
var accuracyRow = regexp.MustCompile(`(?m)^execution .* (\d\.\d+)\s*$`)

func (p pair) runOfficial(file string) (time.Duration, string, error) {
	elapsed, text, err := timed(p.python, "benchmarks/evaluators/official.py", p.official, "--etype", "exec",
		"--gold", filepath.Join(p.out, "gold.txt"), "--pred", file, "--db", filepath.Join(p.bench, "database"))
	row := accuracyRow.FindSubmatch(text)
	if err == nil && row == nil {
		err = fmt.Errorf("no accuracy in the official script's output")
	}
	if err != nil {
		return 0, "", fmt.Errorf("official script on %s: %w", file, err)
	}
	return elapsed, string(row[1]), nil
}

func (p pair) runCaper(files ...string) (time.Duration, string, error) {
	elapsed, text, err := timed(p.caper, append([]string{"eval", "ex", "--rule", "test-suite", "--bench", p.bench, "--json",
		"--gold", filepath.Join(p.out, "gold.txt"), "--out", filepath.Join(p.out, "verdicts.jsonl"), "--pred"}, files...)...)
	var summary struct {
		EX float64 `json:"ex"`
	}
	if err == nil {
		err = json.Unmarshal(text, &summary)
	}
	if err != nil {
		return 0, "", fmt.Errorf("caper on %v: %w", files, err)
	}
	return elapsed, fmt.Sprintf("%.3f", summary.EX), nil
}

// timed runs a program and returns what it prints.
func timed(name string, arguments ...string) (time.Duration, []byte, error) {
	command := exec.Command(name, arguments...)
	command.Stderr = os.Stderr
	start := time.Now()
	text, err := command.Output()
	return time.Since(start), text, err
}
