package checker

import (
	"slices"
)

// overlap finds the first hold that began while another client's lasted.
func overlap(f *index) *Witness {
	first, second, ok := f.intersect(f.holds)
	if !ok {
		return nil
	}
	return witness(f.sprintf("%s acquired at %s while %s, who had acquired at %s, still held it.",
		f.name(second.client), seconds(second.from), f.name(first.client), seconds(first.from)),
		first.begin, second.begin)
}

// intersect returns, of holds ordered by their beginning, the first that
// begins inside one of another client, and that other. Before the first there
// is at most one such other: what began earlier is disjoint.
func (f *index) intersect(holds []hold) (first, second hold, ok bool) {
	open := make([]int, 0, 4) // the holds that may still last, of different clients
	for at, b := range holds {
		open = slices.DeleteFunc(open, func(o int) bool { return holds[o].end <= b.begin })
		for _, o := range open {
			if holds[o].client != b.client {
				return holds[o], b, true
			}
		}
		open = append(open, at)
	}
	return hold{}, hold{}, false
}
