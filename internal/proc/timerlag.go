package proc

import "time"

// LagThreshold is by how much anything may be late on a machine that has time.
const LagThreshold = 2 * time.Millisecond

// LagInterval is how often somebody looks whether they are late who have to bear a
// lease of that length: a fraction of what the lease bears.
func LagInterval(lease time.Duration) time.Duration {
	return min(max(lease/100, time.Millisecond), 10*time.Millisecond)
}

// MeasureTimerLag finds out how late timers fire in this process, and tells by how much if
// that is more than a trifle, until the channel is closed.
func MeasureTimerLag(lease time.Duration, done <-chan struct{}, late func(by time.Duration)) {
	beat := LagInterval(lease)
	timer := time.NewTimer(beat)
	defer timer.Stop()
	for {
		due := time.Now().Add(beat)
		timer.Reset(beat)
		select {
		case <-done:
			return
		case <-timer.C:
		}
		if by := time.Since(due); by > LagThreshold {
			late(by)
		}
	}
}
