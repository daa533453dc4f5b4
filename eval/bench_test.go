package eval

import (
	"context"
	"testing"

	"caper/data"
	"caper/eval/exactmatch"
)

// BenchmarkTestSuiteRule judges the predictions of eight systems on Spider dev.
func BenchmarkTestSuiteRule(b *testing.B) {
	bench := spider(b)
	rollouts := spiderPredictions(b, bench)
	for b.Loop() {
		o := ExecutionOptions{Rule: TestSuite, Workers: 2}
		if err := Execute(context.Background(), bench, stream(rollouts), o, func(Judged) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(rollouts)*b.N)/b.Elapsed().Seconds(), "rollouts/s")
}

// BenchmarkExactMatch does the same by exact match.
func BenchmarkExactMatch(b *testing.B) {
	bench := spider(b)
	rollouts := spiderPredictions(b, bench)
	o := MatchOptions{Schemas: NewSchemas(bench), Workers: 2, Script: exactmatch.Spider}
	for b.Loop() {
		if err := MatchExactly(context.Background(), stream(rollouts), o, func(Matched) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(rollouts)*b.N)/b.Elapsed().Seconds(), "rollouts/s")
}

// spiderPredictions are those whose database is there.
func spiderPredictions(t testing.TB, bench *data.Benchmark) (list []data.Rollout) {
	t.Helper()
	for r, err := range data.ReadRollouts(sharedFile(t, "predictions", "spider_dev.jsonl"), bench, "dev") {
		if err != nil {
			t.Fatal(err)
		}
		if r.DBID != "wta_1" {
			list = append(list, r)
		}
	}
	return list
}
