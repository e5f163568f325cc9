package checker

import (
	"slices"
	"sort"
	"strings"
	"time"
)

// key is how the lock's key stands on a server. owner is -1 for nobody.
type key struct {
	owner   int
	value   string
	expires time.Duration
	// due is the expiry that was granted, whatever clocks did to it since.
	due time.Duration
	// granted is the expiry that the owner, or the server's clock, gave it last;
	// what others did to it since is measured from there.
	granted time.Duration
	// ownership is since when the owner has it, or -1; renewed the last
	// State, if any, by which a command prolonged it for the same value.
	ownership, renewed int
}

// server is one server process of a node. One that counts speaks for its node
// to some client; a replica does not.
type server struct {
	name, node string
	key        key
	counts     bool
	changes    []int
}

// node is a group of servers, several of which count while it is split.
type node struct {
	name     string
	counting []int // servers
	primary  int   // the server promoted last, or -1
	split    bool
	// owner is who owns the key on every one of those that count, since event
	// since; -1 if nobody does. Of two sides of a split either may have granted
	// the lock.
	owner, since int
	// owned is, for each client by its number, the last event before or after which the key was
	// its; -1, or not there, if it never was.
	owned []int
}

// owns notes that the key was, or is, a client's at event i.
func (n *node) owns(client, i int) {
	for len(n.owned) <= client {
		n.owned = append(n.owned, -1)
	}
	n.owned[client] = i
}

// change is a State: how the key stood before and after.
type change struct {
	at            int
	made          int // the request that made it, or -1
	server        int
	by            int // the client whose command it was, or -1
	cause         Cause
	before, after key
	recreated     bool // by is the new owner once more, with no acquire that asked for it
}

// ownership is a time during which one client owned the key on one server.
type ownership struct {
	server, client int
	begin, end     int
	by             int // the client whose command began it, or -1
}

// departure is a client's ceasing to own the key anywhere: at is the event,
// key what it had last.
type departure struct {
	at    int
	key   key
	cause Cause
}

// leftover is a key found on a server that counts when an acquire had failed,
// or was still under way at the end.
type leftover struct {
	call, ownership int
	renewed         int // as in key
	// forever is whether nobody held and the key would never go by itself:
	// it had no time to live, or had been renewed since the last hold ended.
	forever bool
	// since is from when nobody had held, and the key had been there.
	since time.Duration
}

func (f *index) server(e *Event) int {
	id, known := find(&f.places, [2]string{e.Node, e.Server}, f.servers, func(s *server) [2]string { return [2]string{s.node, s.name} })
	if known {
		return id
	}
	f.servers = append(f.servers, &server{name: e.Server, node: e.Node, key: key{owner: -1, ownership: -1, renewed: -1}})
	return len(f.servers) - 1
}

func (f *index) node(name string) *node {
	if n := f.nodeNamed(name); n != nil {
		return n
	}
	n := &node{name: name, primary: -1, owner: -1}
	f.nodes = append(f.nodes, n)
	return n
}

// nodeNamed returns the node of that name; nil if nothing was heard of it.
func (f *index) nodeNamed(name string) *node {
	if at, known := find(&f.groups, name, f.nodes, func(n *node) string { return n.name }); known {
		return f.nodes[at]
	}
	return nil
}

// changed takes a State.
func (f *index) changed(i int, e *Event) {
	f.present, f.made = i, f.maker(i)
	id := f.server(e)
	s, n := f.servers[id], f.node(e.Node)
	ch := change{at: i, made: f.made, server: id, by: -1, cause: e.Cause, before: s.key, after: f.keyAfter(i, id, e)}
	if c := f.client(e.Client); c != nil && e.Cause == ByCommand {
		ch.by = c.id
	}
	ch.recreated = f.recreates(&ch, n)
	if before, after := ch.before.owner, ch.after.owner; before >= 0 && before != after &&
		ch.by >= 0 && ch.by != before && ch.after.value != "" {
		f.clients[before].replaced = append(f.clients[before].replaced, len(f.changes))
	}
	for _, owner := range [...]int{ch.before.owner, ch.after.owner} {
		if owner >= 0 {
			n.owns(owner, i)
		}
	}
	s.changes = append(s.changes, len(f.changes))
	f.changes = append(f.changes, ch)

	var gone []key
	if s.counts {
		gone = append(gone, s.key)
	}
	if e.Cause == ByFailover {
		if !n.split {
			came := &ch.after
			if s.counts { // what it has is its own
				came = nil
			}
			gone = append(gone, f.discount(n, id, i, came)...)
		}
		n.primary = id
	}
	s.key = ch.after
	if !s.counts && (e.Cause == ByCommand || e.Cause == ByFailover || len(n.counting) == 0 && e.Cause != ByReplication) {
		s.counts = true
		n.counting = append(n.counting, id)
	}
	f.recount(gone, -1)
	if s.counts {
		f.recount([]key{s.key}, +1)
	}
	f.depart(i, gone, e.Cause)
	f.settle(n, i)
}

// keyAfter returns the key after a State.
func (f *index) keyAfter(i, id int, e *Event) key {
	was := f.servers[id].key
	k := key{owner: -1, value: e.Value, expires: e.Expires, due: e.Expires, granted: e.Expires, ownership: -1, renewed: -1}
	if owner := f.client(e.Owner); owner != nil {
		k.owner = owner.id
	}
	if k.owner != was.owner {
		if was.ownership >= 0 {
			f.ownerships[was.ownership].end = i
		}
		if k.owner >= 0 {
			k.ownership = len(f.ownerships)
			o := ownership{server: id, client: k.owner, begin: i, end: -1, by: -1}
			if c := f.client(e.Client); c != nil && e.Cause == ByCommand {
				o.by = c.id
			}
			f.ownerships = append(f.ownerships, o)
		}
		return k
	}
	k.ownership = was.ownership
	if was.expires != 0 && was.granted != 0 && k.expires != 0 {
		switch by := f.client(e.Client); {
		case e.Cause == ByClock:
			k.granted = was.granted + k.expires - was.expires
		case e.Cause == ByCommand && by != nil && by.id != k.owner:
			k.granted = was.granted
		}
	}
	if k.value != was.value {
		return k
	}
	k.renewed = was.renewed
	switch {
	case e.Cause == ByClock:
		k.due = was.due
	case e.Cause == ByCommand && was.expires != 0 && (k.expires == 0 || k.expires > was.expires) && !f.extending(i, e):
		k.renewed = i
	}
	return k
}

// recreates reports whether a change brings back a key that its client had
// lost: it is not acquiring, its latest acquire had succeeded, and it had owned
// the key on this node since it called that.
func (f *index) recreates(ch *change, n *node) bool {
	if ch.by < 0 || ch.after.owner != ch.by || ch.before.owner == ch.by {
		return false
	}
	at, _ := f.acquiring(f.clients[ch.by], ch.at)
	if at < 0 || f.calls[at].result != OK { // one under way has no result yet
		return false
	}
	return ch.by < len(n.owned) && n.owned[ch.by] > f.calls[at].invoke && !f.askedFor(ch)
}

// askedFor reports whether the command that made a change had set out while its
// client was acquiring: what the network kept of an acquire brings nothing back that
// the client would still want.
func (f *index) askedFor(ch *change) bool {
	sent, known := f.setOut(ch.at)
	if !known {
		return false
	}
	acquires := f.clients[ch.by].acquires
	n := sort.Search(len(acquires), func(k int) bool { return f.calls[acquires[k]].from > sent })
	if n == 0 {
		return false
	}
	c := &f.calls[acquires[n-1]] // the calls of a client follow each other
	return !c.done || sent < c.to
}

// extending reports whether a client's command prolonged a key because its user had
// called extend: that is done once, and nothing that goes on by itself.
func (f *index) extending(i int, e *Event) bool {
	c := f.client(e.Client)
	if c == nil {
		return false
	}
	if c.open >= 0 && f.calls[c.open].op == Extend {
		return true
	}
	sent, known := f.setOut(i)
	n := sort.Search(len(c.extends), func(k int) bool { return f.calls[c.extends[k]].from > sent })
	return known && n > 0 && sent < f.calls[c.extends[n-1]].to
}

// setOut returns when the command set out that made the change at an event, where
// the history has the command and says of any when it set out.
func (f *index) setOut(at int) (sent time.Duration, known bool) {
	if !f.timed {
		return 0, false
	}
	request := f.request(at, -1)
	return f.events[request].Sent, f.events[request].Kind == Request
}

// led takes a Fault: while a node is split, the old primary and the new one
// both count; once they have joined again, only the new one does.
func (f *index) led(i int, e *Event) {
	words := strings.Fields(e.Text)
	if len(words) < 2 || e.Node == "" || words[0] != e.Node {
		return
	}
	n := f.node(e.Node)
	switch words[1] {
	case "split":
		n.split = true
	case "failover":
		n.split = false
	case "join":
		n.split = false
		if n.primary >= 0 {
			gone := f.discount(n, n.primary, i, nil)
			f.recount(gone, -1)
			f.depart(i, gone, ByReplication)
			f.settle(n, i)
		}
	}
}

// discount makes all servers of a node but one no longer count at event i, and returns
// the keys that they had. Who owned one of them doesn't any more; or still does, if that
// is the key, which may be nil, that came to the one that counts.
func (f *index) discount(n *node, but, i int, came *key) []key {
	var gone []key
	n.counting = slices.DeleteFunc(n.counting, func(id int) bool {
		if id == but {
			return false
		}
		s := f.servers[id]
		s.counts = false
		gone = append(gone, s.key)
		if at := s.key.ownership; at >= 0 {
			left := f.ownerships[at]
			left.by = -1 // what is there now is nobody's doing
			s.key.ownership = len(f.ownerships)
			f.ownerships = append(f.ownerships, left)
			if came != nil && came.owner == s.key.owner && came.value == s.key.value {
				came.ownership = at
			} else {
				f.ownerships[at].end = i
			}
		}
		return true
	})
	return gone
}

// settle notes who owns the key of a node after event i.
func (f *index) settle(n *node, i int) {
	owner := -1
	for place, id := range n.counting {
		switch k := f.servers[id].key; {
		case place == 0:
			owner = k.owner
		case k.owner != owner:
			owner = -1
		}
	}
	if owner != n.owner {
		n.owner, n.since = owner, i
	}
}

func (f *index) recount(keys []key, by int) {
	for _, k := range keys {
		if k.owner >= 0 {
			f.clients[k.owner].owned += by
		}
	}
}

func (f *index) depart(i int, gone []key, cause Cause) {
	for _, k := range gone {
		if k.owner >= 0 && f.clients[k.owner].owned == 0 {
			f.departures = append(f.departures, departure{i, k, cause})
		}
	}
}

// leave notes the keys that are there when the acquire at has failed, or at
// the end of the history.
func (f *index) leave(at int) {
	var counting []int
	for _, n := range f.nodes {
		counting = append(counting, n.counting...)
	}
	slices.Sort(counting)
	for _, id := range counting {
		k := f.servers[id].key
		if k.owner < 0 {
			continue
		}
		f.leftovers = append(f.leftovers, leftover{
			call: at, ownership: k.ownership, renewed: k.renewed,
			forever: f.holding == 0 && (k.expires == 0 || k.renewed > f.freeSince),
			since:   max(f.freeFrom, f.events[f.ownerships[k.ownership].begin].Time),
		})
	}
}

// tolerance is the difference of two expiry dates that is not worth a word.
func (f *index) tolerance() time.Duration { return max(0, f.meta.TTL/100) }
