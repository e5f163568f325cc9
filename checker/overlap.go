package checker

import (
	"slices"
)

// Overlap: see [Descriptions].
const Overlap Anomaly = "overlap"

var overlapEntry = Description{
	Name: Overlap, Letter: "O", Short: "overlap", Class: Safety,
	Meaning: "two clients believed that they held the lock at one instant",
	find:    overlap,
}

// overlap finds the holds that began during a hold of another client.
func overlap(f *index, yield func(*Witness) bool) {
	open := make([]int, 0, 4) // the holds that may still last
	for at, second := range f.holds {
		open = slices.DeleteFunc(open, func(o int) bool { return f.holds[o].end <= second.begin })
		for _, o := range open {
			first := f.holds[o]
			if first.client == second.client {
				continue
			}
			if !yield(witness(f.sprintf("%s acquired at %s while %s, who had acquired at %s, still held it.",
				f.name(second.client), seconds(second.from), f.name(first.client), seconds(first.from)),
				first.begin, second.begin)) {
				return
			}
		}
		open = append(open, at)
	}
}
