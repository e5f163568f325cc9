package checker

import "slices"

// Check returns the verdict on a history. Check never changes the history, never blocks and never
// panics, and may be called concurrently. An ill-formed history (a return without its invocation,
// time that decreases) is judged as far as possible; such a verdict is only as reliable as the
// history.
//
// A duration in Meta that is not positive disables the anomalies measured by it: Bound those of
// waiting too long, TTL plus Grace stuck-lock.
//
// Check takes O(n log n) for n events and a fixed number of clients and nodes.
func Check(h History) Verdict {
	return derive(h).verdict()
}

// verdict returns the verdict on a finished history; call finish first.
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

// find returns the earliest witness of an anomaly; nil if the anomaly did not occur.
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

// witness returns a witness with the given events sorted and without duplicates.
func witness(says string, events ...int) *Witness {
	slices.Sort(events)
	return &Witness{Events: slices.Compact(events), Message: says}
}
