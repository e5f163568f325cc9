package sim

import (
	"slices"
	"time"

	"github.com/lockfault/lockfault/faults/topology"
)

// readers are goroutines of clients that wait in Read. What they wait for may
// come to several at one instant. They are let go one by one, each when all
// others wait again; and two of one client never at the very same instant, if
// they can be told apart. Else whatever they do next they would do at one
// instant too, after a sleep of the same length say, and race for the
// connections of a pool. The zero value is empty.
type readers struct {
	waking []*conn // there is something to see for whoever reads these
	now    time.Time
	woken  []rank // who was let go now
}

// note tells whoever reads the connection that there is something to see.
// Callers hold w.mu.
func (c *conn) note() {
	w := c.world
	if !c.reading {
		return // whoever reads next looks first
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

// linger lets a reader that was told see it soon, not now.
func (c *conn) linger() {
	c.from = c.world.noticedAt(c.link())
	c.world.plan(c.from, c.rank("wake"), func() {}) // Run looks again then
}

// noticedAt returns when a client learns of what happens to a link now: up to a
// microsecond later. A script's times are round ones, at which the client's own
// timers end, and of two things at one instant a select takes either.
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

// rank orders connections by what was last said on them.
func (c *conn) rank(what string) rank {
	return rank{who: c.client.Name, where: c.node.Name, what: what, message: c.said}
}

// next takes out the connection whose reader is let go next, nil if there is
// none now. It reports whether somebody has to wait for the next instant.
// Readers of a paused client wait until it goes on.
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

// crowd reports whether another one of its client was let go now that can be
// told apart from it.
func (r *readers) crowd(one rank) bool {
	for _, other := range r.woken {
		if other.who == one.who && other.compare(one) != 0 {
			return true
		}
	}
	return false
}
