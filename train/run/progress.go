package run

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// Progress shows a run to whoever waits for it.
type Progress interface {
	// Step is told of what is worth showing of a step, nothing of one that was skipped.
	Step(done, total int, shown []Figure)
}

// Figure is a number of a step's, under its name.
type Figure struct {
	Name  string
	Value float64
}

// NewProgress shows a run on f: a bar with rate and ETA when f is a terminal,
// otherwise a log line every few seconds. What else the run logs goes through the
// logger returned, above the bar. Call done when the run is over.
func NewProgress(f *os.File) (p Progress, log *slog.Logger, done func()) {
	if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		b := &bar{out: f}
		return b, slog.New(slog.NewTextHandler(b, nil)), b.close
	}
	log = slog.New(slog.NewTextHandler(f, nil))
	return &lines{log: log}, log, func() {}
}

// pace estimates when a run will be over, from the steps it was seen to do.
type pace struct {
	first int
	since time.Time // when step first was done
}

// left returns the time that the remaining steps will take, 0 while unknown.
func (p *pace) left(done, total int) time.Duration {
	if p.first == 0 {
		p.first, p.since = done, time.Now()
	}
	if done == p.first {
		return 0
	}
	left := time.Since(p.since) / time.Duration(done-p.first) * time.Duration(total-done)
	return left.Round(time.Second)
}

// bar is a progress bar on a terminal.
type bar struct {
	out  io.Writer
	pool *mpb.Progress
	bar  *mpb.Bar
	text atomic.Value // string, read by the goroutine that draws
	pace pace
}

func (b *bar) Step(done, total int, shown []Figure) {
	left := b.pace.left(done, total)
	eta := ""
	if left > 0 {
		eta = fmt.Sprintf("  ETA %v", left)
	}
	if len(shown) > 0 {
		var text strings.Builder
		for _, f := range shown {
			fmt.Fprintf(&text, " %s %s ", f.Name, f)
		}
		b.text.Store(text.String() + eta)
	}
	if b.bar == nil {
		b.pool = mpb.New(mpb.WithOutput(b.out), mpb.WithWidth(40), mpb.WithAutoRefresh())
		b.bar = b.pool.AddBar(int64(total),
			mpb.PrependDecorators(decor.CountersNoUnit("step %d/%d ")),
			mpb.AppendDecorators(decor.Any(func(decor.Statistics) string {
				text, _ := b.text.Load().(string)
				return text
			})))
	}
	b.bar.SetCurrent(int64(done))
}

// Write writes a log line above the bar, or below it when it is full.
func (b *bar) Write(line []byte) (int, error) {
	if b.bar == nil || b.bar.Completed() {
		b.close()
		return b.out.Write(line)
	}
	return b.pool.Write(line)
}

func (b *bar) close() {
	if b.bar == nil {
		return
	}
	if !b.bar.Completed() {
		b.bar.Abort(false)
	}
	b.pool.Wait()
	b.bar = nil
}

// lines logs at most one line every lineInterval.
type lines struct {
	log  *slog.Logger
	last time.Time
	pace pace
}

const lineInterval = 5 * time.Second

func (l *lines) Step(done, total int, shown []Figure) {
	left := l.pace.left(done, total)
	if time.Since(l.last) < lineInterval && done < total || len(shown) == 0 {
		return
	}
	l.last = time.Now()
	line := []any{"done", done, "total", total}
	for _, f := range shown {
		line = append(line, f.Name, f)
	}
	l.log.Info("step", append(line, "eta", left)...)
}

// String has three decimals, or none in large numbers.
func (f Figure) String() string {
	if math.Abs(f.Value) >= 1000 {
		return strconv.FormatFloat(f.Value, 'f', 0, 64)
	}
	return strconv.FormatFloat(math.Round(f.Value*1000)/1000, 'g', -1, 64)
}
