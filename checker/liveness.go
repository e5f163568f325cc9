package checker

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"
)

// Starvation: see [Descriptions].
const Starvation Anomaly = "starvation"

var starvationEntry = Description{
	Name: Starvation, Letter: "T", Short: "starved", Class: Liveness,
	Meaning: "one hold kept a live client waiting for the bound",
	Lasting: true,
	find:    starvation,
}

// starvation finds the acquires that waited for the bound because of one hold of another client.
func starvation(f *index, yield func(*Witness) bool) {
	bound := f.meta.Bound
	if bound <= 0 {
		return
	}
	var long []hold
	var until []time.Duration // the latest end of a long hold so far
	for _, b := range f.holds {
		if b.to-b.from >= bound {
			long = append(long, b)
			latest := b.to
			if n := len(until); n > 0 {
				latest = max(latest, until[n-1])
			}
			until = append(until, latest)
		}
	}
	for _, at := range f.acquires {
		c := &f.calls[at]
		if c.crashed || c.waited().length() < bound {
			continue
		}
		first := sort.Search(len(until), func(k int) bool { return until[k] > c.from }) // earlier ones are over
		for _, b := range long[first:] {
			if b.begin >= c.end {
				break
			}
			if b.client == c.client {
				continue
			}
			waited, ok := timeRange{b.from, b.to}.within(c.waited()).longEnough(bound, f.clients[c.client].pauses)
			if !ok {
				continue
			}
			if !yield(witness(f.sprintf("%s's %s, called at %s, %s; from %s to %s it waited for %s, who held the lock since %s.",
				f.name(c.client), c.op, seconds(c.from), f.outcome(c), seconds(waited.from), seconds(waited.to),
				f.name(b.client), seconds(b.from)),
				b.begin, c.invoke, min(b.end, f.endOf(c)))) {
				return
			}
		}
	}
}

// Unavailable: see [Descriptions].
const Unavailable Anomaly = "unavailable"

var unavailableEntry = Description{
	Name: Unavailable, Letter: "A", Short: "unavail.", Class: Liveness,
	Meaning: "acquire failed, or outlasted the bound, although nobody held",
	Lasting: true,
	find:    unavailable,
}

// definiteErrors are the first words of errors that a server returns again for the same command, in any
// state of the lock.
var definiteErrors = []string{"NOSCRIPT", "WRONGTYPE", "READONLY", "ERR wrong number", "ERR unknown", "ERR syntax"}

// DefiniteError returns the beginning of the server's error in the text of a return's error, if a
// server with that error refuses the same command again, whatever the state of the lock; otherwise "".
func DefiniteError(text string) string {
	for _, prefix := range definiteErrors {
		if strings.Contains(text, prefix) {
			return prefix
		}
	}
	return ""
}

// refusedForGood returns, by their index, those of the calls with which it shows that a server refuses
// the lock for good, and what their witness says: the third or a later failure by the same definite
// error, of two clients at least and over a TTL at least, without a success in between. Of each such time
// it is the first. The calls are in the order of their returns; what is their name in the witness.
func (f *index) refusedForGood(calls []int, what string) map[int]string {
	type run struct {
		from    time.Duration
		clients map[int]bool
		calls   int
		told    bool
	}
	var all map[int]string
	runs := map[string]*run{} // by the error
	for _, at := range calls {
		c := &f.calls[at]
		if c.result == OK {
			clear(runs)
			continue
		}
		prefix := DefiniteError(f.events[f.endOf(c)].Error)
		if prefix == "" {
			continue
		}
		r := runs[prefix]
		if r == nil {
			r = &run{from: c.to, clients: map[int]bool{}}
			runs[prefix] = r
		}
		r.calls++
		r.clients[c.client] = true
		if r.told || r.calls < 3 || len(r.clients) < 2 || c.to-r.from < f.meta.TTL {
			continue
		}
		r.told = true
		if all == nil {
			all = map[int]string{}
		}
		all[at] = fmt.Sprintf(": a server refuses it with %s, as it did all %s since %s.", prefix, what, seconds(r.from))
	}
	return all
}

// returnedAcquires returns the acquires and tries that returned, in the order of their returns.
func (f *index) returnedAcquires() []int {
	list := slices.DeleteFunc(slices.Clone(f.acquires), func(at int) bool { return f.calls[at].result == "" })
	slices.SortFunc(list, func(a, b int) int { return f.calls[a].end - f.calls[b].end })
	return list
}

// unavailable finds the acquires that failed, or took longer than the bound, although no client held
// the lock, and that no other anomaly explains; and those with which it shows that a server refuses the
// lock for good.
func unavailable(f *index, yield func(*Witness) bool) {
	var d *demand
	forGood := f.refusedForGood(f.returnedAcquires(), "acquires")
	for _, at := range f.acquires {
		c := &f.calls[at]
		if says, ok := forGood[at]; ok {
			if !yield(witness(f.sprintf("%s's %s, called at %s, %s%s", f.name(c.client), c.op, seconds(c.from), f.outcome(c), says), c.invoke, c.end)) {
				return
			}
			continue
		}
		if c.crashed || c.hold >= 0 {
			continue
		}
		refused := c.failed() && !c.cancelled && !f.pausedDuring(c)
		if !refused && c.waited().length() < f.meta.Bound {
			continue // most calls end here
		}
		if d == nil {
			d = f.demand()
		}
		says := ""
		if refused && d.might.other(c.client, c.invoke, c.end) < 0 && !d.leased(c) {
			says = "although nobody held the lock in the meantime."
		} else if idle, ok := d.idle(c, f.meta.Bound, f.clients[c.client].pauses); ok {
			says = fmt.Sprintf("although nobody held the lock from %s to %s.", seconds(idle.from), seconds(idle.to))
		}
		if says == "" || d.explained(f, at) {
			continue
		}
		if !yield(witness(f.sprintf("%s's %s, called at %s, %s, %s",
			f.name(c.client), c.op, seconds(c.from), f.outcome(c), says), c.invoke, f.endOf(c))) {
			return
		}
	}
}

// demand holds the facts about the whole history that unavailable needs: which clients may have
// blocked an acquire, and when.
type demand struct {
	// might holds the intervals in which a client held the lock or may have held it: from the
	// invocation of a successful acquire to the return of the release, and the whole call of a
	// cancelled acquire.
	might intervals
	// leases holds the intervals in which a key may have existed without a holder, because a client
	// crashed, lost the lock, or got an unknown result. The leases are ordered by invocation; until
	// is the latest end so far.
	leases []lease
	gaps   []timeRange // intervals of at least the bound in which no client held
	// stuck and haunted are the ownerships that explain a failure.
	stuck   map[int]bool // of a stuck-lock
	haunted intervals    // of a ghost
	ghosts  map[int]bool // the calls that left a ghost
	left    map[int][]int
}

type lease struct {
	begin int
	until time.Duration
}

func (f *index) demand() *demand {
	d := &demand{}
	might := make([]interval, 0, len(f.holds)+len(f.calls))
	patience := max(0, f.meta.TTL+f.meta.Grace)
	for _, b := range f.holds {
		from := f.calls[b.call].invoke
		to, _, freed := f.freed(b)
		might = append(might, interval{b.client, from, to})
		switch {
		case freed || b.by == StillOpen:
		case b.release >= 0:
			d.leases = append(d.leases, lease{from, f.calls[b.release].to + patience})
		default:
			d.leases = append(d.leases, lease{from, b.to + patience})
		}
	}
	for at := range f.calls {
		c := &f.calls[at]
		switch {
		case !c.takes():
		case c.result == OK:
			might = append(might, interval{c.client, c.invoke, c.end})
		case c.result == Unknown || c.crashed:
			d.leases = append(d.leases, lease{c.invoke, c.to + patience})
		}
		if c.takes() && c.cancelled { // without the cancellation it might have succeeded
			might = append(might, interval{c.client, c.invoke, c.end})
		}
	}
	d.might = newIntervals(might)
	slices.SortStableFunc(d.leases, func(a, b lease) int { return a.begin - b.begin })
	for i := 1; i < len(d.leases); i++ {
		d.leases[i].until = max(d.leases[i].until, d.leases[i-1].until)
	}
	d.gaps = f.gaps()
	if f.unjudged != nil { // without a judged key, keys explain nothing
		return d
	}

	if len(f.leftovers) > 0 {
		d.stuck, d.left = map[int]bool{}, map[int][]int{}
	}
	for at, l := range f.leftovers {
		d.left[l.call] = append(d.left[l.call], l.ownership)
		if f.stuck(at) {
			d.stuck[l.ownership] = true
		}
	}
	var haunted []interval
	for _, g := range f.ghosts() {
		if d.ghosts == nil {
			d.ghosts = map[int]bool{}
		}
		o := f.ownerships[g.ownership]
		d.ghosts[g.call] = true
		haunted = append(haunted, interval{o.client, o.begin, o.end})
	}
	d.haunted = newIntervals(haunted)
	return d
}

// freed returns where a hold no longer blocks other clients: at the return of its release if that
// was OK, otherwise at its end. ok is false in the latter case, in which the key may outlast the
// hold.
func (f *index) freed(b hold) (at int, t time.Duration, ok bool) {
	if b.release >= 0 {
		if r := &f.calls[b.release]; r.result == OK {
			return r.end, r.to, true
		}
	}
	return b.end, b.to, false
}

// gaps returns the intervals of at least the bound in which no client held.
func (f *index) gaps() []timeRange {
	if f.meta.Bound <= 0 || len(f.events) == 0 {
		return nil
	}
	var all []timeRange
	add := func(gap timeRange) {
		if gap.length() >= f.meta.Bound {
			all = append(all, gap)
		}
	}
	from := f.events[0].Time
	for _, b := range f.holds {
		add(timeRange{from, b.from})
		_, to, _ := f.freed(b)
		from = max(from, to)
	}
	add(timeRange{from, f.last})
	return all
}

// leased reports whether a key without a holder may have blocked the call until its end.
func (d *demand) leased(c *call) bool {
	before := c.invoke
	if c.result == Fail { // a client that came after the invocation may have the lock
		before = c.end
	}
	n := sort.Search(len(d.leases), func(i int) bool { return d.leases[i].begin >= before })
	return n > 0 && d.leases[n-1].until > c.to
}

// idle returns the first part of the call, at least bound long, in which the caller ran and no
// client held.
func (d *demand) idle(c *call, bound time.Duration, pauses []pause) (timeRange, bool) {
	first := sort.Search(len(d.gaps), func(i int) bool { return d.gaps[i].to > c.from })
	for _, gap := range d.gaps[first:] {
		if gap.from >= c.to {
			break
		}
		if part, ok := gap.within(c.waited()).longEnough(bound, pauses); ok {
			return part, true
		}
	}
	return timeRange{}, false
}

// explained reports whether a ghost or a stuck-lock made the call fail or wait.
func (d *demand) explained(f *index, at int) bool {
	c := &f.calls[at]
	if d.ghosts[at] || d.haunted.other(-1, c.invoke, c.end) >= 0 {
		return true
	}
	return slices.ContainsFunc(d.left[at], func(o int) bool { return d.stuck[o] })
}
