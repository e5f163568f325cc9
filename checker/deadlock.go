package checker

import (
	"slices"
	"strings"
	"time"
)

// Deadlock: see [Descriptions].
const Deadlock Anomaly = "deadlock"

var deadlockEntry = Description{
	Name: Deadlock, Letter: "C", Short: "deadlock", Class: Liveness,
	Meaning: "clients that had a part of the lock each waited for one another",
	Lasting: true,
	find:    deadlock,
}

// Parts returns the clients that have a part of the lock by a State event: its owner, or else each
// client of the list whose short names of owner values (A1, A2 for A) are among the words of the value.
func Parts(e Event, clients []string) []string {
	if e.Owner != "" || e.Value == "" {
		return slices.DeleteFunc([]string{e.Owner}, func(name string) bool { return name == "" })
	}
	var list []string
	isWord := func(r rune) bool {
		return r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
	}
	for _, word := range strings.FieldsFunc(e.Value, func(r rune) bool { return !isWord(r) }) {
		name := strings.TrimRight(word, "0123456789")
		if name != word && slices.Contains(clients, name) && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// A standstill is a time in which no client held the lock, at least two clients had parts of it, and each
// of these had an acquire under way.
type standstill struct {
	begin   int // event
	from    time.Duration
	members []int // clients
	events  []int // by which they had got their parts, and their invokes
}

// deadlock finds the standstills of a third of the TTL at least that ended since an acquire failed or a
// part expired, and those that lasted for the bound. A client that gives its parts up and takes others
// in the same acquire is not stuck. A part that an earlier acquire left does not count.
func deadlock(f *index, yield func(*Witness) bool) {
	if len(f.meta.Nodes) < 2 && f.unjudged == nil {
		return // one owner at a time
	}
	p := partsOf(f)
	var now *standstill
	for i := range f.events {
		e := &f.events[i]
		before := now
		if p.add(i, e) {
			if now = p.standstill(i); before != nil && now != nil && slices.Equal(before.members, now.members) {
				now = before
			}
		}
		if before == nil || now == before {
			continue
		}
		if p.stuck(before, i) && !yield(p.witness(before, i)) {
			return
		}
	}
	if now != nil && f.meta.Bound > 0 && f.last-now.from >= f.meta.Bound && f.held.other(-1, now.begin, len(f.events)) < 0 {
		yield(p.witness(now, len(f.events)-1))
	}
}

// parts follows which clients have parts of the lock, and which wait.
type parts struct {
	f       *index
	owners  map[string][]int // clients with a part, by server
	former  []int            // the owners before the last change of owners
	since   map[int]int      // the State by which a client got its first part
	waiting map[int]int      // the call under way of a client
	stopped map[int]bool     // clients that are paused
	held    map[int]int      // number of messages of a client's call that a fault holds
	call    map[int]int      // the acquire that an event begins or ends
}

func partsOf(f *index) *parts {
	p := &parts{f: f, owners: map[string][]int{}, since: map[int]int{}, waiting: map[int]int{}, stopped: map[int]bool{}, held: map[int]int{}, call: map[int]int{}}
	for _, at := range f.acquires {
		p.call[f.calls[at].invoke] = at
		p.call[f.calls[at].end] = at
	}
	return p
}

// add adds an event, and reports whether it may begin or end a standstill.
func (p *parts) add(i int, e *Event) bool {
	f := p.f
	switch e.Kind {
	case State:
		var list []int
		for _, name := range Parts(*e, f.meta.Clients) {
			list = append(list, f.client(name).id)
		}
		server := e.Node + " " + e.Server
		if slices.Equal(p.owners[server], list) {
			return false
		}
		p.former, p.owners[server] = p.owners[server], list
		all := p.all()
		for client := range p.since {
			if !slices.Contains(all, client) {
				delete(p.since, client)
			}
		}
		for _, client := range list {
			if _, ok := p.since[client]; !ok {
				p.since[client] = i
			}
		}
	case Invoke:
		at, takes := p.call[i]
		if !takes {
			return false
		}
		p.waiting[f.calls[at].client] = at
	case Return:
		at, takes := p.call[i]
		if !takes {
			return false
		}
		delete(p.waiting, f.calls[at].client)
		delete(p.held, f.calls[at].client)
	case Held:
		client := f.client(e.Client)
		if client == nil {
			return false
		}
		p.held[client.id]++
	case Passed, Dropped:
		if client := f.client(e.Client); client != nil && p.held[client.id] > 0 {
			p.held[client.id]--
		}
	case Pause:
		p.stopped[f.client(e.Client).id] = true
	case Crash, Restart:
		delete(p.stopped, f.client(e.Client).id)
		delete(p.waiting, f.client(e.Client).id)
	case Resume:
		delete(p.stopped, f.client(e.Client).id)
	default:
		return false
	}
	return true
}

// all returns the clients with a part of the lock, in order.
func (p *parts) all() []int {
	var list []int
	for _, owners := range p.owners {
		list = append(list, owners...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// standstill returns the standstill that there is after event i, or nil.
func (p *parts) standstill(i int) *standstill {
	members := p.all()
	if len(members) < 2 {
		return nil
	}
	s := &standstill{begin: i, from: p.f.events[i].Time, members: members}
	for _, client := range members {
		at, waits := p.waiting[client]
		if !waits || p.stopped[client] || p.held[client] > 0 || p.f.calls[at].hold >= 0 || p.since[client] < p.f.calls[at].invoke {
			return nil
		}
		s.events = append(s.events, p.f.calls[at].invoke, p.since[client])
	}
	return s
}

// stuck reports whether the standstill, which event i ended, was a deadlock.
func (p *parts) stuck(s *standstill, i int) bool {
	f, e := p.f, &p.f.events[i]
	if f.held.other(-1, s.begin, i) >= 0 {
		return false
	}
	if f.meta.Bound > 0 && e.Time-s.from >= f.meta.Bound {
		return true
	}
	if e.Time-s.from < f.meta.TTL/3 {
		return false
	}
	switch {
	case e.Kind == Return:
		return e.Result != OK
	case e.Kind == State && e.Cause == ByExpiry:
		return true
	case e.Kind == State && e.Cause == ByCommand:
		c := f.client(e.Client)
		at, waits := p.waiting[c.id]
		return waits && slices.Contains(s.members, c.id) && slices.Contains(p.former, c.id) && f.calls[at].failed() && !p.takesAgain(c.name, i, f.calls[at].end)
	}
	return false
}

// takesAgain reports whether the client gets a part of the lock between two events.
func (p *parts) takesAgain(client string, from, to int) bool {
	for _, e := range p.f.events[from+1 : to] {
		if e.Kind == State && e.Cause == ByCommand && e.Client == client && slices.Contains(Parts(e, p.f.meta.Clients), client) {
			return true
		}
	}
	return false
}

func (p *parts) witness(s *standstill, i int) *Witness {
	var names []string
	for _, client := range s.members {
		names = append(names, p.f.name(client))
	}
	last := len(names) - 1
	return witness(p.f.sprintf("%s and %s had a part of the lock each, and from %s to %s each waited for the part of another.",
		strings.Join(names[:last], ", "), names[last], seconds(s.from), seconds(p.f.events[i].Time)), append(s.events, i)...)
}
