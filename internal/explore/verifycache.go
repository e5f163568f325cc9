package explore

import (
	"context"
	"encoding/binary"
)

// sample sets the share of known paths that are played to verify the tables: one in sample.
const sample = 100

// samples reports whether the path to q is played to verify the tables. Only a path whose last
// transition was looked up is played, and the choice depends only on the state, so it is
// reproducible.
func (s *search) samples(q *searchNode) bool {
	return q.known && binary.BigEndian.Uint16(q.id[:]) < (1<<16)/sample
}

// checks holds the paths that are being played to verify the tables.
type checks struct {
	list     []*searchNode
	outcomes []Outcome
	err      error
	done     chan struct{}
}

// check starts to play the paths of the nodes, all of the same length, while the search continues.
// The method checked records the outcomes.
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

// checked waits for the paths that are being played, and records their outcomes. A player does one
// thing at a time, so checked precedes every other use of the player; the result of the search
// therefore never depends on timing. An error is returned again by later calls.
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
