package workerpool

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
)

// IdleWorkers holds idle workers, so that what they keep, such as servers, is available to the next
// [Run]. The zero value is empty and ready for use. The creator must call Close. Safe for
// concurrent use.
type IdleWorkers struct {
	mu   sync.Mutex
	idle []*worker
}

// graceOr returns grace, or the default if grace is less than 1.
func graceOr(grace time.Duration) time.Duration {
	if grace < 1 {
		return 2 * time.Second
	}
	return grace
}

// Close ends the workers, and returns when they have ended. Each worker has grace to exit when
// asked, before it is killed; less than 1 means 2 s.
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

// take removes and returns a live worker; nil if there is none.
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

// put adds a worker; a nil worker is ignored.
func (c *IdleWorkers) put(w *worker) {
	if w == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = append(c.idle, w)
}
