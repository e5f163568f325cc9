package workerpool

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
)

// An IdleWorkers is workers that have nothing to do: what they keep, such as servers, is
// there for the next [Run]. The zero value is empty. Whoever makes one closes it.
// Safe for concurrent use.
type IdleWorkers struct {
	mu   sync.Mutex
	idle []*worker
}

// graceOr returns the grace that a zero value stands for.
func graceOr(grace time.Duration) time.Duration {
	if grace < 1 {
		return 2 * time.Second
	}
	return grace
}

// Close ends the workers, and returns when they have ended. Each has that long to
// leave when asked, before it is killed; less than 1 means 2 s.
func (c *IdleWorkers) Close(grace time.Duration) {
	grace = graceOr(grace)
	c.mu.Lock()
	idle := c.idle
	c.idle = nil
	c.mu.Unlock()
	var ends sync.WaitGroup
	for _, w := range idle {
		ends.Go(func() { w.stop(grace) })
	}
	ends.Wait()
}

// take returns a worker that lives, nil if there is none.
func (c *IdleWorkers) take() *worker {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.idle) > 0 {
		w := c.idle[len(c.idle)-1]
		c.idle = c.idle[:len(c.idle)-1]
		if !errors.Is(w.cmd.Process.Signal(syscall.Signal(0)), os.ErrProcessDone) {
			return w
		}
	}
	return nil
}

// put takes a worker back; nil is none.
func (c *IdleWorkers) put(w *worker) {
	if w == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = append(c.idle, w)
}
