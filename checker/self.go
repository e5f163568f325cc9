package checker

import "fmt"

// selfDeadlock finds the first acquire in which a holder waited for itself.
func selfDeadlock(f *facts) *Witness {
	for _, at := range f.acquires {
		c := &f.calls[at]
		if c.hold < 0 || c.crashed || c.idleAtExit || c.result == OK {
			continue
		}
		if f.held.other(c.client, c.invoke, c.end) >= 0 {
			continue
		}
		hold := f.holds[c.hold]
		return witness(fmt.Sprintf("%s, who had held the lock since %s, called %s at %s, and that %s: it was waiting for itself.",
			f.name(c.client), seconds(hold.from), c.op, seconds(c.from), f.outcome(c)),
			hold.begin, c.invoke, f.endOf(c))
	}
	return nil
}
