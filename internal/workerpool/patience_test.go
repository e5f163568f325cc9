package workerpool

import (
	"testing"
	"time"
)

// TestPatience checks that a wait for a processor does not count as time of a job, within limits.
func TestPatience(t *testing.T) {
	for _, c := range []struct {
		name   string
		waited time.Duration // in each second
		ticks  int
	}{
		{"an idle machine", 0, 20},
		{"a machine with one other process", 500 * time.Millisecond, 40},
		{"two threads that wait", 1500 * time.Millisecond, 200},
		{"a worker that never runs", time.Second, 200},
	} {
		p := patience(20 * time.Second)
		ticks := 0
		for p.lasts() {
			p.spend(time.Second, c.waited)
			ticks++
		}
		if ticks != c.ticks {
			t.Errorf("%s: a limit of 20s ended after %d s, want %d", c.name, ticks, c.ticks)
		}
	}
}
