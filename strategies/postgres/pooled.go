package postgres

import (
	"strings"

	"github.com/lockfault/lockfault/strategies"
)

// Behind returns the same locks behind a pooler that has one session, and lends it to one transaction after the other, as
// PgBouncer does with pool_mode = transaction and default_pool_size = 1.
//
// What is known of it: PgBouncer's documentation names advisory locks of sessions among what does not work with transaction
// pooling (https://www.pgbouncer.org/features.html). Whoever comes next gets the session that has the lock, and so the lock; and
// whoever comes first after that gives it back for all. A lock of a transaction keeps the session, so others
// wait for the pool and not for the lock, and a statement is enough for a row.
func Behind() (list []strategies.Strategy) {
	session := advisory()
	session.Query = "" // the session is called what its last user is, whoever has the lock
	session.Expected = map[string][]string{"reentrant-acquire": {}, "server-clock-back": {}}
	for _, all := range []string{"client-clock-skew", "work-exceeds-ttl", "late-release", "release-twice", "pause-in-release", "watchdog-runaway", "missed-wakeup", "server-clock-forward"} {
		session.Expected[all] = []string{"overlap"} // wherever two want one lock
	}
	for _, written := range []string{"contention", "ten-contenders", "gc-pause-holding", "fencing-order", "acquire-twice-release-once", "holder-cut-off", "leader-paused", "leader-clock-fast"} {
		session.Expected[written] = []string{"overlap", "stale-write"}
	}
	const order = "all of them hold, and whether one writes between two others is a matter of microseconds"
	session.Nondeterministic = map[string]string{"contention": order, "ten-contenders": order}
	xact := advisoryXact()
	xact.Expected["leader-paused"] = []string{"starvation"} // A's transaction has the one session, so nobody is even told that it is taken
	for _, s := range []strategies.Strategy{session, xact, row()} {
		s.Name = strings.Replace(s.Name, Service, Pooled, 1)
		s.Service = Pooled
		s.Summary += "; behind a pooler with one session"
		list = append(list, s)
	}
	return list
}
