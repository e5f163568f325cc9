package leases

import (
	"fmt"
	"maps"
	"time"

	"github.com/lockfault/lockfault/checker"
)

// A lateRelease is a release that returned before a command of its client removed the client's key:
// the lock releases asynchronously.
type lateRelease struct {
	client  string
	event   int // the index of the release's return
	to      time.Duration
	removed time.Duration // or when the history ended, if that was before
	open    bool          // the history ended before
}

type lateReleases []lateRelease

// lateReleases returns the asynchronous releases of the run. The command comes within a third of a
// lease, and not in a later operation of the client. A release shortly before the end of the history is
// asynchronous if another one was, or if the lock was seen to be.
func (j *judgement) lateReleases() (list lateReleases) {
	longest := time.Duration(0)
	if j.async {
		longest = j.h.Meta.TTL / 3
	}
	owners := map[string]string{} // by server
	for i, e := range j.h.Events {
		switch {
		case e.Kind == checker.State:
			owners[e.Server] = e.Owner
		case e.Kind == checker.Return && e.Op == checker.Release && e.Result == checker.OK:
			if removed, ok := j.removedLater(i, maps.Clone(owners)); ok {
				list = append(list, lateRelease{client: e.Client, event: e.Index, to: e.Time, removed: removed})
				longest = max(longest, removed-e.Time)
			}
		}
	}
	end := j.h.Events[len(j.h.Events)-1].Time
	for _, e := range j.h.Events {
		if longest > 0 && e.Kind == checker.Return && e.Op == checker.Release && e.Result == checker.OK && e.Time+longest > end {
			list = append(list, lateRelease{client: e.Client, event: e.Index, to: e.Time, removed: end, open: true})
		}
	}
	return list
}

// removedLater returns when a command that a client's release left to be sent removed the client's
// key, given the position of the release's return, and the owners by then, which it changes.
func (j *judgement) removedLater(at int, owners map[string]string) (time.Duration, bool) {
	release := j.h.Events[at]
	for i := at + 1; i < len(j.h.Events) && j.h.Events[i].Time <= release.Time+j.h.Meta.TTL/3; i++ {
		e := j.h.Events[i]
		if e.Kind != checker.State || owners[e.Server] != release.Client || e.Owner == release.Client {
			continue
		}
		if e.Cause == checker.ByCommand && e.Client == release.Client && !j.removes(e.Client, i) {
			return e.Time, true
		}
		delete(owners, e.Server)
	}
	return 0, false
}

// removes reports whether the client has an operation under way at event at that may remove its key by
// itself: a release or, unless the lock is known to release asynchronously, an acquire.
func (j *judgement) removes(client string, at int) bool {
	return j.busy(client, at, checker.Release) ||
		!j.async && (j.busy(client, at, checker.Acquire) || j.busy(client, at, checker.TryAcquire))
}

// of returns what to say of the release with the given return; empty if it is not asynchronous.
func (list lateReleases) of(event int) string {
	for _, l := range list {
		if l.event == event {
			return l.String()
		}
	}
	return ""
}

// keptFrom returns what to say of a release that was under way between two times; empty if none was.
func (list lateReleases) keptFrom(from, to time.Duration) string {
	for _, l := range list {
		if l.to < to && from < l.removed {
			return l.String()
		}
	}
	return ""
}

func (l lateRelease) String() string {
	if l.open {
		return fmt.Sprintf("the command of %s's release had not been sent when the run ended: the lock releases asynchronously", l.client)
	}
	return fmt.Sprintf("%s's release returned %.3fs before its command removed the key", l.client, (l.removed - l.to).Seconds())
}
