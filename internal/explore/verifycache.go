package explore

import (
	"context"
	"encoding/binary"
)

// sample is how many paths end where the tables say they do for one that is played to see whether it does.
const sample = 100

// samples reports whether a path that ends is to be played, all of whose moves may be known. Which are is a matter of
// the state where it ends, so it is the same each time.
func (s *search) samples(q *searchNode) bool {
	return q.known && binary.BigEndian.Uint16(q.id[:]) < (1<<16)/sample
}

// checks are paths that are being played to see whether they come to what the tables say.
type checks struct {
	list     []*searchNode
	outcomes []Outcome
	err      error
	done     chan struct{}
}

// check has paths played while the search goes on, all of as many moves. What comes of it is taken note of by checked.
func (s *search) check(ctx context.Context, list []*searchNode) error {
	if len(list) == 0 || s.result.Cut != "" || s.result.Untabled != "" {
		return nil
	}
	if err := s.checked(ctx); err != nil || s.result.Untabled != "" {
		return err
	}
	trials := make([]Trial, len(list))
	for i, q := range list {
		trials[i] = s.bound.trial(q.trail)
		trials[i].Last = true
	}
	c := &checks{list: list, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.outcomes, c.err = s.player.Play(ctx, trials)
	}()
	s.checks = c
	return nil
}

// checked waits for the paths that are being played, and takes note of what they came to. A player does one
// thing at a time, so this goes before all that is asked of it; and never depends on who was quicker. An error stays.
func (s *search) checked(ctx context.Context) error {
	c := s.checks
	if c == nil {
		return nil
	}
	<-c.done
	if c.err != nil {
		return c.err
	}
	s.checks = nil
	if s.result.Untabled != "" {
		return nil
	}
	for i, q := range c.list {
		if err := s.take(ctx, q, &c.outcomes[i]); err != nil || s.result.Untabled != "" {
			return err
		}
		if q.outcome.Err != "" {
			s.fails(q, q.outcome.Err)
		}
		q.outcome = nil
	}
	return nil
}
