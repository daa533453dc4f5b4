package main

import (
	"log/slog"
	"os"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// newProgress shows on f how many of total predictions are judged: a bar where f is a
// terminal, a log line every few seconds elsewhere. A run of a moment shows nothing.
// done takes the bar away, once or more often.
func newProgress(f *os.File, total int) (progress func(judged int), done func()) {
	if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		return barOf(f, total)
	}
	log := slog.New(slog.NewTextHandler(f, nil))
	const interval = 5 * time.Second
	began, last, before := time.Now(), time.Now(), -1
	return func(judged int) {
		if before < 0 {
			before = judged - 1 // of the run that this one goes on with
		}
		if time.Since(last) < interval {
			return
		}
		last = time.Now()
		rate := float64(judged-before) / time.Since(began).Seconds()
		log.Info("judging", "done", judged, "of", total, "per_second", int(rate),
			"eta", time.Duration(float64(total-judged)/rate*float64(time.Second)).Round(time.Second))
	}, func() {}
}

// barOf is a bar that begins after a second.
func barOf(f *os.File, total int) (progress func(judged int), done func()) {
	var pool *mpb.Progress
	var bar *mpb.Bar
	began := time.Now()
	progress = func(judged int) {
		if bar == nil {
			if time.Since(began) < time.Second {
				return
			}
			pool = mpb.New(mpb.WithOutput(f), mpb.WithWidth(40), mpb.WithAutoRefresh())
			bar = pool.AddBar(int64(total), mpb.BarRemoveOnComplete(),
				mpb.PrependDecorators(decor.CountersNoUnit("judged %d/%d ")),
				mpb.AppendDecorators(decor.AverageSpeed(0, " %.0f/s"), decor.AverageETA(decor.ET_STYLE_GO, decor.WCSyncSpace)))
		}
		bar.SetCurrent(int64(judged))
	}
	return progress, func() {
		if bar == nil {
			return
		}
		bar.Abort(true)
		pool.Wait()
		bar = nil
	}
}
