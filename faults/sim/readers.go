package sim

import (
	"slices"
	"time"

	"github.com/lockfault/lockfault/faults/topology"
)

// readers schedules the goroutines of clients that wait in Read. Data may arrive for several of
// them at one instant. They continue one by one, each when all others wait again.
//
// Two readers of one client never continue at the same instant if their ranks differ. Otherwise
// their next actions, for example after sleeps of equal length, would also fall on one instant, and
// they would race for the connections of a pool. The zero value is empty.
type readers struct {
	waking []*conn // connections whose readers have something to see
	now    time.Time
	woken  []rank // ranks of the readers that continued at now
}

// note notifies the connection's reader, if any, that there is something to see. Callers hold w.mu.
func (c *conn) note() {
	w := c.world
	if !c.reading {
		return // the next reader looks before it waits
	}
	if w.closed {
		c.wake()
		return
	}
	c.from = time.Time{}
	if !slices.Contains(w.readers.waking, c) {
		w.readers.waking = append(w.readers.waking, c)
	}
	w.rouse()
}

// linger delays a reader's pending notification slightly, to noticedAt.
func (c *conn) linger() {
	c.from = c.world.noticedAt(c.link())
	c.world.plan(c.from, c.rank("wake"), func() {}) // Run looks again at that time
}

// noticedAt returns when a client notices a change of a link that happens now: up to 1 µs later.
// Scripts use round times, at which the client's own timers also fire, and select chooses at random
// between two events at one instant.
func (w *World) noticedAt(on topology.Link) time.Time {
	const most = time.Microsecond
	now := time.Now()
	return now.Add(most/2 + time.Nanosecond + w.top.Links.Jitter(most/2-time.Nanosecond, topology.JitterKey{On: on, What: "soon", Sent: now.Sub(w.began)}))
}

func (c *conn) wake() {
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

// rank returns the rank of a connection by its last request.
func (c *conn) rank(what string) rank {
	return rank{who: c.client.Name, where: c.node.Name, what: what, message: c.said}
}

// next removes and returns the connection whose reader continues next, or nil. crowded reports
// whether a reader must wait for the next instant. Readers of a paused client wait until it
// resumes.
func (r *readers) next() (next *conn, crowded bool) {
	if len(r.waking) == 0 {
		return nil, false
	}
	now := time.Now()
	if !r.now.Equal(now) {
		r.now, r.woken = now, r.woken[:0]
	}
	var first rank
	for _, c := range r.waking {
		if c.client.State.Paused || c.from.After(now) {
			continue
		}
		rank := c.rank("")
		switch {
		case r.crowd(rank):
			crowded = true
		case next == nil || rank.compare(first) < 0:
			next, first = c, rank
		}
	}
	if next != nil {
		r.waking = slices.DeleteFunc(r.waking, func(c *conn) bool { return c == next })
		r.woken = append(r.woken, first)
	}
	return next, crowded
}

// crowd reports whether a reader of the same client but a different rank has already continued at
// this instant.
func (r *readers) crowd(one rank) bool {
	for _, other := range r.woken {
		if other.who == one.who && other.compare(one) != 0 {
			return true
		}
	}
	return false
}
