package real

import (
	"slices"
	"sync"
)

// fifoMutex is the lock of a world: whoever has the turn decides, and nothing else
// moves meanwhile. The goroutine that plays the script has it whenever it isn't
// inside [World.Run]; in there the goroutines that carry messages take it in
// the order in which they came. A mutex wouldn't keep that order, and so let one who came
// later get in before another who has waited since before the script's last
// step. In the zero value nobody has the turn. Safe for concurrent use.
type fifoMutex struct {
	mu    sync.Mutex
	taken bool
	over  bool
	queue []waiter
}

// waiter is where somebody waits; it has room for one note.
type waiter chan struct{}

// take waits for the turn.
func (t *fifoMutex) take() { t.takeAt(nil) }

// takeAt is take, waiting at a given place, where the turn may have been given
// already.
func (t *fifoMutex) takeAt(at waiter) {
	t.mu.Lock()
	if len(at) > 0 {
		<-at
		t.mu.Unlock()
		return
	}
	if !t.taken || t.over {
		t.taken = true
		t.mu.Unlock()
		return
	}
	if at == nil {
		at = make(waiter, 1)
	}
	t.queue = append(t.queue, at)
	t.mu.Unlock()
	<-at
}

// pass passes the turn on to whoever waits longest, if anybody does.
func (t *fifoMutex) pass() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) == 0 {
		t.taken = false
		return
	}
	next := t.queue[0]
	t.queue[0] = nil
	t.queue = t.queue[1:]
	next <- struct{}{}
}

// give gives the turn to one who waits, or will wait, at that place.
func (t *fifoMutex) give(to waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue = slices.DeleteFunc(t.queue, func(w waiter) bool { return w == to })
	to <- struct{}{}
}

// end lets everybody have the turn, now and later.
func (t *fifoMutex) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	for _, w := range t.queue {
		w <- struct{}{}
	}
	t.queue = nil
}
