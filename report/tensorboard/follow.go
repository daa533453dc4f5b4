package tensorboard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"caper/report/series"
)

// FileName is the event file; TensorBoard takes any name that has tfevents in it.
const FileName = "events.out.tfevents.caper"

// Convert writes the metrics of a run folder to dir/FileName and returns the number of
// lines. Lines have no time of their own: all get that of the metrics' last change.
func Convert(run, dir string) (lines int, err error) {
	info, err := os.Stat(filepath.Join(run, series.FileName))
	if err != nil {
		return 0, fmt.Errorf("metrics of a run: %w", err)
	}
	f := follower{metrics: series.NewReader(run), path: filepath.Join(dir, FileName)}
	defer func() { err = errors.Join(err, f.close()) }()
	err = f.update(info.ModTime())
	return f.lines, err
}

// Follow is Convert that goes on with every line that the run writes, looked for each
// time that the interval has passed, until the context ends. It waits for a run that has
// no metrics yet.
func Follow(ctx context.Context, run, dir string, interval time.Duration) (err error) {
	f := follower{metrics: series.NewReader(run), path: filepath.Join(dir, FileName)}
	defer func() { err = errors.Join(err, f.close()) }()
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	for {
		if err := f.update(time.Now()); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

type follower struct {
	metrics *series.Reader
	path    string
	file    *os.File
	events  *Writer
	lines   int
}

// update writes the new lines; to a new file where the run began its own anew.
func (f *follower) update(at time.Time) error {
	lines, anew, err := f.metrics.Next()
	if err != nil {
		return err
	}
	if anew || f.file == nil {
		if err := f.create(at); err != nil {
			return err
		}
	}
	for _, line := range lines {
		if err := f.events.Write(at, line); err != nil {
			return err
		}
		f.lines++
	}
	return nil
}

func (f *follower) create(at time.Time) error {
	if err := f.close(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
		return err
	}
	// Not over the old file: TensorBoard may be reading that.
	if err := os.Remove(f.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	file, err := os.Create(f.path)
	if err != nil {
		return err
	}
	f.file, f.lines = file, 0
	f.events, err = NewWriter(file, at)
	return err
}

func (f *follower) close() error {
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	return err
}
