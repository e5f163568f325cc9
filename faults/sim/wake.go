package sim

import (
	"slices"
	"time"
)

// readers are goroutines of clients that wait in Read. What they wait for may
// come to several at one instant. They are let go one by one, each when all
// others wait again; and two of one client at one node never at the very same
// instant, if they can be told apart. Else whatever they do next they would do
// at one instant too, after a sleep of the same length say, and race for the
// connections of their pool. The zero value is empty.
type readers struct {
	waking []*conn // there is something to see for whoever reads these
	now    time.Time
	woken  []rank // who was let go now
}

// note tells whoever reads the connection that there is something to see.
// Callers hold w.mu.
func (c *conn) note() {
	w := c.world
	switch {
	case !c.reading: // whoever reads next looks first
	case w.closed:
		c.wake()
	case !slices.Contains(w.readers.waking, c):
		w.readers.waking = append(w.readers.waking, c)
		if !w.sleeping.IsZero() {
			w.rouse()
		}
	}
}

func (c *conn) wake() {
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

// rank orders connections by what was last said on them.
func (c *conn) rank(what string) rank {
	return rank{who: c.client.name, where: c.node.name, what: what, message: c.said}
}

// next takes out the connection whose reader is let go next, nil if there is
// none now. It reports whether somebody has to wait for the next instant.
// Readers of a paused client wait until it goes on.
func (r *readers) next() (next *conn, crowded bool) {
	if len(r.waking) == 0 {
		return nil, false
	}
	if now := time.Now(); !r.now.Equal(now) {
		r.now, r.woken = now, r.woken[:0]
	}
	var first rank
	for _, c := range r.waking {
		if c.client.state.Paused {
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

// crowd reports whether another one of its link was let go now that can be told
// apart from it.
func (r *readers) crowd(one rank) bool {
	for _, other := range r.woken {
		if other.who == one.who && other.where == one.where && other.compare(one) != 0 {
			return true
		}
	}
	return false
}
