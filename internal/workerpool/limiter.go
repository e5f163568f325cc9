package workerpool

import (
	"context"
	"math"
	"sync"
)

// limiter says how many jobs may be in hand at a time, where more than the machine can take
// spoil each other. It finds out as a sender finds out what a network can take: after
// each round of jobs one more, until the machine shows that it has too much to do, then
// seven tenths. What is in hand when it slows down may show the same, and says nothing
// new. The first rounds are twice as large as the one before, to twice the start.
//
// Source of the algorithm: V. Jacobson, "Congestion Avoidance and Control", SIGCOMM 1988
// (slow start, and additive increase with multiplicative decrease), and R. Jain and K. K.
// Ramakrishnan, "Congestion Avoidance in Computer Networks with a Connectionless Network
// Layer", 1988 (to slow down at signs of congestion, before anything is lost).
type limiter struct {
	mu        sync.Mutex
	change    *sync.Cond
	most      float64
	width     float64 // how many may be in hand
	threshold float64 // from where it grows slowly
	inHand    int
	slowed    int // how often
}

// A turn is a job that is in hand.
type turn struct {
	slowed int  // how often it had slowed down when the job began
	full   bool // no more could be in hand
}

// newPace starts with some jobs at a time, and most is the limit.
func newPace(start, most int) *limiter {
	p := &limiter{most: float64(most), width: float64(min(start, most)), threshold: float64(2 * start)}
	p.change = sync.NewCond(&p.mu)
	return p
}

// begin waits until another job may be in hand, or the context is done.
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

// end gives a turn back that came to nothing.
func (p *limiter) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inHand--
	p.change.Broadcast()
}

// learn is told whether a job showed that the machine had too much to do.
func (p *limiter) learn(t turn, busy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case busy && t.slowed == p.slowed:
		p.slowed++
		p.width = max(1, 0.7*p.width)
		p.threshold = p.width
	case busy || !t.full: // that fewer went well says nothing of more
	case p.width < p.threshold:
		p.width = min(p.most, p.width+1)
	default:
		p.width = min(p.most, p.width+1/math.Floor(p.width))
	}
	p.change.Broadcast()
}
