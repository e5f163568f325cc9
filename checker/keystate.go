package checker

import (
	"slices"
	"sort"
	"strings"
	"time"
)

// key is the state of the lock's key on a server. owner is -1 if the key has no owner.
type key struct {
	owner   int
	value   string
	expires time.Duration
	// due is the expiry that was granted, without later moves of the clock.
	due time.Duration
	// granted is the expiry last set by the owner, or moved by the server's clock. Changes by other
	// clients are measured from granted.
	granted time.Duration
	// ownership is the current ownership, or -1. renewed is the last State by which a command
	// prolonged the key with the same value, or -1.
	ownership, renewed int
}

// server is one server process of a node. A server counts if it acts as the node for some client; a
// replica does not count.
type server struct {
	name, node string
	key        key
	counts     bool
	changes    []int
}

// node is a group of servers. Several of them count while the node is split.
type node struct {
	name     string
	counting []int // servers
	primary  int   // the server promoted last, or -1
	split    bool
	// owner is the client that has owned the key on every counting server since event since; -1 if
	// there is no such client. In a split, either side may have granted the lock.
	owner, since int
	// owned holds, for each client by number, the last event before or after which the client owned
	// the key; -1 or a missing element means never.
	owned []int
}

// owns records that the client owned the key before or after event i.
func (n *node) owns(client, i int) {
	for len(n.owned) <= client {
		n.owned = append(n.owned, -1)
	}
	n.owned[client] = i
}

// change is a State event: the key before and after.
type change struct {
	at            int
	made          int // the request that made the change, or -1
	server        int
	by            int // the client whose command it was, or -1
	cause         Cause
	before, after key
	recreated     bool // by owns the key again without an acquire that asked for it
}

// ownership is an interval in which one client owned the key on one server.
type ownership struct {
	server, client int
	begin, end     int
	by             int // the client whose command began it, or -1
}

// departure is the end of a client's last ownership on any counting server: at is the event, key
// the last key of the client.
type departure struct {
	at    int
	key   key
	cause Cause
}

// leftover is a key that a counting server had when an acquire failed, or when the history ended
// with the acquire under way.
type leftover struct {
	call, ownership int
	renewed         int // as in key
	// forever reports whether no client held the lock and the key would never expire: it had no
	// time to live, or had been renewed since the last hold ended.
	forever bool
	// since is the time from which no client held the lock and the key existed.
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

// nodeNamed returns the node with the given name; nil if no event has named it.
func (f *index) nodeNamed(name string) *node {
	if at, known := find(&f.groups, name, f.nodes, func(n *node) string { return n.name }); known {
		return f.nodes[at]
	}
	return nil
}

// changed processes a State event.
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
	f.noteKeys(ch.before, ch.after, i)

	var gone []key
	if s.counts {
		gone = append(gone, s.key)
	}
	if e.Cause == ByFailover {
		if !n.split {
			came := &ch.after
			if s.counts { // the primary keeps its own key
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

// keyAfter returns the key after a State event, and records the change of ownership.
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

// recreates reports whether a change creates again a key that its client had lost: the client is
// not acquiring, its latest acquire had succeeded, and the client had owned the key on this node
// since that acquire was called.
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

// askedFor reports whether the command that made a change was sent during an acquire of its client.
// A delayed command of an acquire does not count as recreating the key.
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
	c := &f.calls[acquires[n-1]] // the calls of a client are sequential
	return !c.done || sent < c.to
}

// extending reports whether a command prolonged a key because its client had called extend. An
// extend prolongs a key once; automatic renewal continues without a call.
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

// setOut returns when the command that made the change at event at was sent. known is false if the
// history has no send times, or not the command.
func (f *index) setOut(at int) (sent time.Duration, known bool) {
	if !f.timed {
		return 0, false
	}
	request := f.request(at, -1)
	return f.events[request].Sent, f.events[request].Kind == Request
}

// led processes a Fault event. While a node is split, the old primary and the new one both count;
// after they have joined again, only the new one counts.
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

// discount makes all servers of a node except but stop counting at event i, and returns their keys.
// The ownerships of these keys end, unless the key is equal to came, the key that the counting
// server took over: then the ownership continues there. came may be nil.
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
			left.by = -1 // what the server has now is not a client's doing
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

// settle updates the owner of the node's key after event i.
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

// leave records the keys that exist when call at has failed, or at the end of the history.
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

// tolerance is the largest difference of two expiry times that is ignored: 1% of the TTL.
func (f *index) tolerance() time.Duration { return max(0, f.meta.TTL/100) }
