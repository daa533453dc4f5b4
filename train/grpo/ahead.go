package grpo

import (
	"context"
	"time"
)

// ahead is the sampling of a step that began while the one before was learned from. A run
// that is stopped forgets it, and draws that step's answers anew when it is resumed: with
// newer weights.
type ahead struct {
	questions   []int
	epoch, next int // behind them
	cancel      context.CancelFunc
	done        chan struct{} // closed when groups or err are there
	groups      []*group
	err         error
}

// goAhead begins to draw the next step's answers, with the weights that the server has.
func (t *trainer) goAhead(ctx context.Context) {
	epoch, next := t.state.Epoch, t.state.Next
	a := &ahead{questions: t.take(t.config.Train.BatchQuestions, map[int]bool{}), done: make(chan struct{})}
	a.epoch, a.next = t.state.Epoch, t.state.Next
	t.moveTo(epoch, next)
	ctx, a.cancel = context.WithCancel(ctx)
	t.ahead = a
	step := t.state.Step + 2
	go func() {
		defer close(a.done)
		a.groups, a.err = t.collector.draw(ctx, step, a.questions)
	}()
}

// wait waits until what is under way is drawn: the source is then free for new weights.
func (t *trainer) wait(took *phases) {
	if t.ahead == nil {
		return
	}
	started := time.Now()
	<-t.ahead.done
	took.Sample += time.Since(started).Seconds()
}

// useAhead judges the answers that are there already.
func (t *trainer) useAhead(asked map[int]bool, took *phases) ([]*group, error) {
	a := t.ahead
	t.ahead = nil
	defer a.cancel()
	t.moveTo(a.epoch, a.next)
	for _, q := range a.questions {
		asked[q] = true
	}
	if a.err != nil {
		return nil, a.err
	}
	return a.groups, t.collector.finish(a.groups, took)
}

// moveTo sets the place in the questions.
func (t *trainer) moveTo(epoch, next int) {
	again := epoch != t.state.Epoch
	t.state.Epoch, t.state.Next = epoch, next
	if again {
		t.shuffle()
	}
}
