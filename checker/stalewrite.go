package checker

import "sort"

// StaleWrite: see [Descriptions].
const StaleWrite Anomaly = "stale-write"

var staleWriteEntry = Description{
	Name: StaleWrite, Letter: "W", Short: "stale", Class: Damage,
	Meaning: "the resource accepted a write from a client after a later holder had begun",
	find:    staleWrite,
}

// staleWrite finds the accepted writes of a client after a later hold of another client had begun.
func staleWrite(f *index, yield func(*Witness) bool) {
	for _, w := range f.writes {
		e := &f.events[w.at]
		if w.hold < 0 {
			if at := f.held.other(w.client, w.at, w.at); at >= 0 {
				other := f.holds[at]
				if !yield(witness(f.sprintf("The resource accepted a write of %s at %s, who never had the lock, while %s, who had acquired at %s, held it.",
					f.name(w.client), seconds(e.Time), f.name(other.client), seconds(other.from)), other.begin, w.at)) {
					return
				}
			}
			continue
		}
		token := e.Token
		if token == 0 {
			token = f.events[w.since].Token
		}
		// The writer has no hold after its latest, so all of these are other clients' holds.
		later := f.holds[w.hold+1:]
		later = later[sort.Search(len(later), func(k int) bool { return later[k].begin >= w.since }):]
		for _, other := range later {
			if other.begin > w.at {
				break
			}
			if f.fencedEarlier(other, w.since, token) {
				continue
			}
			if !yield(witness(f.sprintf("The resource accepted a write of %s, who had acquired at %s, at %s, after %s had acquired at %s.",
				f.name(w.client), seconds(f.events[w.since].Time), seconds(e.Time), f.name(other.client), seconds(other.from)),
				w.since, other.begin, w.at)) {
				return
			}
		}
	}
}

// fencedEarlier reports whether a hold that began after event since was nevertheless granted before
// it. For two concurrent acquires, the fencing tokens give the order. If one acquire was called
// after the other had returned, they do not: a smaller token then means that the counter went back.
func (f *index) fencedEarlier(other hold, since int, token int64) bool {
	return other.token != 0 && other.token < token && f.calls[other.call].invoke < since
}
