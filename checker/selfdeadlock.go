package checker

// SelfDeadlock: see [Descriptions].
const SelfDeadlock Anomaly = "self-deadlock"

var selfDeadlockEntry = Description{
	Name: SelfDeadlock, Letter: "D", Short: "self-dead", Class: Liveness,
	Meaning: "a holder waited for its own lock",
	Lasting: true,
	find:    selfDeadlock,
}

// selfDeadlock finds the acquires in which a holder waited for itself: the acquire failed, or took
// at least the bound.
func selfDeadlock(f *index, yield func(*Witness) bool) {
	for _, at := range f.acquires {
		c := &f.calls[at]
		if c.hold < 0 || c.crashed || c.idleAtExit || c.result == OK {
			continue
		}
		if (!c.done || c.cancelled) && !f.tookLong(c) {
			continue
		}
		if f.held.other(c.client, c.invoke, c.end) >= 0 {
			continue
		}
		hold := f.holds[c.hold]
		if !yield(witness(f.sprintf("%s, who had held the lock since %s, called %s at %s, and that %s: it was waiting for itself.",
			f.name(c.client), seconds(hold.from), c.op, seconds(c.from), f.outcome(c)),
			hold.begin, c.invoke, f.endOf(c))) {
			return
		}
	}
}

// tookLong reports whether the caller spent at least the bound in the call without a pause.
func (f *index) tookLong(c *call) bool {
	_, long := c.waited().longEnough(f.meta.Bound, f.clients[c.client].pauses)
	return f.meta.Bound > 0 && long
}
