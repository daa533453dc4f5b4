package solve

import (
	"os"
	"testing"

	_ "github.com/mattn/go-sqlite3"

	"caper/data"
)

// sharedBenchmark opens a benchmark of the shared test data.
func sharedBenchmark(t testing.TB, dir string) *data.Benchmark {
	t.Helper()
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no shared test data: %v", err)
	}
	bench, err := data.OpenBenchmark(dir, "auto")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bench.Close() })
	return bench
}
