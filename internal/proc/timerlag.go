package proc

import "time"

// LagThreshold is the delay up to which a machine does not count as late.
const LagThreshold = 2 * time.Millisecond

// LagInterval returns the interval between two measurements of delay for the given lease: a
// hundredth of the lease, between 1 ms and 10 ms.
func LagInterval(lease time.Duration) time.Duration {
	return min(max(lease/100, time.Millisecond), 10*time.Millisecond)
}

// MeasureTimerLag measures the delay of timers in this process until done is closed.
// MeasureTimerLag calls late with each delay that exceeds LagThreshold.
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
