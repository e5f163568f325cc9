package real

import (
	"slices"
	"sync"
)

// fifoMutex is the lock of a world. Only the goroutine that holds it decides, and nothing else
// moves meanwhile. The goroutine that plays the script holds it except inside [World.Run]; there,
// the goroutines that carry messages take it in the order of their arrival. A sync.Mutex would not
// keep that order: a later goroutine could overtake one that has waited since before the script's
// last step. The zero value is unlocked. It is safe for concurrent use.
type fifoMutex struct {
	mu    sync.Mutex
	taken bool
	over  bool
	queue []waiter
}

// waiter is the channel on which a goroutine waits, with a buffer for one token.
type waiter chan struct{}

// take locks, and blocks until the caller has the lock.
func (t *fifoMutex) take() { t.takeAt(nil) }

// takeAt acts like take, but waits on a given channel. The lock may have been given to that channel
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

// pass hands the lock to the goroutine that has waited longest, and unlocks if none waits.
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

// give hands the lock to the goroutine that waits, or will wait, on a given channel.
func (t *fifoMutex) give(to waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue = slices.DeleteFunc(t.queue, func(w waiter) bool { return w == to })
	to <- struct{}{}
}

// end ends all locking: every pending and later take returns at once.
func (t *fifoMutex) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	for _, w := range t.queue {
		w <- struct{}{}
	}
	t.queue = nil
}
