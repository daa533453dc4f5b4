package train

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// NewProgress shows a bar with rate and ETA when f is a terminal, and otherwise
// logs a line every few seconds. Call the returned function when the run is over.
func NewProgress(f *os.File, log *slog.Logger) (Progress, func()) {
	if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		b := &bar{out: f}
		return b, b.close
	}
	return &lines{log: log, started: time.Now()}, func() {}
}

// bar is a progress bar on a terminal.
type bar struct {
	out    io.Writer
	pool   *mpb.Progress
	bar    *mpb.Bar
	text   string
	before time.Time
}

func (b *bar) Step(done, total int, m Metrics) {
	if b.bar == nil {
		b.pool = mpb.New(mpb.WithOutput(b.out), mpb.WithWidth(40))
		b.bar = b.pool.AddBar(int64(total),
			mpb.PrependDecorators(decor.CountersNoUnit("step %d/%d ")),
			mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return b.text }), decor.EwmaETA(decor.ET_STYLE_GO, 30)))
		b.bar.SetCurrent(int64(done) - 1)
		b.before = time.Now()
	}
	if m.Loss != nil {
		b.text = fmt.Sprintf("loss %.3f  %.0f tokens/s  ETA ", *m.Loss, m.TokensPerSecond)
	}
	b.bar.EwmaSetCurrent(int64(done), time.Since(b.before))
	b.before = time.Now()
}

func (b *bar) close() {
	if b.bar == nil {
		return
	}
	if !b.bar.Completed() {
		b.bar.Abort(false)
	}
	b.pool.Wait()
}

// lines logs at most one line every lineInterval.
type lines struct {
	log     *slog.Logger
	started time.Time
	last    time.Time
	first   int
}

const lineInterval = 5 * time.Second

func (l *lines) Step(done, total int, m Metrics) {
	if l.first == 0 {
		l.first = done
	}
	if time.Since(l.last) < lineInterval && done < total || m.Loss == nil {
		return
	}
	l.last = time.Now()
	perStep := time.Since(l.started) / time.Duration(done-l.first+1)
	l.log.Info("step", "done", done, "total", total, "loss", round(*m.Loss), "accuracy", round(*m.Accuracy),
		"tokens_per_second", int(m.TokensPerSecond), "eta", (perStep * time.Duration(total-done)).Round(time.Second))
}

func round(x float64) float64 { return float64(int(x*1000+0.5)) / 1000 }
