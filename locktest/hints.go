package locktest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
)

// hints returns possible causes in the test itself: facts about the lock that the test probably
// does not declare.
func (test *test) hints(cell reports.Cell, script *scenarios.Script, h checker.History) string {
	var b strings.Builder
	hint := func(format string, args ...any) { fmt.Fprintf(&b, "\n"+format, args...) }
	if test.observed.Lease > 0 && test.cell.TTL == 0 {
		hint("The lock's key was there for %v at first, and Env.TTL was another: if that is its lease, say so in Subject.TTL.", test.observed.Lease)
	}
	if test.observed.Overstay > 0 {
		hint("Acquire ignores its context: for a lock that was taken it came back %v after the context was done. What follows from that may be what you see here.", test.observed.Overstay)
	}
	if says := leases.UnknownError(h); says != "" {
		hint("An operation returned %q, of which nobody knows what came of it: if it says that the lock is taken, or no longer its user's, list the error in Subject.Refused.", says)
	}
	if script.HonourValidity && !slices.ContainsFunc(h.Events, func(e checker.Event) bool { return e.Kind == checker.Return && e.Until > 0 }) {
		hint("In this scenario clients stop where the lock's validity ends, if the lock says when that is: by a method ValidUntil() time.Time.")
	}
	if d := cell.Unjudged; d != nil {
		hint("Nobody can tell from the servers whose the lock is: Subject.Keys and Subject.Owner say it.")
	}
	if slices.ContainsFunc(cell.MetNothing, func(m reports.MetNothing) bool { return !m.OrNone }) {
		hint("Some of what the scenario does met nothing, so it is not the one that it is meant to be.")
	}
	return b.String()
}
