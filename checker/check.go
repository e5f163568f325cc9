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
	return Verdict{Witnesses: f.witnesses(1), Unjudged: f.unjudged}
}

// Occurrences returns a witness of each occurrence of each anomaly that [Check] finds in the
// history, in the order of [Anomalies], but at most so many of each. The first witness of each
// anomaly is the witness that Check returns; the others are not in any particular order.
func Occurrences(h History, most int) []Witness { return derive(h).witnesses(most) }

// witnesses returns at most so many witnesses of each anomaly.
func (f *index) witnesses(most int) (all []Witness) {
	for i := range table {
		d := &table[i]
		if f.unjudged != nil && d.ServerSide {
			continue
		}
		n := 0
		d.find(f, func(w *Witness) bool {
			w.Anomaly = d.Name
			all = append(all, *w)
			n++
			return n < most
		})
	}
	return all
}

// witness returns a witness with the given events sorted and without duplicates.
func witness(says string, events ...int) *Witness {
	slices.Sort(events)
	return &Witness{Events: slices.Compact(events), Message: says}
}
