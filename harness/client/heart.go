package client

import (
	"sync"
	"time"

	"github.com/lockfault/lockfault/internal/child"
)

// A Gap is a stretch of time in which a process didn't get to run although it
// had something to do, on the clock of [child.SinceBoot].
type Gap struct {
	From time.Duration `json:"from"`
	To   time.Duration `json:"to"`
}

// beat is how often a heart beats, and murmur by how much a beat may be late.
const (
	beat   = 10 * time.Millisecond
	murmur = 2 * time.Millisecond
)

// heart finds out how late timers fire in this process. The zero value beats
// from the first call of beats on.
type heart struct {
	mu   sync.Mutex
	gaps []Gap
}

// beats until the channel is closed.
func (h *heart) beats(done <-chan struct{}) {
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
			h.mu.Lock()
			if len(h.gaps) < 100 {
				h.gaps = append(h.gaps, Gap{due, now})
			}
			h.mu.Unlock()
		}
	}
}

// since returns the gaps since the last time.
func (h *heart) since() []Gap {
	h.mu.Lock()
	defer h.mu.Unlock()
	gaps := h.gaps
	h.gaps = nil
	return gaps
}
