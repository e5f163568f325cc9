package client

import (
	"time"

	"github.com/lockfault/lockfault/internal/child"
)

// A Gap is a stretch of time in which a process didn't get to run although it
// had something to do, on the clock of [child.SinceBoot].
type Gap struct {
	From time.Duration `json:"from"`
	To   time.Duration `json:"to"`
}

// murmur is by how much a beat may be late.
const murmur = 2 * time.Millisecond

// beatOf is how often somebody looks whether they are late who have to bear a lease
// of that length: a fraction of what the lease bears.
func beatOf(lease time.Duration) time.Duration {
	return min(max(lease/100, time.Millisecond), 10*time.Millisecond)
}

// beats finds out how late timers fire in this process, and tells of it, until
// the channel is closed.
func beats(lease time.Duration, done <-chan struct{}, tell func(Gap)) {
	beat := beatOf(lease)
	ticker := time.NewTimer(beat)
	defer ticker.Stop()
	for {
		due := child.SinceBoot() + beat
		ticker.Reset(beat)
		select {
		case <-done:
			return
		case <-ticker.C:
		}
		if now := child.SinceBoot(); now-due > murmur {
			tell(Gap{due, now})
		}
	}
}
