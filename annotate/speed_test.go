package annotate

import (
	"path/filepath"
	"testing"

	"caper/data"
)

// BenchmarkSpider annotates the predictions of eight systems on Spider dev, from
// file to file.
func BenchmarkSpider(b *testing.B) {
	predictions := shared(b, "predictions", "spider_dev.jsonl")
	rollouts := 0
	for b.Loop() {
		bench, err := data.OpenBenchmark(shared(b, "spider"), "spider")
		if err != nil {
			b.Fatal(err)
		}
		// One database has no rows.
		with := func(yield func(data.Rollout, error) bool) {
			for r, err := range data.ReadRollouts(predictions, bench, "dev") {
				if r.DBID != "wta_1" && !yield(r, err) {
					return
				}
			}
		}
		summary, err := Write(b.Context(), bench, with, DefaultOptions(), Output{Path: filepath.Join(b.TempDir(), "tuples.jsonl")})
		if err != nil {
			b.Fatal(err)
		}
		bench.Close()
		rollouts += summary.Rollouts
	}
	b.ReportMetric(float64(rollouts)/b.Elapsed().Seconds(), "rollouts/s")
}
