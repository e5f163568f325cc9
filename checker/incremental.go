package checker

import (
	"maps"
	"slices"
)

// An Incremental judges many histories that share prefixes, and gives the results of [Check]. A
// shared prefix is processed only once. [NewJudge] returns an Incremental. An Incremental may be
// used by one goroutine at a time.
//
// The state is a stack: [Incremental.Checkpoint] pushes the current position in the history, and
// [Incremental.Rollback] returns to a pushed position.
type Incremental struct {
	places []*index // the last is the current position
}

// NewJudge returns an Incremental with an empty history.
func NewJudge(meta Meta) *Incremental {
	f := newFacts(meta)
	return &Incremental{places: []*index{&f}}
}

// Checkpoint saves the current position in the history. The result is the argument for a later
// [Incremental.Rollback].
func (j *Incremental) Checkpoint() (place int) {
	place = len(j.places)
	if place < cap(j.places) {
		j.places = j.places[:place+1] // reuse the memory of a position that was rolled back
	} else {
		j.places = append(j.places, nil)
	}
	if j.places[place] == nil {
		j.places[place] = &index{}
	}
	j.places[place].goOn(j.places[place-1])
	return place
}

// Rollback returns to the position that Checkpoint saved as place, discards all events added since,
// and removes the checkpoint.
func (j *Incremental) Rollback(place int) { j.places = j.places[:place] }

// Add appends events to the history. Events after [End] are ignored.
func (j *Incremental) Add(events ...Event) {
	f := j.places[len(j.places)-1]
	for _, e := range events {
		if f.ended() {
			return
		}
		f.events = append(f.events, e)
		if timed(e) && !f.timed {
			f.timed = true
			if f.rebuild() {
				continue
			}
		}
		f.next(len(f.events) - 1)
	}
}

// Anomalies returns the anomalies of the events added so far, as [Check] would, and whether the
// anomalies of [ServerSide] were not judged. After Anomalies, the history cannot be extended until
// a Rollback.
func (j *Incremental) Anomalies() (found []Anomaly, unjudged bool) {
	f := j.places[len(j.places)-1]
	f.finish()
	f.terse = true
	v := f.verdict()
	return v.Anomalies(), v.Unjudged != nil
}

// ended reports whether the last event is End.
func (f *index) ended() bool { return len(f.events) > 0 && f.events[len(f.events)-1].Kind == End }

// rebuild processes all events again if the history already has a request, and reports whether it
// did. Add calls rebuild when the first request with a send time arrives, because setOut uses send
// times for the whole history.
func (f *index) rebuild() bool {
	before, events := f.events[:len(f.events)-1], f.events
	if !slices.ContainsFunc(before, func(e Event) bool { return e.Kind == Request }) {
		return false
	}
	*f = newFacts(f.meta)
	f.follow(slices.Clone(events))
	return true
}

// goOn makes f a copy of from that can be extended on its own. Lists that are only appended to
// share from's memory: while f is in use, from must not change, and no third index may be made from
// from.
func (f *index) goOn(from *index) {
	from.events, from.changes, from.byID = growCap(from.events), growCap(from.changes), growCap(from.byID)
	from.writes, from.refusals = growCap(from.writes), growCap(from.refusals)
	from.departures, from.leftovers = growCap(from.departures), growCap(from.leftovers)
	own := *f
	*f = *from
	f.odd, f.names, f.places, f.groups = maps.Clone(from.odd), nil, nil, nil
	f.calls = append(own.calls[:0], from.calls...)
	f.acquires = append(own.acquires[:0], from.acquires...)
	f.holds = append(own.holds[:0], from.holds...)
	f.ownerships = append(own.ownerships[:0], from.ownerships...)
	f.deadlines = append(own.deadlines[:0], from.deadlines...)
	f.clients = cloneSlices(own.clients, from.clients, func(c, from *client) {
		own := *c
		*c = *from
		c.holds, c.acquires, c.extends = append(own.holds[:0], from.holds...), append(own.acquires[:0], from.acquires...), append(own.extends[:0], from.extends...)
		c.pauses, c.replaced = append(own.pauses[:0], from.pauses...), append(own.replaced[:0], from.replaced...)
	})
	f.servers = cloneSlices(own.servers, from.servers, func(s, from *server) {
		changes := s.changes
		*s = *from
		s.changes = append(changes[:0], from.changes...)
	})
	f.nodes = cloneSlices(own.nodes, from.nodes, func(n, from *node) {
		counting, owned := n.counting, n.owned
		*n = *from
		n.counting, n.owned = append(counting[:0], from.counting...), append(owned[:0], from.owned...)
	})
}

// growCap returns the list with spare capacity, so that successive copies can append to it without
// reallocating it each time.
func growCap[T any](list []T) []T {
	if cap(list)-len(list) < 32 {
		return slices.Grow(list, 256+len(list))
	}
	return list
}

// cloneSlices makes the elements of list copies of the elements of from, and reuses the memory of
// list.
func cloneSlices[T any](list, from []*T, copy func(to, from *T)) []*T {
	list = slices.Grow(list[:0], len(from))[:len(from)]
	for i := range list {
		if list[i] == nil {
			list[i] = new(T)
		}
		copy(list[i], from[i])
	}
	return list
}
