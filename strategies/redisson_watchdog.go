package strategies

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// watchdog calls renew periodically between start and stop, until renew reports
// that the lock isn't ours. A renewal that fails is tried again after another
// period. Its methods are safe for concurrent use and, but for close, don't
// wait for a renewal that is on its way.
type watchdog struct {
	period time.Duration
	renew  func(ctx context.Context) (ours bool, err error)

	mu      sync.Mutex
	stopped chan struct{} // closed to stop the running one; nil if none runs
	running sync.WaitGroup
}

// start starts the watchdog unless it runs.
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

// stop stops the watchdog if it runs: no renewal begins any more.
func (w *watchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped != nil {
		close(w.stopped)
		w.stopped = nil
	}
}

// close stops the watchdog and waits until its last renewal is over.
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
		// No ctx: like Redisson's, a renewal on its way is not called back.
		if ours, err := w.renew(context.Background()); err == nil && !ours {
			w.end(stopped)
			return
		}
		timer.Reset(w.period)
	}
}

// runs reports whether the watchdog that stopped would stop is the present one.
func (w *watchdog) runs(stopped chan struct{}) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stopped == stopped
}

// end marks the watchdog as over, so that the next acquire starts a new one.
func (w *watchdog) end(stopped chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped == stopped {
		w.stopped = nil
	}
}

// wheelPeriod returns a third of the lease and up to a hundredth of it, at most
// 100 ms, more: Redisson's timers sit on a wheel that turns in steps of 100 ms,
// and fire a little late, each process's in a phase of its own.
func wheelPeriod(lease time.Duration, random *rand.Rand) time.Duration {
	late := min(100*time.Millisecond, lease/100)
	return lease/3 + time.Duration(random.Int64N(int64(late)))
}
