package leases

import (
	"fmt"
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
// lease, and not in a later release of the client. A release shortly before the end of the history is
// asynchronous if another one was, or if the lock was seen to be.
func (j *judgement) lateReleases() (list lateReleases) {
	longest := time.Duration(0)
	if j.async {
		longest = j.h.Meta.TTL / 3
	}
	for i, e := range j.h.Events {
		if e.Kind != checker.Return || e.Op != checker.Release || e.Result != checker.OK {
			continue
		}
		if removed, ok := j.removedLater(i); ok {
			list = append(list, lateRelease{client: e.Client, event: e.Index, to: e.Time, removed: removed})
			longest = max(longest, removed-e.Time)
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
// key, given the position of the release's return.
func (j *judgement) removedLater(at int) (time.Duration, bool) {
	release := j.h.Events[at]
	owner := map[string]string{} // of each server
	for i, e := range j.h.Events {
		switch {
		case i < at:
			if e.Kind == checker.State {
				owner[e.Server] = e.Owner
			}
		case e.Time > release.Time+j.h.Meta.TTL/3:
			return 0, false
		case e.Kind == checker.State && owner[e.Server] == release.Client && e.Owner != release.Client:
			if e.Cause == checker.ByCommand && e.Client == release.Client && !j.busy(e.Client, i, checker.Release) {
				return e.Time, true
			}
			delete(owner, e.Server)
		}
	}
	return 0, false
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
