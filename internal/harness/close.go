package harness

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// shutdown is one life of a client that has to end.
type shutdown struct {
	of   *participant
	body ClientProcess
}

// close ends all clients and the world, and returns an error that names the clients that did not
// end.
func (s *runner) close() error {
	var all []shutdown
	for _, name := range slices.Sorted(maps.Keys(s.clients)) {
		p := s.clients[name]
		for _, former := range p.lives {
			all = append(all, shutdown{p, former})
		}
		all = append(all, shutdown{p, p.body})
	}
	s.history.Events = slices.Clip(s.history.Events)
	for _, p := range all {
		p.body.Cancel()
	}
	// Clients in a healthy world get a last chance to end because their contexts have ended; then
	// the world closes.
	s.world.Run(s.farewell(), func() bool { return !s.waitsFor(all) })
	err := s.world.Close()
	for _, p := range all {
		p.body.Detach()
	}
	if s.bubble {
		err = errors.Join(err, s.partInBubble(all))
	}
	return err
}

// waitsFor reports whether a client that is not stopped has not ended yet.
func (s *runner) waitsFor(all []shutdown) bool {
	return slices.ContainsFunc(all, func(p shutdown) bool { return !p.body.Done() && !s.stopped(p.of.name) })
}

// farewell returns how long clients may take to end before the world closes. In real time the
// runner does not wait for clients that ignore their contexts: virtual time finds these clients.
func (s *runner) farewell() time.Duration {
	if s.bubble {
		return s.forbearance()
	}
	return min(s.ttl, time.Second)
}

// partInBubble waits until all clients have ended, in virtual time: a remaining goroutine makes the
// bubble fail.
func (s *runner) partInBubble(all []shutdown) error {
	deadline := time.Now().Add(s.forbearance())
	for time.Now().Before(deadline) && slices.ContainsFunc(all, func(p shutdown) bool { return !p.body.Done() }) {
		time.Sleep(time.Second)
	}
	// After many refused connections go-redis retries once a second, and notices only then that its
	// client was closed.
	time.Sleep(2 * time.Second)
	var still []string
	for _, p := range all {
		if !p.body.Done() {
			still = append(still, fmt.Sprintf("%s's %s", p.of.name, p.of.what))
		}
	}
	if len(still) == 0 {
		return nil
	}
	return fmt.Errorf("harness: %s ignores its context: %s still running %v after it was cancelled",
		s.cell.Strategy.Name, strings.Join(still, ", "), s.forbearance())
}
