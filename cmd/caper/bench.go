package main

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"caper/data"
)

// benchFlags choose a benchmark, the part of it that is used, and how its queries run.
type benchFlags struct {
	Bench          string `help:"Benchmark folder." required:"" type:"path"`
	benchPartFlags `embed:""`
}

// benchPartFlags are those of benchFlags that need no benchmark to be named.
type benchPartFlags struct {
	Format  string         `help:"auto, spider, bird or synsql." default:"auto" enum:"auto,spider,bird,synsql"`
	Split   string         `help:"Split of the benchmark." default:"dev"`
	DB      []string       `help:"Only these databases." placeholder:"ID,..."`
	NotDB   []string       `help:"All databases but these." name:"not-db" placeholder:"ID,..."`
	Timeout *time.Duration `help:"Time limit of one query; default: 5s, in eval by the rule bird 30s." placeholder:"DURATION"`
	Workers int            `help:"0: one per core." default:"0"`
}

func (f *benchPartFlags) check() error {
	if f.Timeout != nil {
		if err := checkTimeout(*f.Timeout); err != nil {
			return err
		}
	}
	return checkThreads("--workers", f.Workers)
}

func (f *benchFlags) open() (*data.Benchmark, error) {
	bench, err := data.OpenBenchmark(f.Bench, f.Format)
	if err != nil {
		return nil, err
	}
	if f.Timeout != nil {
		bench.Limits.Timeout = *f.Timeout
	}
	return bench, nil
}

// settings are what a resumable output of a command depends on beside its input.
func (f *benchFlags) settings(bench *data.Benchmark, more map[string]string) map[string]string {
	all := map[string]string{
		"benchmark": bench.Name + " in the layout of " + bench.Layout, "split": f.Split, "limits": fmt.Sprintf("%+v", bench.Limits),
	}
	if build, ok := debug.ReadBuildInfo(); ok {
		all["version"] = build.Main.Version
	}
	maps.Copy(all, more)
	return all
}

// candidates chains the candidates that the flags keep, after one look at all files:
// a broken line, or a database that is not there, ends the command before it begins.
func (f *benchFlags) candidates(ctx context.Context, bench *data.Benchmark, paths []string) (iter.Seq2[data.Rollout, error], error) {
	if err := f.checkDatabases(bench); err != nil {
		return nil, err
	}
	all := readRollouts(paths, bench, f.Split, func(r data.Rollout) bool {
		return f.keeps(r.DBID)
	})
	needed := map[string]bool{}
	for r, err := range all {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		needed[r.DBID] = true
	}
	if len(needed) == 0 {
		return nil, fmt.Errorf("%s: no candidates: give files with some, or keep more databases with --db and --not-db", strings.Join(paths, ", "))
	}
	if err := bench.CheckDatabases(slices.Sorted(maps.Keys(needed))); err != nil {
		return nil, fmt.Errorf("%w (--not-db or --db leave a database out)", err)
	}
	return all, nil
}

// keeps reports that --db and --not-db leave a database in.
func (f *benchFlags) keeps(dbID string) bool {
	return (len(f.DB) == 0 || slices.Contains(f.DB, dbID)) && !slices.Contains(f.NotDB, dbID)
}

// checkDatabases refuses a --db or --not-db that no question is about.
func (f *benchFlags) checkDatabases(bench *data.Benchmark) error {
	questions, err := bench.Questions(f.Split)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, q := range questions {
		known[q.DBID] = true
	}
	for _, flag := range []struct {
		name string
		ids  []string
	}{{"--db", f.DB}, {"--not-db", f.NotDB}} {
		for _, id := range flag.ids {
			if !known[id] {
				return usageError{fmt.Errorf("%s %s: split %s of %s has no question about such a database; it has %s",
					flag.name, id, f.Split, f.Bench, someOf(slices.Sorted(maps.Keys(known))))}
			}
		}
	}
	return nil
}

// someOf lists names, the first few of many.
func someOf(names []string) string {
	const few = 8
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}

// readRollouts chains the candidate files and keeps the candidates that keep names;
// nil keeps all.
func readRollouts(paths []string, bench *data.Benchmark, split string, keep func(data.Rollout) bool) iter.Seq2[data.Rollout, error] {
	return func(yield func(data.Rollout, error) bool) {
		for _, path := range paths {
			for r, err := range data.ReadRollouts(path, bench, split) {
				if err == nil && keep != nil && !keep(r) {
					continue
				}
				if !yield(r, err) || err != nil {
					return
				}
			}
		}
	}
}
