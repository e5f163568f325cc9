package checker

import "sort"

// NotReleased: see [Descriptions].
const NotReleased Anomaly = "not-released"

var notReleasedEntry = Description{
	Name: NotReleased, Letter: "N", Short: "not-rel.", Class: Liveness,
	Meaning:    "the release returned, but its key kept another client from the lock; or every release is refused",
	ServerSide: true,
	Lasting:    true,
	find:       notReleased,
}

// notReleased finds the releases of holders that returned OK, or said that the lock was not held,
// without any effect on the releaser's keys on a majority of the nodes, which then kept another client
// from the lock, while no client held it; and those with which it shows that a server refuses releases for good.
func notReleased(f *index, yield func(*Witness) bool) {
	if f.meta.Service != "" {
		return // servers of other services are asked after an operation, and may be asked too late
	}
	owned := make([][]int, len(f.clients)) // ownerships of each client, by begin
	for at, o := range f.ownerships {
		owned[o.client] = append(owned[o.client], at)
	}
	releases := f.releasesByEnd()
	forGood := f.refusedForGood(releases, "releases")
	for _, at := range releases {
		r := &f.calls[at]
		if says, ok := forGood[at]; ok && !yield(witness(f.sprintf("%s's release, called at %s, %s%s", f.name(r.client), seconds(r.from), f.outcome(r), says), r.invoke, r.end)) {
			return
		}
		if (r.result != OK && r.result != Fail) || r.hold < 0 || f.holds[r.hold].release != at {
			continue
		}
		kept := f.keptBy(r, owned[r.client])
		if 2*len(kept) <= len(f.meta.Nodes) {
			continue
		}
		o := f.ownerships[kept[len(kept)-1]]
		how := "returned ok"
		if r.result == Fail { // "not held"
			how = "failed"
		}
		if c := f.keptFrom(r, &o); c != nil && !yield(witness(f.sprintf(
			"%s's release, called at %s, "+how+" at %s, but the key on %s stayed %[1]s's and kept %[5]s, whose %[6]s was called at %[7]s, from the lock.",
			f.name(r.client), seconds(r.from), seconds(r.to), f.servers[o.server].node, f.name(c.client), c.op, seconds(c.from)),
			o.begin, r.end, c.invoke, f.endOf(c))) {
			return
		}
	}
}

// keptBy returns those of a releaser's ownerships that release r left as they were, at most one for
// each node. A client's command began each of them.
func (f *index) keptBy(r *call, owned []int) (kept []int) {
	n := sort.Search(len(owned), func(k int) bool { return f.ownerships[owned[k]].begin >= r.invoke })
	nodes := map[string]bool{}
	for k := n - 1; k >= 0 && k >= n-2*len(f.servers); k-- {
		o := &f.ownerships[owned[k]]
		node := f.servers[o.server].node
		if o.by < 0 || o.end < r.end || nodes[node] || f.changedBy(r.client, o.server, r.invoke, r.end) {
			continue
		}
		nodes[node] = true
		kept = append(kept, owned[k])
	}
	return kept
}

// changedBy reports whether a command of the client changed the server's key between two events.
func (f *index) changedBy(client, server, from, to int) bool {
	changes := f.servers[server].changes
	n := sort.Search(len(changes), func(k int) bool { return f.changes[changes[k]].at > from })
	for ; n < len(changes) && f.changes[changes[n]].at < to; n++ {
		if f.changes[changes[n]].by == client {
			return true
		}
	}
	return false
}

// keptFrom returns an acquire of another client that the key of ownership o refused, or kept waiting
// for a third of the TTL, after release r: until the ownership ended or the releaser acquired again.
// No client holds the lock meanwhile.
func (f *index) keptFrom(r *call, o *ownership) *call {
	end, until := o.end, f.last
	if end < len(f.events) {
		until = f.events[end].Time
	}
	own := f.clients[r.client].acquires
	if n := sort.Search(len(own), func(k int) bool { return f.calls[own[k]].invoke > r.end }); n < len(own) && f.calls[own[n]].invoke < end {
		end, until = f.calls[own[n]].invoke, f.calls[own[n]].from
	}
	for _, other := range f.clients {
		if other.id == r.client {
			continue
		}
		first := sort.Search(len(other.acquires), func(k int) bool { return f.calls[other.acquires[k]].end > r.end })
		for k := first; k < len(other.acquires) && k < first+2; k++ {
			c := &f.calls[other.acquires[k]]
			if c.invoke >= end || c.crashed || c.hold >= 0 || f.pausedDuring(c) {
				continue
			}
			refused := c.result == Fail && !c.cancelled && c.invoke > r.end && c.end < end
			waited := timeRange{r.to, until}.within(c.waited()).length()
			if !refused && (f.meta.TTL <= 0 || waited < f.meta.TTL/3) {
				continue
			}
			if f.held.other(-1, max(c.invoke, r.end), min(c.end, end)) < 0 {
				return c
			}
		}
	}
	return nil
}
