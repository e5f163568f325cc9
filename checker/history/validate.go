package history

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/checker/linear"
)

// farthest is the maximum distance of a time from 0: a quarter of the largest time.Duration, so
// that the difference of two times is valid, too.
const farthest = time.Duration(1) << 61

// order checks that events are possible in the order of the file. Its memory grows with the calls
// under way, not with the file.
type order struct {
	last    time.Duration
	started bool
	clients map[string]*clientCalls
	recent  *clientCalls // calls of the last event's client, which is often the next one's, too
	sweepAt int          // number of clients at which idle ones are dropped
}

// clientCalls holds the calls that a client has under way: one in first, and calls on other locks
// in more.
type clientCalls struct {
	name  string
	first call
	more  map[string]call
}

type call struct {
	key    string
	op     linear.Op // 0: no call
	number int64
	line   int
}

// on returns the call under way on a lock, and whether it is in first; its op is 0 if there is
// none.
func (c *clientCalls) on(key string) (under call, inFirst bool) {
	if c.first.op != 0 && c.first.key == key {
		return c.first, true
	}
	return c.more[key], false
}

// reordered returns a call under way on the same list of locks in another order or spelling.
func (c *clientCalls) reordered(key string) (call, bool) {
	sorted := func(list string) []string { return slices.Sorted(strings.FieldsSeq(list)) }
	want := sorted(key)
	if c.first.op != 0 && slices.Equal(sorted(c.first.key), want) {
		return c.first, true
	}
	for _, other := range c.more {
		if slices.Equal(sorted(other.key), want) {
			return other, true
		}
	}
	return call{}, false
}

func (c *clientCalls) idle() bool { return c.first.op == 0 && len(c.more) == 0 }

func newOrder() *order { return &order{clients: map[string]*clientCalls{}, sweepAt: fewClients} }

const fewClients = 1024

// client returns the calls of a client. Idle clients are dropped only when their number has
// doubled, so each event pays a constant share.
func (o *order) client(name string) *clientCalls {
	if o.recent != nil && o.recent.name == name {
		return o.recent
	}
	c := o.clients[name]
	if c == nil {
		if len(o.clients) >= o.sweepAt {
			for name, c := range o.clients {
				if c.idle() {
					delete(o.clients, name)
				}
			}
			o.sweepAt = max(fewClients, 2*len(o.clients))
		}
		c = &clientCalls{name: name}
		o.clients[name] = c
	}
	o.recent = c
	return c
}

// check returns an error if the event cannot be the next one.
func (o *order) check(r *record) error {
	e := &r.Event
	switch {
	case e.Time > farthest || e.Time < -farthest:
		return errors.New("the time is too far from 0")
	case e.Lease > farthest || e.Lease < -farthest:
		return errors.New("the end of the lease is too far from 0")
	case o.started && e.Time < o.last:
		return fmt.Errorf("time goes back from %s to %s: the lines must be in order of time", o.last, e.Time)
	case e.Client == "" && e.Op != linear.Use:
		return errors.New("it names no client")
	case !plain(e.Client):
		return fmt.Errorf("%.40q is no name of a client: it is too long, or has control characters in it", e.Client)
	case !plain(e.Key):
		return fmt.Errorf("%.40q is no name of a lock: it is too long, or has control characters in it", e.Key)
	case e.Token < 0:
		return fmt.Errorf("there is no fencing token %d: they are positive", e.Token)
	case e.Op == linear.Use && e.Token == 0:
		return errors.New("a use needs a fencing token")
	}
	var err error
	switch {
	case e.Phase == linear.Crash:
		*o.client(e.Client) = clientCalls{name: e.Client}
	case e.Op == linear.Use, e.Phase == linear.Expired:
	case e.Phase == linear.Invoke:
		err = o.called(r)
	default:
		err = o.returned(r)
	}
	if err == nil {
		o.last, o.started = e.Time, true
	}
	return err
}

// plain reports whether a name is printable on one line: short enough and without control
// characters.
func plain(name string) bool {
	for i := range len(name) {
		if name[i] < ' ' || name[i] == 0x7f {
			return false
		}
	}
	return len(name) <= maxName
}

// maxName is the maximum length of a name, in bytes.
const maxName = 1 << 10

func (o *order) called(r *record) error {
	c := o.client(r.Client)
	now := call{r.Key, r.Op, r.call, r.Line}
	before, _ := c.on(r.Key)
	switch {
	case before.op != 0:
		return fmt.Errorf("%s calls %s, but its %s of line %d has not returned", r.Client, r.Op, before.op, before.line)
	case c.first.op == 0:
		c.first = now
	case c.more == nil:
		c.more = map[string]call{r.Key: now}
	default:
		c.more[r.Key] = now
	}
	return nil
}

func (o *order) returned(r *record) error {
	c := o.client(r.Client)
	before, inFirst := c.on(r.Key)
	switch {
	case before.op == 0:
		if other, ok := c.reordered(r.Key); ok {
			return fmt.Errorf("%s returns from %s of %q, which its call of line %d has as %q: write it the same way", r.Client, r.Op, r.Key, other.line, other.key)
		}
		return fmt.Errorf("%s returns from %s, but has not called it", r.Client, r.Op)
	case before.op != r.Op:
		return fmt.Errorf("%s returns from %s, but called %s on line %d", r.Client, r.Op, before.op, before.line)
	case before.number != r.call:
		return fmt.Errorf("%s returns from call %d, but its call under way, of line %d, is %d", r.Client, r.call, before.line, before.number)
	case inFirst:
		c.first = call{}
	default:
		delete(c.more, r.Key)
	}
	return nil
}
