package cuda

// #cgo noescape cuEventRecord
// #cgo nocallback cuEventRecord
// #cgo noescape cuStreamWaitEvent
// #cgo nocallback cuStreamWaitEvent
// #include "driver.h"
import "C"

import (
	"fmt"
	"math"
	"time"
)

// Priority of a stream: blocks of a higher one are scheduled first.
type Priority int

const (
	NormalPriority Priority = iota
	HighPriority            // for work that others wait for, such as collectives
)

// Stream is a queue of work on a GPU, run in order. Work of two streams overlaps unless
// one waits for an Event of the other.
type Stream struct {
	device *Device
	handle C.CUstream
}

// NewStream makes a stream that does not wait for the default stream.
func (d *Device) NewStream(p Priority) (*Stream, error) {
	var least, greatest C.int // the number of a higher priority is lower
	if r := C.cuCtxGetStreamPriorityRange(d.context, &least, &greatest); r != 0 {
		return nil, d.failure(r, "cuCtxGetStreamPriorityRange", "")
	}
	number := least
	if p == HighPriority {
		number = greatest
	}
	s := &Stream{device: d}
	if r := C.cuStreamCreateWithPriority(d.context, &s.handle, C.CU_STREAM_NON_BLOCKING, number); r != 0 {
		return nil, d.failure(r, "cuStreamCreateWithPriority", "%d", number)
	}
	return s, nil
}

// Device is where the stream runs.
func (s *Stream) Device() *Device { return s.device }

// Synchronize waits until all work of the stream is done. An error of a kernel launched
// before comes out here.
func (s *Stream) Synchronize() error {
	if r := C.cuStreamSynchronize(s.device.context, s.handle); r != 0 {
		return s.device.failure(r, "cuStreamSynchronize", "")
	}
	return nil
}

// Done reports that no work is left.
func (s *Stream) Done() (bool, error) {
	r := C.cuStreamQuery(s.device.context, s.handle)
	if r != 0 && r != C.CUDA_ERROR_NOT_READY {
		return false, s.device.failure(r, "cuStreamQuery", "")
	}
	return r == 0, nil
}

// Wait makes the stream's further work wait for an event, which may be another GPU's.
func (s *Stream) Wait(e *Event) error {
	if r := C.cuStreamWaitEvent(s.device.context, s.handle, e.handle, 0); r != 0 {
		return s.device.failure(r, "cuStreamWaitEvent", "")
	}
	return nil
}

// Record lets the event happen when the stream's work up to here is done.
func (s *Stream) Record(e *Event) error {
	if r := C.cuEventRecord(s.device.context, e.handle, s.handle); r != 0 {
		return s.device.failure(r, "cuEventRecord", "")
	}
	return nil
}

// Close frees the stream once its work is done; it does not wait.
func (s *Stream) Close() error {
	if r := C.cuStreamDestroy_v2(s.device.context, s.handle); r != 0 {
		return s.device.failure(r, "cuStreamDestroy", "")
	}
	return nil
}

// Event is a moment in a stream's work.
type Event struct {
	device *Device
	handle C.CUevent
	timed  bool
}

// NewEvent makes an event. Only timed ones know when they happened, which costs some
// time at each Record.
func (d *Device) NewEvent(timed bool) (*Event, error) {
	e := &Event{device: d, timed: timed}
	var flags C.uint
	if !timed {
		flags = C.CU_EVENT_DISABLE_TIMING
	}
	if r := C.cuEventCreate(d.context, &e.handle, flags); r != 0 {
		return nil, d.failure(r, "cuEventCreate", "")
	}
	return e, nil
}

// Synchronize waits until the event has happened.
func (e *Event) Synchronize() error {
	if r := C.cuEventSynchronize(e.device.context, e.handle); r != 0 {
		return e.device.failure(r, "cuEventSynchronize", "")
	}
	return nil
}

// Done reports that the event has happened, or was never recorded.
func (e *Event) Done() (bool, error) {
	r := C.cuEventQuery(e.device.context, e.handle)
	if r != 0 && r != C.CUDA_ERROR_NOT_READY {
		return false, e.device.failure(r, "cuEventQuery", "")
	}
	return r == 0, nil
}

// Since returns the time from start to e, both timed and past; steps of half a microsecond.
func (e *Event) Since(start *Event) (time.Duration, error) {
	if !e.timed || !start.timed {
		return 0, fmt.Errorf("cuda: Event.Since needs two events made by NewEvent(true)")
	}
	var ms C.float
	if r := C.cuEventElapsedTime(e.device.context, &ms, start.handle, e.handle); r != 0 {
		return 0, e.device.failure(r, "cuEventElapsedTime", "between two events")
	}
	return time.Duration(math.Round(float64(ms) * float64(time.Millisecond))), nil
}

// Close frees the event.
func (e *Event) Close() error {
	if r := C.cuEventDestroy_v2(e.device.context, e.handle); r != 0 {
		return e.device.failure(r, "cuEventDestroy", "")
	}
	return nil
}
