package main

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// work is a long job of many parts.
type work struct {
	doing, done string // "judging", "judged"
	bytes       bool   // parts are bytes
}

// amount writes a number of parts.
func (w work) amount(n int) string {
	if w.bytes {
		return fmt.Sprintf("% .1f", decor.SizeB1000(n))
	}
	return strconv.Itoa(n)
}

// newProgress shows on f how many of a work's parts are done: a bar where f is a
// terminal, a log line every few seconds elsewhere. What takes a moment shows nothing.
// end takes the bar away, once or more often.
func newProgress(f *os.File, w work, total int) (progress func(done int), end func()) {
	if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		return barOf(f, w, total)
	}
	log := slog.New(slog.NewTextHandler(f, nil))
	const interval = 5 * time.Second
	began, last, before := time.Now(), time.Now(), -1
	return func(done int) {
		if before < 0 {
			before = max(done-1, 0) // of the run that this one goes on with
		}
		if time.Since(last) < interval || done == before {
			return // a rate needs two moments
		}
		last = time.Now()
		rate := float64(done-before) / time.Since(began).Seconds()
		log.Info(w.doing, "done", w.amount(done), "of", w.amount(total), "per_second", w.amount(int(rate)),
			"eta", time.Duration(float64(total-done)/rate*float64(time.Second)).Round(time.Second))
	}, func() {}
}

// barOf is a bar that begins after a second.
func barOf(f *os.File, w work, total int) (progress func(done int), end func()) {
	var pool *mpb.Progress
	var bar *mpb.Bar
	began := time.Now()
	progress = func(done int) {
		if bar == nil {
			if time.Since(began) < time.Second {
				return
			}
			pool = mpb.New(mpb.WithOutput(f), mpb.WithWidth(40), mpb.WithAutoRefresh())
			count, speed := decor.CountersNoUnit(w.done+" %d/%d "), decor.AverageSpeed(0, " %.0f/s")
			if w.bytes {
				count, speed = decor.CountersKiloByte(w.done+" % .1f/% .1f "), decor.AverageSpeed(decor.SizeB1000(0), " % .0f")
			}
			bar = pool.AddBar(int64(total), mpb.BarRemoveOnComplete(), mpb.PrependDecorators(count),
				mpb.AppendDecorators(speed, decor.AverageETA(decor.ET_STYLE_GO, decor.WCSyncSpace)))
		}
		bar.SetCurrent(int64(done))
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
