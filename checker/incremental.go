package checker

import (
	"maps"
	"slices"
)

// An Incremental judges histories that have beginnings in common, as [Check] judges each: what was told once is not taken
// again for every history that goes on from there. [NewJudge] makes one. It is for one goroutine at a time.
//
// What it knows is a stack: Mark remembers a place in a history, and Back returns there.
type Incremental struct {
	places []*index // the last is where the history stands
}

// NewJudge returns a judge who has been told nothing.
func NewJudge(meta Meta) *Incremental {
	f := newFacts(meta)
	return &Incremental{places: []*index{&f}}
}

// Checkpoint remembers where the history stands, and returns by what number to go [Incremental.Rollback] there.
func (j *Incremental) Checkpoint() (place int) {
	place = len(j.places)
	if place < cap(j.places) {
		j.places = j.places[:place+1] // one that was left has memory
	} else {
		j.places = append(j.places, nil)
	}
	if j.places[place] == nil {
		j.places[place] = &index{}
	}
	j.places[place].goOn(j.places[place-1])
	return place
}

// Rollback goes back to a place, which is no longer marked then, and forgets all that was told since.
func (j *Incremental) Rollback(place int) { j.places = j.places[:place] }

// Add tells what happened next. Events after [End] count for nothing.
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

// Anomalies returns the anomalies of what was told, as [Check] would of a history that ends with it, and whether
// those of [ServerSide] were not judged. After that nothing can be told until the judge is back at a place.
func (j *Incremental) Anomalies() (found []Anomaly, unjudged bool) {
	f := j.places[len(j.places)-1]
	f.finish()
	f.terse = true
	v := f.verdict()
	return v.Anomalies(), v.Unjudged != nil
}

// ended reports whether the run is over.
func (f *index) ended() bool { return len(f.events) > 0 && f.events[len(f.events)-1].Kind == End }

// rebuild takes all events anew, now that requests turn out to say when they set out, if there was a request
// already. It reports whether there was.
func (f *index) rebuild() bool {
	before, events := f.events[:len(f.events)-1], f.events
	if !slices.ContainsFunc(before, func(e Event) bool { return e.Kind == Request }) {
		return false
	}
	*f = newFacts(f.meta)
	f.follow(slices.Clone(events))
	return true
}

// goOn makes the facts those of another history, to go on from there. What of them is only ever appended to is in the
// other's memory: as long as this one is of use, the other must stay as it is, and no third may go on from it.
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

// growCap returns a list that can be appended to without being moved each time, by one after the other.
func growCap[T any](list []T) []T {
	if cap(list)-len(list) < 32 {
		return slices.Grow(list, 256+len(list))
	}
	return list
}

// cloneSlices makes what list points to copies of what another list does.
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
