package cuda

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// Work is done in order, when it is waited for, and not before.
func TestStreamOrder(t *testing.T) {
	b := newBench(t)
	other, err := b.gpu.NewStream(HighPriority)
	b.must(err)
	defer other.Close()
	event, err := b.gpu.NewEvent(true)
	b.must(err)
	defer event.Close()
	end, err := b.gpu.NewEvent(true)
	b.must(err)
	defer end.Close()
	add := b.function("add")
	x, y := b.floats(4), b.floats(4)
	launch := Launch{Grid: Dim{X: 1}, Block: Dim{X: 4}}

	b.must(add.Launch(b.stream, launch, new(Args).Ptr(x).Float32(10).Int32(4)))
	b.must(b.stream.Record(event))
	b.must(add.Launch(b.stream, launch, new(Args).Ptr(x).Float32(100).Int32(4)))
	b.must(other.Wait(event))
	b.must(other.Copy(y, x, 16))
	b.must(other.Record(end))

	if done, err := event.Done(); err != nil || done {
		t.Errorf("event done %v, %v", done, err)
	}
	if done, err := b.stream.Done(); err != nil || done {
		t.Errorf("stream done %v, %v", done, err)
	}
	b.must(end.Synchronize())
	if done, err := end.Done(); err != nil || !done {
		t.Errorf("event waited for: done %v, %v", done, err)
	}
	if d, err := end.Since(event); err != nil || d < 0 {
		t.Errorf("%v from the first to the second event, %v", d, err)
	}
	if got := b.read(x, 4); got[1] != 111 {
		t.Errorf("x = %v", got)
	}
	// other waited for the event only; the mock runs a stream no further than needed, but
	// Done above did one more step of it, so both sums are right.
	if got := b.read(y, 4); got[1] != 11 && got[1] != 111 {
		t.Errorf("y = %v", got)
	}
}

// Who does not wait reads what was there before, NaN in fresh memory.
func TestNobodyWaited(t *testing.T) {
	b := newBench(t)
	x := b.floats(4)
	host, err := b.gpu.AllocHost(16)
	b.must(err)
	b.must(b.stream.ToHost(host, x))
	if v := HostAs[float32](host)[2]; !math.IsNaN(float64(v)) {
		t.Errorf("read %v before the copy was waited for", v)
	}
	b.must(b.stream.Synchronize())
	if v := HostAs[float32](host.Slice(8, 16)); v[0] != 2 || v[1] != 3 {
		t.Errorf("read %v", v)
	}
	b.must(host.Free())
}

func TestUntimedEvents(t *testing.T) {
	b := newBench(t)
	e, err := b.gpu.NewEvent(false)
	b.must(err)
	defer e.Close()
	if _, err := e.Since(e); err == nil || !strings.Contains(err.Error(), "NewEvent(true)") {
		t.Errorf("got %v", err)
	}
}

// A captured graph does nothing at first, and the same again at each launch; it can be
// given other numbers, and other work.
func TestGraph(t *testing.T) {
	b := newBench(t)
	add := b.function("add")
	x := b.floats(4)
	capture := func(values ...float32) *Graph {
		g, err := b.stream.Capture(func() error {
			for _, v := range values {
				if err := add.Launch(b.stream, Launch{Grid: Dim{X: 1}, Block: Dim{X: 4}}, new(Args).Ptr(x).Float32(v).Int32(4)); err != nil {
					return err
				}
			}
			return nil
		})
		b.must(err)
		return g
	}
	expect := func(want float32) {
		t.Helper()
		if got := b.read(x, 4); got[0] != want || got[3] != want+3 {
			t.Errorf("x = %v, want %v at first", got, want)
		}
	}

	first := capture(1, 2)
	expect(0)
	exec, err := first.Instantiate()
	b.must(err)
	b.must(first.Close())
	b.must(exec.Upload(b.stream))
	b.must(exec.Launch(b.stream))
	b.must(exec.Launch(b.stream))
	expect(6)

	numbers := capture(10, 20)
	calls := testMock.Record(func() { b.must(exec.Update(numbers)) })
	if len(calls) != 1 {
		t.Errorf("an update of numbers took %v", calls)
	}
	b.must(numbers.Close())
	b.must(exec.Launch(b.stream))
	expect(36)

	longer := capture(100, 100, 100)
	b.must(exec.Update(longer))
	b.must(longer.Close())
	b.must(exec.Launch(b.stream))
	expect(336)
	b.must(exec.Close())
}

// A capture takes in streams that wait for it, and says when one does not come back.
func TestGraphOfTwoStreams(t *testing.T) {
	b := newBench(t)
	side, err := b.gpu.NewStream(NormalPriority)
	b.must(err)
	defer side.Close()
	fork, err := b.gpu.NewEvent(false)
	b.must(err)
	defer fork.Close()
	join, err := b.gpu.NewEvent(false)
	b.must(err)
	defer join.Close()
	x, y := b.floats(4), b.floats(4)
	work := func(joined bool) func() error {
		return func() error {
			err := errors.Join(b.stream.Fill32(x, 0, 4), b.stream.Record(fork), side.Wait(fork), side.Copy(y, x, 16), side.Record(join))
			if joined {
				err = errors.Join(err, b.stream.Wait(join))
			}
			return err
		}
	}
	g, err := b.stream.Capture(work(true))
	b.must(err)
	exec, err := g.Instantiate()
	b.must(err)
	b.must(exec.Launch(b.stream))
	if got := b.read(y, 4); got[3] != 0 {
		t.Errorf("y = %v", got)
	}
	b.must(exec.Close())
	b.must(g.Close())

	if _, err := b.stream.Capture(work(false)); err == nil || !strings.Contains(err.Error(), "STREAM_CAPTURE_UNJOINED") || !strings.Contains(err.Error(), "wait for an event") {
		t.Errorf("an unjoined stream: %v", err)
	}
	b.must(side.Synchronize()) // both are of use again
	b.must(b.stream.Synchronize())
}

// Waiting inside a capture ends it with a reason, an error of the work comes through, and
// the stream stays of use.
func TestBrokenCapture(t *testing.T) {
	b := newBench(t)
	_, err := b.stream.Capture(func() error { return b.stream.Synchronize() })
	if err == nil || !strings.Contains(err.Error(), "STREAM_CAPTURE_UNSUPPORTED") || !strings.Contains(err.Error(), "Stream.Capture") {
		t.Errorf("got %v", err)
	}
	_, err = b.stream.Capture(func() error { b.stream.Synchronize(); return nil })
	if err == nil || !strings.Contains(err.Error(), "STREAM_CAPTURE_INVALIDATED") {
		t.Errorf("got %v", err)
	}
	planned := errors.New("planned")
	if _, err := b.stream.Capture(func() error { return planned }); !errors.Is(err, planned) {
		t.Errorf("got %v", err)
	}
	b.must(b.stream.Synchronize())
}

// Other threads may record into a capture: goroutines wander.
func TestCaptureOnSeveralThreads(t *testing.T) {
	b := newBench(t)
	x := b.floats(4)
	g, err := b.stream.Capture(func() error {
		done := make(chan error)
		for i := range 4 {
			go func() { done <- b.stream.Fill32(x+Ptr(4*i), 0, 1) }()
		}
		return errors.Join(<-done, <-done, <-done, <-done)
	})
	b.must(err)
	exec, err := g.Instantiate()
	b.must(err)
	b.must(exec.Launch(b.stream))
	if got := b.read(x, 4); got[3] != 0 {
		t.Errorf("x = %v", got)
	}
	b.must(errors.Join(exec.Close(), g.Close()))
}
