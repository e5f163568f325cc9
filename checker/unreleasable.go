package checker

import (
	"sort"
	"time"
)

// Unreleasable: see [Descriptions].
const Unreleasable Anomaly = "unreleasable"

var unreleasableEntry = Description{
	Name: Unreleasable, Letter: "U", Short: "unreleas.", Class: Hygiene,
	Meaning:    "the rightful holder could not release, since its value had been overwritten",
	ServerSide: true,
	find:       unreleasable,
}

// unreleasable finds the releases within the lease that failed because another client had replaced
// the holder's value.
func unreleasable(f *index, yield func(*Witness) bool) {
	for _, at := range f.releasesByEnd() {
		c := &f.calls[at]
		if !c.failed() || c.cancelled || c.hold < 0 || !c.hasGrant || f.lastExecuted(c)-c.grant >= f.meta.TTL {
			continue
		}
		if f.held.other(c.client, c.end, c.end) >= 0 {
			continue // another client acquired since: the lock is not stuck with that value
		}
		hold := f.holds[c.hold]
		ch := f.overwritten(c, f.calls[hold.call].invoke)
		if ch == nil {
			continue
		}
		if !yield(witness(f.sprintf("%s, who had acquired at %s, could not release at %s, since %s had put %s in place of its value %s on %s at %s.",
			f.name(c.client), seconds(hold.from), seconds(c.to), f.name(ch.by), ch.after.value, ch.before.value,
			f.servers[ch.server].node, seconds(f.events[ch.at].Time)), hold.begin, ch.at, c.end)) {
			return
		}
	}
}

// lastExecuted returns when a server executed the last request that the client sent in a call, or when
// the call began if it sent none.
func (f *index) lastExecuted(c *call) time.Duration {
	for i := c.end - 1; i > c.invoke; i-- {
		if e := &f.events[i]; e.Kind == Request && e.Client == f.name(c.client) {
			return e.Time
		}
	}
	return c.from
}

// releasesByEnd returns the calls of release that returned, ordered by their returns.
func (f *index) releasesByEnd() []int {
	var all []int
	for at := range f.calls {
		if f.calls[at].op == Release && f.calls[at].result != "" {
			all = append(all, at)
		}
	}
	sort.SliceStable(all, func(a, b int) bool { return f.calls[all[a]].end < f.calls[all[b]].end })
	return all
}

// overwritten returns the last change, between event since and the return of release c, that
// replaced the releaser's value. The result is nil if the key does not exist at the return or is
// the releaser's again.
func (f *index) overwritten(c *call, since int) *change {
	replaced := f.clients[c.client].replaced
	n := sort.Search(len(replaced), func(k int) bool { return f.changes[replaced[k]].at >= c.end })
	if n == 0 {
		return nil
	}
	ch := &f.changes[replaced[n-1]]
	if ch.at <= since {
		return nil
	}
	if k := f.keyAt(ch.server, c.end); k.value == "" || k.owner == c.client {
		return nil
	}
	return ch
}

// keyAt returns the key on a server before event i.
func (f *index) keyAt(server, i int) key {
	changes := f.servers[server].changes
	n := sort.Search(len(changes), func(k int) bool { return f.changes[changes[k]].at >= i })
	if n == 0 {
		return key{owner: -1}
	}
	return f.changes[changes[n-1]].after
}
