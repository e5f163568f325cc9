package leases

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// Names of the probes.
const (
	worksProbe    = "works"
	renewsProbe   = "renews"
	notifiesProbe = "notifies"
	releasesProbe = "releases"
	deadlineProbe = "deadline"
	quorumProbe   = "quorum"
)

var probes = []struct {
	name, script string
	nodes        int // the fewest
}{
	{worksProbe, `
clients A
A acquire
A extend
A release
A acquire
A release
expect none
`, 1},
	{renewsProbe, `
clients A B
A acquire
wait 3ttl
B try
A crash
wait 3ttl
B try
expect none
`, 1},
	{notifiesProbe, `
clients A
A acquire
partition A
wait 2ttl
expect none
`, 1},
	{releasesProbe, `
clients A
A acquire
A release
wait 1ttl
expect none
`, 1},
	{deadlineProbe, `
clients A B
A acquire
begin B acquire within 0.1ttl
await B done
expect none
`, 1},
	{quorumProbe, `
clients A
nodes 3
n1 crash
A acquire
expect none
`, 3},
}

// Probes returns the short scripts whose histories show [Observe] what a lock does.
func Probes(s strategies.Strategy) (list []*scenarios.Script) {
	for _, p := range probes {
		if max(1, s.Nodes) < p.nodes {
			continue
		}
		script, err := scenarios.Parse(p.name+".txt", []byte(p.script))
		if err != nil {
			panic(err) // the texts are above
		}
		list = append(list, script)
	}
	return list
}

// Observed is what the probes show of a lock.
type Observed struct {
	// Tags are those of the strategy, and those for what the lock was seen to do.
	Tags []string
	// Lease is the first time to live of the lock's key, if it differs clearly from the TTL that the lock
	// was given, and otherwise 0.
	Lease time.Duration
	// Overstay is how long an acquire went on after its context was done, or 0 if it was no longer than an
	// attempt takes.
	Overstay time.Duration
	// Unknown is the error of an acquire of a taken lock, if the error does not say that the lock was not
	// acquired, and no fault explains it.
	Unknown string
}

// Hints returns what the probes say about the lock's own declarations, as sentences about "its" parts.
func (o Observed) Hints() (list []string) {
	if o.Unknown != "" {
		list = append(list, fmt.Sprintf("its acquire of a taken lock returned %q, so the outcome counts as unknown: if the error means that the lock was not acquired, list it in Strategy.Refusals", o.Unknown))
	}
	if o.Overstay > 0 {
		list = append(list, fmt.Sprintf("its acquire ignores its context: for a taken lock it returned %v after the context was done", o.Overstay))
	}
	return list
}

// Observable returns the tags that [Observe] may add.
func Observable() []string {
	return []string{
		strategies.TagExtending, strategies.TagFenced, strategies.TagRenewing, strategies.TagReaped,
		strategies.TagNotifying, strategies.TagAsync, strategies.TagQuorum,
	}
}

// Observe reads the histories of the probes, by the names of their scripts. A missing history shows
// nothing. The error describes the failure of a lock with one client and without any fault.
func Observe(s strategies.Strategy, histories map[string]checker.History) (Observed, error) {
	seen := Observed{Tags: slices.Clone(s.Tags), Lease: firstLease(histories[worksProbe]), Overstay: overstay(histories[deadlineProbe]), Unknown: UnknownError(histories[deadlineProbe])}
	tag := func(name string, is bool) {
		if is && !slices.Contains(seen.Tags, name) {
			seen.Tags = append(seen.Tags, name)
		}
	}
	for _, e := range returned(histories[worksProbe]) {
		switch {
		case e.Op == checker.Extend: // the lock may not support it
			tag(strategies.TagExtending, e.Result != checker.Fail)
		case e.Result != checker.OK:
			return seen, fmt.Errorf("with one client and nothing done to it, its %s returned %q", e.Op, e.Error)
		case e.Token != 0:
			tag(strategies.TagFenced, true)
		}
	}
	// A lock whose key exists while its holder lives, and not afterwards, renews its lease or has none.
	if list := returned(histories[renewsProbe]); len(list) >= 2 && list[len(list)-2].Result != checker.OK && list[len(list)-1].Result == checker.OK {
		expires := expires(histories[renewsProbe])
		tag(strategies.TagRenewing, expires)
		tag(strategies.TagReaped, !expires)
	}
	tag(strategies.TagNotifying, notifies(histories[notifiesProbe]) && !expiresUnnoticed(histories[renewsProbe]))
	tag(strategies.TagAsync, releasesLater(histories[releasesProbe]))
	list := returned(histories[quorumProbe])
	tag(strategies.TagQuorum, len(list) == 1 && list[0].Result == checker.OK)
	return seen, nil
}

// returned returns the return events of a history.
func returned(h checker.History) (list []checker.Event) {
	for _, e := range h.Events {
		if e.Kind == checker.Return {
			list = append(list, e)
		}
	}
	return list
}

// expires reports whether a command gave a key of A a time to live.
func expires(h checker.History) bool {
	return slices.ContainsFunc(h.Events, func(e checker.Event) bool {
		return e.Kind == checker.State && e.Cause == checker.ByCommand && e.Owner == "A" && e.Expires > 0
	})
}

// notifies reports whether the lock told A, which could reach no server, of the loss before the first
// of its keys had expired.
func notifies(h checker.History) bool {
	expires := time.Duration(0) // of the key that lasts shortest
	for _, e := range h.Events {
		switch {
		case e.Kind == checker.State && e.Owner == "A" && e.Cause == checker.ByCommand && e.Expires > 0 && (expires == 0 || e.Expires < expires):
			expires = e.Expires
		case e.Kind == checker.Lost && e.Client == "A":
			return expires > 0 && e.Time <= expires
		}
	}
	return false
}

// expiresUnnoticed reports whether A's key expired, while A could reach the server, before the lock told
// A of the loss.
func expiresUnnoticed(h checker.History) bool {
	for _, e := range h.Events {
		switch {
		case e.Kind == checker.Lost && e.Client == "A":
			return false
		case e.Kind == checker.State && e.Cause == checker.ByExpiry && e.Owner == "":
			return true
		case e.Kind == checker.Crash:
			return false
		}
	}
	return false
}

// releasesLater reports whether A's release returned before a command of A removed its key.
func releasesLater(h checker.History) bool {
	return len(h.Events) > 0 && len((&judgement{h: h}).lateReleases()) > 0
}

// overstay returns the delay of B's acquire after the end of its context, which ends after a tenth
// of the lease. A delay of up to a third of the lease, which an attempt may take, counts as 0.
func overstay(h checker.History) time.Duration {
	var called time.Duration
	for _, e := range h.Events {
		switch {
		case e.Client != "B" || e.Op != checker.Acquire:
		case e.Kind == checker.Invoke:
			called = e.Time
		case e.Kind == checker.Return:
			if late := e.Time - called - h.Meta.TTL/10; late > h.Meta.TTL/3 {
				return late.Round(time.Millisecond)
			}
		}
	}
	return 0
}

// firstLease returns the first time to live of the lock's key if it clearly differs from the TTL that
// the lock was given, and 0 otherwise.
func firstLease(h checker.History) time.Duration {
	for _, e := range h.Events {
		if e.Kind == checker.State && e.Owner != "" && e.Expires > 0 {
			lease := e.Expires - e.Time
			if off := (lease - h.Meta.TTL).Abs(); off > h.Meta.TTL/10 {
				return lease.Round(time.Millisecond)
			}
			return 0
		}
	}
	return 0
}

// UnknownError returns an operation's error with an unknown outcome that is not a connection or context
// error, or an empty string.
func UnknownError(h checker.History) string {
	for _, e := range h.Events {
		if e.Kind != checker.Return || e.Result != checker.Unknown {
			continue
		}
		known := false
		for _, word := range []string{
			context.Canceled.Error(), context.DeadlineExceeded.Error(), "timeout", "EOF", "connection", "closed", "READONLY", "NOREPLICAS", "LOADING", "reset", "dial", "MISCONF", "OOM",
		} {
			known = known || strings.Contains(e.Error, word)
		}
		if !known && e.Error != "" {
			return e.Error
		}
	}
	return ""
}
