package main

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"strings"

	"caper/data"
	"caper/solve"
)

// poolFlags are shared by the commands that work on files of candidates.
type poolFlags struct {
	benchFlags `embed:""`
	Candidates files  `help:"Candidate files: ours, official Spider or BIRD form, or maps of systems." required:"" placeholder:"FILE..."`
	Out        string `help:"File to write." required:"" type:"path"`
}

// solveFlags are those of a stage that can be resumed.
type solveFlags struct {
	poolFlags `embed:""`
	Resume    bool `help:"Go on where a stopped run to the same file left off."`
}

// resultBytes is the size of the cache of results.
const resultBytes = 256 << 20

func (f *poolFlags) check() error {
	if data.IsParquet(f.Out) {
		return fmt.Errorf("--out %s: the file is JSON Lines: choose another name", f.Out)
	}
	return cmp.Or(f.benchFlags.check(), checkOutput(f.Out, f.Candidates...), checkRereadable("--candidates", f.Candidates...))
}

// pools reads the candidates, and says which questions it has none for.
func (f *poolFlags) pools(bench *data.Benchmark) ([]solve.Pool, error) {
	if err := f.checkDatabases(bench); err != nil {
		return nil, err
	}
	pools, err := solve.ReadPools(f.Candidates, bench, f.Split, f.keeps)
	if err != nil {
		return nil, err
	}
	if len(pools) == 0 {
		return nil, fmt.Errorf("%s: no candidates: give files with some, or keep more databases with --db and --not-db", strings.Join(f.Candidates, ", "))
	}
	questions, err := bench.Questions(f.Split)
	if err != nil {
		return nil, err
	}
	kept := 0
	for _, q := range questions {
		if f.keeps(q.DBID) {
			kept++
		}
	}
	if missing := kept - len(pools); missing > 0 {
		fmt.Fprintf(os.Stderr, "%s of %d have no candidates, and get no line\n", counted(missing, "question"), kept)
	}
	return pools, nil
}

// output is the file to write, with what its lines depend on, and closes the progress.
func (f *solveFlags) output(bench *data.Benchmark, more map[string]string, total int) (out solve.Output, done func()) {
	progress, done := newProgress(os.Stderr, work{doing: "solving", done: "solved"}, total)
	return solve.Output{Path: f.Out, Resume: f.Resume, Settings: f.settings(bench, more), Progress: progress,
		Workers: cmp.Or(f.Workers, 3*runtime.NumCPU())}, done
}
