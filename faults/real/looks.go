package real

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
)

// A Looker is an [Owned] of a service that can be asked whose a lock is, past the links and while others ask it, too.
type Looker interface {
	// Look asks the server's own question about the lock of that name, [faults.Lock.Query], and returns those who have it now, in any
	// order. It blocks until that is known or ctx is done. What doesn't exist yet nobody has.
	Look(ctx context.Context, query, name string) ([]Holder, error)
}

// A Holder is one of those who have a lock, as a server has it.
type Holder struct {
	// Owner is what stands there for him: a value that only one client has sent names that client.
	Owner string
	// Left is how long he has it unless something happens, by the server's clock; 0 means for good.
	Left time.Duration
	// Session says that he has it as long as his connection lasts.
	Session bool
}

// looker returns who answers whose the lock is on a service's server; nil if nobody does.
func (s *server) looker() Looker {
	if s.world.cfg.Service == nil || s.world.cfg.Lock.Query == "" {
		return nil
	}
	l, _ := s.found.(Looker)
	return l
}

// looks reports whether somebody looks at the lock on that server.
func (s *server) looks() bool { return s.admin != nil || s.looker() != nil }

// ask reads whose the lock is on a service's server, as [World.look] does.
func (s *server) ask(l Looker) (keys []faults.Key, took time.Duration, err error) {
	w := s.world
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	name := w.cfg.Lock.Keys[0]
	asked := time.Now()
	holders, err := l.Look(ctx, w.cfg.Lock.Query, name)
	took = time.Since(asked)
	w.note(s.Name, s.Name+" to answer", took-s.trip())
	if err != nil {
		return nil, 0, fmt.Errorf("real: %s: asking whose the lock is: %w", s.Name, err)
	}
	s.lasts = slices.ContainsFunc(holders, func(h Holder) bool { return h.Session })
	return []faults.Key{held(holders, s.Clock.Rate(), asked.Sub(w.began))}, took + slack, nil
}

// held returns holders as the lock's key: of several, until the first has it no longer.
func held(holders []Holder, rate float64, asked time.Duration) (key faults.Key) {
	var left time.Duration
	for _, h := range holders {
		key.Words = append(key.Words, h.Owner)
		if h.Left != 0 && (left == 0 || h.Left < left) {
			left = h.Left
		}
	}
	slices.Sort(key.Words)
	switch len(key.Words) {
	case 0:
		return faults.Key{}
	case 1:
		key.Type = "string"
	default:
		key.Type = "set"
	}
	if left != 0 {
		key.Expires = asked + time.Duration(float64(left)/rate)
	}
	return key
}

// notice records how the lock stands on a service's server, where many requests may be under way: the last that was answered, nil
// if none was, or any that was not. It returns what the answered one did.
//
// Whose doing a change was is read off it. Who has the lock now has taken it. Who has it no more has given it back, if anything of his
// is under way; else, if he had it as long as his connection lasts, that has ended; else somebody has taken it away, who is known
// if nobody else has anything under way.
func (w *World) notice(s *server, answered *message) (did faults.Effect) {
	if w.record == nil || s.looker() == nil || !s.Answers() {
		return ""
	}
	lasted := s.lasts
	keys, took, err := w.look(s)
	if err != nil {
		w.must(err)
		return ""
	}
	w.overdue(s, keys)
	by := ""
	if answered != nil {
		by = answered.conn.wire.client
	}
	busy := w.busy(s, by)
	sole := ""
	if len(busy) == 1 {
		sole = busy[0]
	}
	change := func(keys []faults.Key, took time.Duration, cause checker.Cause, client string) {
		if d := w.changed(s, keys, took, cause, client, nil); d != "" && client == by {
			did = d
		}
	}
	was, _ := w.ledger.Owner(s.Name)
	now, known := w.ledger.Whose(s.Name, keys)
	free := []faults.Key{{}}
	switch {
	case was == now || was == "" || !known:
	case slices.Contains(busy, was):
		change(free, slack, checker.ByCommand, was)
	case lasted:
		change(free, slack, checker.BySession, "")
	}
	if now == "" {
		now = sole
	}
	change(keys, took, checker.ByCommand, now)
	return did
}

// busy returns the clients that have a request under way with a server, and the one that had.
func (w *World) busy(s *server, had string) (names []string) {
	if had != "" {
		names = append(names, had)
	}
	for on, wire := range w.links {
		for c := range maps.Values(wire.conns) {
			if c.server == s && len(c.asked) > 0 {
				names = append(names, on.client)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// introduce tells the ledger what clients said of themselves when their connections began: whoever has one still may have the lock by it.
func (w *World) introduce() {
	for _, on := range slices.SortedFunc(maps.Keys(w.links), func(a, b link) int {
		return cmp.Or(strings.Compare(a.client, b.client), strings.Compare(a.node, b.node), strings.Compare(a.server, b.server))
	}) {
		for _, c := range w.links[on].list() {
			w.ledger.Sent(on.client, c.names)
		}
	}
}

// looksInLease is how often in a lease servers of a service are asked whose the lock is though nobody was answered: sessions end.
const looksInLease = 50

// keepLooking has the servers asked again and again that are nobody's followers.
func (w *World) keepLooking() {
	if w.record == nil || !slices.ContainsFunc(w.servers, func(s *server) bool { return s.looker() != nil }) {
		return
	}
	for _, s := range w.servers {
		if s.Leader == nil {
			w.notice(s, nil)
		}
	}
	w.plan(time.Now().Add(max(w.cfg.TTL/looksInLease, 5*time.Millisecond)), w.keepLooking)
}
