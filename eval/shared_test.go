package eval

import (
	"iter"
	"os"
	"path/filepath"
	"testing"

	"caper/data"
	"caper/eval/exactmatch"
)

// sharedFile finds test data that lies beside the repository, if it is there.
func sharedFile(t testing.TB, parts ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{"..", "..", "shared", "data"}, parts...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no test data: %v", err)
	}
	return path
}

func openShared(t testing.TB, name string) *data.Benchmark {
	t.Helper()
	bench, err := data.OpenBenchmark(sharedFile(t, name), "auto")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bench.Close() })
	return bench
}

func spider(t testing.TB) *data.Benchmark { t.Helper(); return openShared(t, "spider") }

func stream(rollouts []data.Rollout) iter.Seq2[data.Rollout, error] {
	return func(yield func(data.Rollout, error) bool) {
		for _, r := range rollouts {
			if !yield(r, nil) {
				return
			}
		}
	}
}

var scripts = []exactmatch.Script{exactmatch.Spider, exactmatch.TestSuite, exactmatch.First}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err == nil {
		err = os.WriteFile(to, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
