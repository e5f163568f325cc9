package checker

import (
	"slices"
)

// StuckLock: see [Descriptions].
const StuckLock Anomaly = "stuck-lock"

var stuckLockEntry = Description{
	Name: StuckLock, Letter: "S", Short: "stuck", Class: Liveness,
	Meaning:    "nobody holds, yet nobody can acquire, and waiting will not help",
	ServerSide: true,
	Lasting:    true,
	find:       stuckLock,
}

// stuckLock finds the acquires that failed, or never ended, on a key that had no holder and would
// never expire.
func stuckLock(f *index, yield func(*Witness) bool) {
	var stuck []int // leftovers
	for at := range f.leftovers {
		if f.stuck(at) {
			stuck = append(stuck, at)
		}
	}
	slices.SortStableFunc(stuck, func(a, b int) int {
		return f.calls[f.leftovers[a].call].end - f.calls[f.leftovers[b].call].end
	})
	for _, at := range stuck {
		if !yield(f.stuckWitness(&f.leftovers[at])) {
			return
		}
	}
}

func (f *index) stuckWitness(l *leftover) *Witness {
	c, o := &f.calls[l.call], f.ownerships[l.ownership]
	why := "has no time to live"
	events := []int{o.begin, c.invoke, f.endOf(c)}
	if l.renewed >= 0 {
		why = "was renewed still at " + seconds(f.events[l.renewed].Time).String()
		events = append(events, l.renewed)
	}
	return witness(f.sprintf("%s's %s, called at %s, %s, although nobody had held the lock since %s: the key on %s is %s's and %s.",
		f.name(c.client), c.op, seconds(c.from), f.outcome(c), seconds(l.since),
		f.servers[o.server].node, f.name(o.client), why), events...)
}

// stuck reports whether leftover at makes the lock stuck.
func (f *index) stuck(at int) bool {
	l := &f.leftovers[at]
	c := &f.calls[l.call]
	patience := f.meta.TTL + f.meta.Grace
	if !l.forever || patience <= 0 || c.to-l.since < patience || c.idleAtExit || c.cancelled || f.pausedDuring(c) || !f.answered(c) {
		return false
	}
	// If the owner's acquire is under way and will succeed, the owner is only slow.
	owner := f.clients[f.ownerships[l.ownership].client]
	own, underWay := f.acquiring(owner, c.end)
	return !underWay || f.calls[own].result != OK
}

// answered reports whether the call got a reply of any server: it has failed, or its client
// received a reply during the call.
func (f *index) answered(c *call) bool {
	if c.result == Fail {
		return true
	}
	replies := f.repliesTo(c.client)
	n, _ := slices.BinarySearch(replies, c.invoke)
	return n < len(replies) && replies[n] < c.end
}

// repliesTo returns the Reply events of a client.
func (f *index) repliesTo(client int) []int {
	if f.replies == nil {
		f.replies = make([][]int, len(f.clients))
		for i, e := range f.events {
			if e.Kind == Reply && e.Client != "" {
				id := f.client(e.Client).id
				f.replies[id] = append(f.replies[id], i)
			}
		}
	}
	return f.replies[client]
}
