package sqlexec

import (
	"sync"
	"time"
)

// watchdog bites when the work that it watches takes too long. It watches one
// piece of work after another. Its timer runs on between them and looks, when it
// fires, whether anything is late: to stop and start one for each query would cost
// more than a short query does.
type watchdog struct {
	mu    sync.Mutex
	bite  func()
	late  time.Time // of the work now; zero between two
	next  time.Time // when the timer fires; zero when it is not set
	timer *time.Timer
	bit   bool
}

func newWatchdog(bite func()) *watchdog { return &watchdog{bite: bite} }

// start begins to watch work that may take as long as limit.
func (d *watchdog) start(limit time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.late = time.Now().Add(limit)
	if d.next.IsZero() || d.late.Before(d.next) {
		d.setTimer()
	}
}

// rest ends the watch, and tells whether it was too late.
func (d *watchdog) rest() (bit bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.late = time.Time{}
	return d.bit
}

// stop ends the timer too.
func (d *watchdog) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
}

func (d *watchdog) setTimer() {
	d.next = d.late
	if d.timer == nil {
		d.timer = time.AfterFunc(time.Until(d.next), d.look)
	} else {
		d.timer.Reset(time.Until(d.next))
	}
}

func (d *watchdog) look() {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.late.IsZero():
		d.next = time.Time{}
	case time.Now().Before(d.late):
		d.setTimer()
	default:
		d.bit = true
		d.bite()
	}
}
