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
	return derive(h).verdict()
}

// verdict judges a history that has ended.
func (f *index) verdict() Verdict {
	v := Verdict{Unjudged: f.unjudged}
	for _, anomaly := range Anomalies() {
		if v.Unjudged != nil && slices.Contains(ServerSide(), anomaly) {
			continue
		}
		if w := f.find(anomaly); w != nil {
			w.Anomaly = anomaly
			v.Witnesses = append(v.Witnesses, *w)
		}
	}
	return v
}

// find returns the earliest witness of an anomaly; nil if there is none.
func (f *index) find(a Anomaly) *Witness {
	switch a {
	case Overlap:
		return overlap(f)
	case StaleWrite:
		return staleWrite(f)
	case RefusedWrite:
		return refusedWrite(f)
	case TokenOrder:
		return tokenOrder(f)
	case ForeignRelease:
		return foreignRelease(f)
	case ForeignExtend:
		return foreignExtend(f)
	case LostLock:
		return lostLock(f)
	case Unreleasable:
		return unreleasable(f)
	case StuckLock:
		return stuckLock(f)
	case Ghost:
		return ghost(f)
	case SelfDeadlock:
		return selfDeadlock(f)
	case Starvation:
		return starvation(f)
	case Unavailable:
		return unavailable(f)
	}
	return nil
}

// witness makes a witness of events given in any order, any of them twice.
func witness(says string, events ...int) *Witness {
	slices.Sort(events)
	return &Witness{Events: slices.Compact(events), Message: says}
}
