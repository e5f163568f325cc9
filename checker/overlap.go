package checker

import (
	"fmt"
	"slices"
)

// overlap finds the first hold that began while another client's lasted.
func overlap(f *facts) *Witness {
	first, second, ok := f.intersect(f.holds)
	if !ok {
		return nil
	}
	return witness(fmt.Sprintf("%s acquired at %s while %s, who had acquired at %s, still held it.",
		f.name(second.client), seconds(second.from), f.name(first.client), seconds(first.from)),
		first.begin, second.begin)
}

// conflict returns why the acquires and releases have no legal order, nil if they
// have one.
//
// With clients that do one thing at a time every legal order has each client
// own the lock at least from its acquire's return to its release's call, or to
// its crash: the necessary hold. If two of these intersect there is no legal
// order. If none do, there is one: put each acquire at its return and each
// release at its call. What failed, or is unknown, need not have happened, and
// loss and validity are no operations, so neither ends a necessary hold: where no
// two clients relied on the lock at one instant, one of those is the reason.
func conflict(f *facts) *Conflict {
	first, second, ok := f.intersect(f.necessary)
	if !ok {
		return nil
	}
	a, b := f.name(first.client), f.name(second.client)
	relied, held := f.reliance(first.client, first.begin, second.begin)
	begun, _ := f.reliance(second.client, second.begin, second.begin+1)
	c := &Conflict{Events: []int{first.begin, second.begin}}
	how := ""
	switch {
	case begun == nil:
		how = " and did not rely on the lock, whose validity was over before the acquire returned"
	case held:
		c.Says = fmt.Sprintf("%s acquired at %s while %s, who had acquired at %s, had yet to release.",
			b, seconds(second.from), a, seconds(first.from))
		return c
	case relied == nil:
		how = fmt.Sprintf(", and %s did not rely on the lock, whose validity was over before %[1]s's acquire returned", a)
	case relied.by == ByLoss:
		how = fmt.Sprintf(", after %s's lock had told it at %s that it was lost", a, seconds(relied.to))
		c.Events = []int{first.begin, relied.end, second.begin}
	default:
		how = fmt.Sprintf(", after %s's validity had ended at %s", a, seconds(relied.to))
	}
	c.Says = fmt.Sprintf("%s acquired at %s%s; but %s, who had acquired at %s, had yet to release, and in a legal order nothing but a release or a crash ends a hold.",
		b, seconds(second.from), how, a, seconds(first.from))
	return c
}

// reliance returns the latest hold of a client that began at one event or later and
// before another, nil if none did, and whether it lasted at that other.
func (f *facts) reliance(client, from, before int) (latest *hold, lasts bool) {
	for _, at := range f.clients[client].holds {
		if b := &f.holds[at]; b.begin >= from && b.begin < before {
			latest = b
		}
	}
	return latest, latest != nil && latest.end > before
}

// intersect returns, of holds ordered by their beginning, the first that
// begins inside one of another client, and that other. Before the first there
// is at most one such other: what began earlier is disjoint.
func (f *facts) intersect(holds []hold) (first, second hold, ok bool) {
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
