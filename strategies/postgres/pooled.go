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
	session.May = atMost("overlap", "stale-write",
		"contention", "ten-contenders", "client-clock-skew", "gc-pause-holding", "fencing-order", "work-exceeds-ttl", "late-release",
		"release-twice", "pause-in-release", "acquire-twice-release-once", "watchdog-runaway", "missed-wakeup", "holder-cut-off", "leader-paused",
		"server-clock-forward", "server-clock-back", "leader-clock-fast")
	xact := advisoryXact()
	xact.May["leader-paused"] = []string{"starvation"} // A's transaction has the one session, so nobody is even told that it is taken
	for _, s := range []strategies.Strategy{session, xact, row()} {
		s.Name = strings.Replace(s.Name, Service, Pooled, 1)
		s.Service = Pooled
		s.Summary += "; behind a pooler with one session"
		list = append(list, s)
	}
	return list
}

// atMost is what may be shown wherever two clients want one lock.
func atMost(a, b string, scenarios ...string) map[string][]string {
	may := map[string][]string{"reentrant-acquire": {}}
	for _, name := range scenarios {
		may[name] = []string{a, b}
	}
	return may
}
