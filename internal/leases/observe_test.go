package leases

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/strategies"
)

// TestObserve checks the tags that no built-in strategy shows in every run: notifying and reaped.
func TestObserve(t *testing.T) {
	const s = time.Second
	key := func(at, expires time.Duration) checker.Event {
		return checker.Event{Time: at, Kind: checker.State, Node: "n1", Server: "n1/0", Client: "A", Owner: "A", Value: "A1", Expires: expires, Cause: checker.ByCommand}
	}
	try := func(at time.Duration, result checker.Result) checker.Event {
		return checker.Event{Time: at, Kind: checker.Return, Client: "B", Op: checker.TryAcquire, Result: result}
	}
	lost := func(at time.Duration) checker.Event {
		return checker.Event{Time: at, Kind: checker.Lost, Client: "A"}
	}
	released := checker.Event{Time: s, Kind: checker.Return, Client: "A", Op: checker.Release, Result: checker.OK}
	gone := func(at time.Duration, cause checker.Cause) checker.Event {
		return checker.Event{Time: at, Kind: checker.State, Node: "n1", Server: "n1/0", Client: "A", Cause: cause}
	}
	for _, c := range []struct {
		name   string
		probe  string
		events []checker.Event
		want   []string
	}{
		{"notified before the key expires", notifiesProbe, []checker.Event{key(0, 30*s), lost(29 * s)}, []string{strategies.TagNotifying}},
		{"notified when the key has expired", notifiesProbe, []checker.Event{key(0, 30*s), lost(31 * s)}, nil},
		{"never notified", notifiesProbe, []checker.Event{key(0, 30*s)}, nil},
		{"notified of a key without a time to live", notifiesProbe, []checker.Event{key(0, 0), lost(29 * s)}, nil},
		{"renewed", renewsProbe, []checker.Event{key(0, 30*s), try(90*s, checker.Fail), try(180*s, checker.OK)}, []string{strategies.TagRenewing}},
		{"removed by others", renewsProbe, []checker.Event{key(0, 0), try(90*s, checker.Fail), try(180*s, checker.OK)}, []string{strategies.TagReaped}},
		{"never removed", renewsProbe, []checker.Event{key(0, 0), try(90*s, checker.Fail), try(180*s, checker.Fail)}, nil},
		{"removed after the release", releasesProbe, []checker.Event{key(0, 30*s), released, gone(2*s, checker.ByCommand)}, []string{strategies.TagAsync}},
		{"removed by the release", releasesProbe, []checker.Event{key(0, 30*s), gone(s, checker.ByCommand), released}, nil},
		{"expired after the release", releasesProbe, []checker.Event{key(0, 30*s), released, gone(30*s, checker.ByExpiry)}, nil},
		{"removed by the next acquire", releasesProbe, []checker.Event{key(0, 30*s), released,
			{Time: 2 * s, Kind: checker.Invoke, Client: "A", Op: checker.Acquire, Call: 2}, gone(2*s, checker.ByCommand)}, nil},
		{"a plain lease", renewsProbe, []checker.Event{key(0, 30*s), try(90*s, checker.OK), try(180*s, checker.OK)}, nil},
	} {
		h := checker.History{Meta: checker.Meta{TTL: 30 * s}, Events: c.events}
		seen, err := Observe(strategies.Strategy{}, map[string]checker.History{c.probe: h})
		if err != nil || !slices.Equal(seen.Tags, c.want) {
			t.Errorf("%s: tags %q, %v; want %q", c.name, seen.Tags, err, c.want)
		}
		for _, tag := range seen.Tags {
			if !slices.Contains(Observable(), tag) {
				t.Errorf("%s: Observable lacks %q", c.name, tag)
			}
		}
	}
}

// TestLongestWait checks that a fault excuses a wait.
func TestLongestWait(t *testing.T) {
	const s = time.Second
	h := checker.History{Meta: checker.Meta{Clients: []string{"A"}, Nodes: []string{"n1"}, TTL: 30 * s}, Events: []checker.Event{
		{Index: 0, Kind: checker.Invoke, Client: "A", Op: checker.Acquire, Call: 1},
		{Index: 1, Time: 12 * s, Kind: checker.Return, Client: "A", Op: checker.Acquire, Call: 1, Result: checker.OK},
	}}
	if w := LongestWait(h); w.To-w.From != 12*s {
		t.Errorf("the longest wait is %v, want 12s", w.To-w.From)
	}
	h.Events = slices.Insert(h.Events, 1, checker.Event{Time: s, Kind: checker.Pause, Client: "A"}, checker.Event{Time: 2 * s, Kind: checker.Resume, Client: "A"})
	if w := LongestWait(h); w.To-w.From != 0 {
		t.Errorf("the longest wait is %v, want none: A was paused", w.To-w.From)
	}
}

// TestHints checks what is said of an acquire of a taken lock.
func TestHints(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name string
		at   time.Duration
		err  string
		want string
	}{
		{"an error of its own", 3 * s, "lock is taken", `its acquire of a taken lock returned "lock is taken", so the outcome counts as unknown`},
		{"its context's error", 3 * s, "wait: context deadline exceeded", ""},
		{"a connection's error", 3 * s, "dial tcp: connection refused", ""},
		{"much later", 60 * s, "context deadline exceeded", "its acquire ignores its context: for a taken lock it returned 57s after"},
	} {
		h := checker.History{Meta: checker.Meta{TTL: 30 * s}, Events: []checker.Event{
			{Kind: checker.Invoke, Client: "B", Op: checker.Acquire, Call: 1},
			{Time: c.at, Kind: checker.Return, Client: "B", Op: checker.Acquire, Call: 1, Result: checker.Unknown, Error: c.err},
		}}
		seen, err := Observe(strategies.Strategy{}, map[string]checker.History{deadlineProbe: h})
		hints := strings.Join(seen.Hints(), "\n")
		if err != nil || !strings.HasPrefix(hints, c.want) || c.want == "" && hints != "" {
			t.Errorf("%s: %q, %v; want %q", c.name, hints, err, c.want)
		}
	}
}
