package strategies

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// watchdog calls renew periodically between start and stop, until renew reports that the client
// does not hold the lock. A failed renewal is repeated after another period. The methods are safe
// for concurrent use. All methods except close return without waiting for a renewal in progress.
type watchdog struct {
	period time.Duration
	renew  func(ctx context.Context) (ours bool, err error)

	mu      sync.Mutex
	stopped chan struct{} // closed to stop the running watchdog; nil if no watchdog runs
	running sync.WaitGroup
}

// start starts the watchdog unless it runs already.
func (w *watchdog) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped != nil {
		return
	}
	stopped := make(chan struct{})
	w.stopped = stopped
	w.running.Go(func() { w.run(stopped) })
}

// stop stops the watchdog if it runs: no renewal begins after stop.
func (w *watchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped != nil {
		close(w.stopped)
		w.stopped = nil
	}
}

// close stops the watchdog and waits until its last renewal has ended.
func (w *watchdog) close() {
	w.stop()
	w.running.Wait()
}

func (w *watchdog) run(stopped chan struct{}) {
	timer := time.NewTimer(w.period)
	defer timer.Stop()
	for {
		select {
		case <-stopped:
			return
		case <-timer.C:
		}
		if !w.runs(stopped) {
			return
		}
		// Like Redisson's, a renewal in progress is not cancelled, so it has no ctx.
		if ours, err := w.renew(context.Background()); err == nil && !ours {
			w.end(stopped)
			return
		}
		timer.Reset(w.period)
	}
}

// runs reports whether the watchdog with the given stop channel is the current watchdog.
func (w *watchdog) runs(stopped chan struct{}) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stopped == stopped
}

// end marks the watchdog as ended, so that the next acquire starts a new watchdog.
func (w *watchdog) end(stopped chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped == stopped {
		w.stopped = nil
	}
}

// wheelPeriod returns a third of the lease plus a random delay of up to a hundredth of the lease
// and at most 100 ms. Redisson's timers run on a wheel with steps of 100 ms, so they fire a little
// late, in a different phase for each process.
func wheelPeriod(lease time.Duration, random *rand.Rand) time.Duration {
	late := min(100*time.Millisecond, lease/100)
	return lease/3 + time.Duration(random.Int64N(int64(late)))
}
