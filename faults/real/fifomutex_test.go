package real

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// waiting waits until so many wait for their turn.
func (t *fifoMutex) waiting(n int) {
	for {
		t.mu.Lock()
		have := len(t.queue)
		t.mu.Unlock()
		if have == n {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// TestTurnsComeInOrder checks that the lock is taken in the order of arrival, by one goroutine at a
// time.
func TestTurnsComeInOrder(t *testing.T) {
	var turns fifoMutex
	var all sync.WaitGroup
	var got, want []int
	turns.take()
	for i := range 20 {
		want = append(want, i)
		all.Go(func() {
			turns.take()
			got = append(got, i) // the race detector watches
			turns.pass()
		})
		turns.waiting(i + 1)
	}
	turns.pass()
	all.Wait()
	if !slices.Equal(got, want) {
		t.Errorf("the turns were %v", got)
	}
	turns.take()
	turns.pass()
}

// TestTurnsAreGiven checks that give hands the lock to a goroutine before it asks for it, and
// before all that wait.
func TestTurnsAreGiven(t *testing.T) {
	for name, asks := range map[string]bool{"to one who asked": true, "to one who will": false} {
		t.Run(name, func(t *testing.T) {
			var turns fifoMutex
			var all sync.WaitGroup
			var got []string
			mine := make(waiter, 1)
			turns.take()
			all.Go(func() {
				turns.take()
				got = append(got, "another")
				turns.pass()
			})
			turns.waiting(1)
			me := func() {
				turns.takeAt(mine)
				got = append(got, "I")
				turns.pass()
			}
			if asks {
				all.Go(me)
				turns.waiting(2)
			}
			turns.give(mine)
			if !asks {
				all.Go(me)
			}
			all.Wait()
			if !slices.Equal(got, []string{"I", "another"}) {
				t.Errorf("the turns were %q", got)
			}
			turns.take() // nothing is left of what was given
		})
	}
}

func TestTurnsEnd(t *testing.T) {
	var turns fifoMutex
	var all sync.WaitGroup
	turns.take()
	for range 3 {
		all.Go(turns.take)
	}
	turns.waiting(3)
	turns.end()
	all.Wait()
	turns.take()
	turns.pass()
	turns.take()
}
