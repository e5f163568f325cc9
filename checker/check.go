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
	for i := range table {
		d := &table[i]
		if v.Unjudged != nil && d.ServerSide {
			continue
		}
		if w := d.find(f); w != nil {
			w.Anomaly = d.Name
			v.Witnesses = append(v.Witnesses, *w)
		}
	}
	return v
}

// witness returns a witness with the given events sorted and without duplicates.
func witness(says string, events ...int) *Witness {
	slices.Sort(events)
	return &Witness{Events: slices.Compact(events), Message: says}
}
