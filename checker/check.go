package checker

import "slices"

// Check judges a history. It never changes it, never blocks and never panics;
// it may be called concurrently. Of an ill-formed history (a return without
// its invoke, time that goes back) it makes what it can, and the verdict then
// means no more than the history does.
//
// A length of time in Meta that is not positive disables the anomalies that are
// measured by it: Bound those of waiting too long, TTL plus Grace stuck-lock.
//
// It takes O(n log n) for n events of any fixed number of clients and nodes.
func Check(h History) Verdict {
	f := derive(h)
	find := map[Anomaly]func(*facts) *Witness{
		Overlap:        overlap,
		StaleWrite:     staleWrite,
		RefusedWrite:   refusedWrite,
		TokenOrder:     tokenOrder,
		ForeignRelease: foreignRelease,
		ForeignExtend:  foreignExtend,
		LostLock:       lostLock,
		Unreleasable:   unreleasable,
		StuckLock:      stuckLock,
		Ghost:          ghost,
		SelfDeadlock:   selfDeadlock,
		Starvation:     starvation,
		Unavailable:    unavailable,
	}
	v := Verdict{Unjudged: f.unjudged}
	for _, anomaly := range Anomalies() {
		if v.Unjudged != nil && slices.Contains(ServerSide(), anomaly) {
			continue
		}
		if w := find[anomaly](f); w != nil {
			w.Anomaly = anomaly
			v.Witnesses = append(v.Witnesses, *w)
		}
	}
	return v
}

// witness makes a witness of events given in any order, any of them twice.
func witness(says string, events ...int) *Witness {
	slices.Sort(events)
	return &Witness{Events: slices.Compact(events), Says: says}
}
