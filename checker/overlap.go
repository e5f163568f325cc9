package checker

import (
	"slices"
)

// Overlap: see [Descriptions].
const Overlap Anomaly = "overlap"

func overlapEntry() Description {
	return Description{
		Name: Overlap, Letter: "O", Short: "overlap", Class: Safety,
		Meaning: "two clients believed that they held the lock at one instant",
		find:    overlap,
	}
}

// overlap returns a witness of the first hold that began during a hold of another client.
func overlap(f *index) *Witness {
	first, second, ok := f.intersect(f.holds)
	if !ok {
		return nil
	}
	return witness(f.sprintf("%s acquired at %s while %s, who had acquired at %s, still held it.",
		f.name(second.client), seconds(second.from), f.name(first.client), seconds(first.from)),
		first.begin, second.begin)
}

// intersect returns the first of the holds that begins inside a hold of another client (second),
// and that hold (first). The holds must be ordered by their beginning. Up to the first
// intersection, the holds of different clients are disjoint, so first is unique.
func (f *index) intersect(holds []hold) (first, second hold, ok bool) {
	open := make([]int, 0, 4) // the holds that may still last
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
