package workerpool

import (
	"context"
	"math"
	"sync"
)

// A limiter limits the number of jobs in progress where too many jobs at a time would disturb each
// other. It adapts like a sender to a network: after each round of jobs the limit grows by 1, until
// a job shows that the machine is overloaded, and then shrinks to seven tenths. Jobs that were
// already in progress when the limit shrank may show the same overload and do not shrink it again.
// Up to twice the start value, the limit doubles each round.
//
// Source of the algorithm: V. Jacobson, "Congestion Avoidance and Control", SIGCOMM 1988 (slow
// start, and additive increase with multiplicative decrease), and R. Jain and K. K. Ramakrishnan,
// "Congestion Avoidance in Computer Networks with a Connectionless Network Layer", 1988 (slowing
// down at signs of congestion, before anything is lost).
type limiter struct {
	mu        sync.Mutex
	change    *sync.Cond
	most      float64
	width     float64 // the current limit
	threshold float64 // the limit grows slowly from here on
	inHand    int
	slowed    int // number of times that the limit shrank
}

// A turn is the permission to have one job in progress.
type turn struct {
	slowed int  // value of limiter.slowed when the job began
	full   bool // the limit was reached
}

// newPace returns a limiter that begins at start jobs and never exceeds most.
func newPace(start, most int) *limiter {
	p := &limiter{most: float64(most), width: float64(min(start, most)), threshold: float64(2 * start)}
	p.change = sync.NewCond(&p.mu)
	return p
}

// begin blocks until another job may begin or ctx is done. The caller must call end in both cases.
func (p *limiter) begin(ctx context.Context) (turn, error) {
	defer context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.change.Broadcast()
	})()
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.inHand >= int(p.width) && ctx.Err() == nil {
		p.change.Wait()
	}
	p.inHand++
	return turn{p.slowed, p.inHand >= int(p.width)}, ctx.Err()
}

// end ends a turn.
func (p *limiter) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inHand--
	p.change.Broadcast()
}

// learn adapts the limit to whether a job showed that the machine was overloaded.
func (p *limiter) learn(t turn, busy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case busy && t.slowed == p.slowed:
		p.slowed++
		p.width = max(1, 0.7*p.width)
		p.threshold = p.width
	case busy || !t.full: // a job below the limit shows nothing about a higher limit
	case p.width < p.threshold:
		p.width = min(p.most, p.width+1)
	default:
		p.width = min(p.most, p.width+1/math.Floor(p.width))
	}
	p.change.Broadcast()
}
