package checker

import (
	"sort"
)

// LostLock: see [Descriptions].
const LostLock Anomaly = "lost-lock"

var lostLockEntry = Description{
	Name: LostLock, Letter: "L", Short: "lost", Class: Safety,
	Meaning:    "the servers lost a lock inside its lease, while its holder relied on it",
	ServerSide: true,
	find:       lostLock,
}

// lostLock finds the holds whose key the servers lost within its lease.
func lostLock(f *index, yield func(*Witness) bool) {
	for _, d := range f.departures {
		if d.cause == ByCommand || d.cause == ByExpiry {
			continue
		}
		t := f.events[d.at].Time
		if d.key.due != 0 && d.key.due-t <= f.tolerance() {
			continue // the lease was over, or nearly over
		}
		hold := f.holdAt(d.key.owner, d.at)
		if hold == nil {
			continue
		}
		owned := f.ownerships[d.key.ownership]
		lease := "that had no time to live"
		if d.key.due != 0 {
			lease = "its lease went on until " + seconds(d.key.due).String()
		}
		if !yield(witness(f.sprintf("%s, who held the lock since %s, lost its key at %s (%s on %s), though %s.",
			f.name(hold.client), seconds(hold.from), seconds(t), d.cause, f.servers[owned.server].node, lease),
			owned.begin, hold.begin, d.at)) {
			return
		}
	}
}

// holdAt returns the client's hold at event i, or nil.
func (f *index) holdAt(client, i int) *hold {
	c := f.clients[client]
	n := sort.Search(len(c.holds), func(k int) bool { return f.holds[c.holds[k]].begin >= i })
	if n == 0 {
		return nil
	}
	if b := &f.holds[c.holds[n-1]]; b.end > i {
		return b
	}
	return nil
}
