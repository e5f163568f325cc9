package workerpool

import (
	"context"
	"math"
	"testing"
	"time"
)

// model runs jobs under a limiter, for a machine with the given capacity. It returns the share of
// the jobs that showed an overload, and the mean number of jobs in progress.
func model(p *limiter, jobs, can int) (busy, width float64) {
	type job struct {
		turn turn
		busy bool
	}
	var inHand []job
	for n := range jobs {
		for p.inHand < int(p.width) {
			turn, err := p.begin(context.Background())
			if err != nil {
				panic(err)
			}
			inHand = append(inHand, job{turn, p.inHand > can})
		}
		width += float64(len(inHand))
		first := inHand[0]
		inHand = inHand[1:]
		p.end()
		p.learn(first.turn, first.busy)
		if first.busy {
			busy++
		}
		if n == jobs-1 {
			for range inHand {
				p.end()
			}
		}
	}
	return busy / float64(jobs), width / float64(jobs)
}

// TestPace checks that the limiter finds the capacity of the machine, and finds it again after a
// change.
func TestPace(t *testing.T) {
	p := newPace(2, 40)
	for _, can := range []int{10, 3, 25, 1, 12} {
		model(p, 400, can)
		busy, width := model(p, 2000, can)
		t.Logf("a machine that takes %d: %.1f in hand, %.3f busy", can, width, busy)
		if least, most := 0.6*float64(can), 1.1*float64(can)+1; width < least || width > most {
			t.Errorf("a machine that takes %d had %.1f jobs; want %.1f to %.1f", can, width, least, most)
		}
		// Each probe affects a whole round of jobs; with a capacity of one or two the limiter
		// probes all the time.
		if limit := max(0.3, 1.5/float64(can)); busy > limit {
			t.Errorf("a machine that takes %d: %.3f of the jobs found it busy; want at most %.3f", can, busy, limit)
		}
	}
}

// TestPaceIsNotLazy checks that the limit reaches its maximum if no job shows an overload.
func TestPaceIsNotLazy(t *testing.T) {
	for _, c := range []struct{ start, most, jobs int }{{2, 12, 100}, {4, 24, 350}, {12, 12, 1}, {30, 12, 1}} {
		p := newPace(c.start, c.most)
		model(p, c.jobs, math.MaxInt)
		if int(p.width) != c.most {
			t.Errorf("after %d jobs %v at a time; want %d", c.jobs, p.width, c.most)
		}
	}
}

// TestPaceNeedsEvidence checks that jobs below the limit do not raise it.
func TestPaceNeedsEvidence(t *testing.T) {
	p := newPace(4, 40)
	for range 100 {
		turn, err := p.begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p.end()
		p.learn(turn, false)
	}
	if p.width != 4 {
		t.Errorf("%v at a time after jobs one by one; want 4", p.width)
	}
}

func TestPaceEndsWithItsContext(t *testing.T) {
	p := newPace(1, 1)
	if _, err := p.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := p.begin(ctx)
		ended <- err
	}()
	select {
	case err := <-ended:
		t.Fatalf("a second job began: %v", err)
	case <-time.After(10 * time.Millisecond):
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("no error though the context was done")
	}
}
