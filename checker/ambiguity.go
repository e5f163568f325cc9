package checker

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// An Ambiguity is the reason why server-side anomalies were not judged.
type Ambiguity struct {
	// Events are indices into the history, in ascending order.
	Events []int `json:"events"`
	// Message is the reason in one plain sentence.
	Message string `json:"says"`
}

// doubtful returns the first event after which the keys on the servers do not identify the owner of
// the lock; nil if they always do.
func (f *index) doubtful() *Ambiguity {
	if service := f.meta.Service; service != "" && len(f.changes) == 0 {
		d := &Ambiguity{Events: []int{}, Message: fmt.Sprintf("Servers of %s never said whose the lock is.", service)}
		got := slices.IndexFunc(f.acquires, func(at int) bool { return f.calls[at].result == OK })
		if got >= 0 && f.meta.Query != "" { // may name a table, key or path that is not the lock's
			c := &f.calls[f.acquires[got]]
			d.Events = append(d.Events, c.end)
			d.Message = fmt.Sprintf("Servers of %s never said whose the lock is, though %s acquired at %s: see whether they are asked for the right thing, %q.",
				service, f.name(c.client), seconds(c.to), strings.Join(strings.Fields(f.meta.Query), " "))
		}
		return d
	}
	first := f.nameless()
	there := slices.IndexFunc(f.changes, func(ch change) bool { return ch.after.value != "" })
	for _, at := range f.acquires { // by end
		c := &f.calls[at]
		if c.result != OK {
			continue
		}
		if first != nil && first.Events[0] < c.end {
			break
		}
		if there < 0 || f.changes[there].at > c.end {
			if f.keyedCall {
				continue // keyless: the lock has a key, but not for this acquire
			}
			return &Ambiguity{[]int{c.end}, fmt.Sprintf("%s acquired at %s, and no server had ever had the key of the lock.", f.name(c.client), seconds(c.to))}
		}
		if d := f.took(c); d != nil {
			return d
		}
		if c.adopted >= 0 {
			return &Ambiguity{[]int{c.end}, fmt.Sprintf("%s acquired at %s by a key of %s, who had released, so the key doesn't say whose the lock is.",
				f.name(c.client), seconds(c.to), f.name(c.adopted))}
		}
	}
	return first
}

// nameless returns the first change to a key whose value does not identify an owner; nil if every
// value does.
func (f *index) nameless() *Ambiguity {
	for i := range f.changes {
		ch := &f.changes[i]
		if ch.after.owner >= 0 || ch.after.value == "" {
			continue
		}
		by := string(ch.cause)
		if ch.by >= 0 {
			by = "by " + f.name(ch.by)
		}
		return &Ambiguity{[]int{ch.at}, fmt.Sprintf("On %s the key became %s at %s (%s), and that doesn't say whose the lock is.",
			f.servers[ch.server].node, ch.after.value, seconds(f.events[ch.at].Time), by)}
	}
	return nil
}

// adopts returns the client whose key c has acquired by, if no server has a key of c itself and that
// client has released; -1 if there is no such client. Such a lock hands its key over.
func (f *index) adopts(c *client) int {
	adopted := -1
	for _, s := range f.servers {
		switch owner := s.key.owner; {
		case owner == c.id:
			return -1
		case owner >= 0 && f.clients[owner].released:
			adopted = owner
		}
	}
	return adopted
}

// took reports an acquire that succeeded by removing the key: the client's last effect on the key
// during the call was a removal, and the key was not the client's again afterwards. The result is
// nil if the acquire did not succeed that way, or if the client held the lock when it called.
func (f *index) took(c *call) *Ambiguity {
	if c.hold >= 0 {
		return nil
	}
	at := -1
	begin := sort.Search(len(f.changes), func(i int) bool { return f.changes[i].at > c.invoke })
	for i := begin; i < len(f.changes) && f.changes[i].at < c.end; i++ {
		switch ch := &f.changes[i]; {
		case ch.after.owner == c.client:
			at = -1
		case ch.by == c.client && ch.after.value == "" && ch.before.value != "":
			at = ch.at
		}
	}
	if at < 0 {
		return nil
	}
	return &Ambiguity{[]int{at, c.end}, fmt.Sprintf("%s acquired at %s by taking the key away at %s, so the key doesn't say whose the lock is.",
		f.name(c.client), seconds(c.to), seconds(f.events[at].Time))}
}
