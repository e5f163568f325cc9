package checker

import (
	"slices"
	"strings"
)

// Keyless: see [Descriptions].
const Keyless Anomaly = "keyless"

var keylessEntry = Description{
	Name: Keyless, Letter: "Y", Short: "keyless", Class: Safety,
	Meaning: "acquire succeeded, yet no server had a key of the lock at any time during the call",
	find:    keyless,
}

// keyless finds the acquires that succeeded without a key on any server. If no acquire had a key, the
// keys of the lock are not known, and keyless finds only acquires that succeeded without any server's
// reply in a run with faults of nodes.
func keyless(f *index, yield func(*Witness) bool) {
	// A history with faults of nodes has all messages.
	messages := slices.ContainsFunc(f.events, func(e Event) bool { return e.Kind == Fault && e.Node != "" })
	if f.meta.Service != "" || !f.keyedCall && !messages {
		return // servers of other services are asked after an operation, and may be asked too late
	}
	for _, at := range f.acquires {
		c := &f.calls[at]
		if !c.keyless || !f.keyedCall && f.served(c) {
			continue
		}
		if !yield(witness(f.sprintf("%s's %s, called at %s, succeeded at %s, though no server had the key of the lock in between.",
			f.name(c.client), c.op, seconds(c.from), seconds(c.to)), c.invoke, c.end)) {
			return
		}
	}
}

// served reports whether the client received a reply other than an error during a call.
func (f *index) served(c *call) bool {
	replies := f.repliesTo(c.client)
	n, _ := slices.BinarySearch(replies, c.invoke)
	for ; n < len(replies) && replies[n] < c.end; n++ {
		if !strings.HasPrefix(f.events[replies[n]].Reply, "(error)") {
			return true
		}
	}
	return false
}

// noteKeys records the change of a server's key at event i.
func (f *index) noteKeys(before, after key, i int) {
	if before.value != "" {
		f.keys--
		f.keyed = i
	}
	if after.value != "" {
		f.keys++
	}
}

// noteAcquired records whether a server had a key during call at, a successful outermost acquire.
func (f *index) noteAcquired(at int) {
	switch c := &f.calls[at]; {
	case f.keys > 0 || f.keyed > c.invoke:
		f.keyedCall = true
	default:
		c.keyless = true
	}
}
