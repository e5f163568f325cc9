package postgres

import (
	"strings"

	"github.com/lockfault/lockfault/strategies"
)

// Behind returns the same locks behind a pooler with one session. The pooler serves one transaction
// after the other, as PgBouncer does with pool_mode = transaction and default_pool_size = 1.
//
// Known faults: according to PgBouncer's documentation, session advisory locks do not work with
// transaction pooling (https://www.pgbouncer.org/features.html). The next client gets the session
// that holds the lock, and so the lock; the first release then releases it for all clients. A
// transaction lock keeps the session, so other clients wait for the pool and not for the lock. For
// a row, one statement is sufficient.
func Behind() (list []strategies.Strategy) {
	session := advisory()
	session.Query = "" // the session has the name of its last user, who need not hold the lock
	session.Expected = map[string][]string{"reentrant-acquire": {}, "server-clock-back": {}}
	for _, all := range []string{"client-clock-skew", "work-exceeds-ttl", "late-release", "release-twice", "pause-in-release", "waiter-gives-up", "watchdog-runaway", "missed-wakeup", "server-clock-forward"} {
		session.Expected[all] = []string{"overlap"} // in every scenario with two clients for one lock
	}
	for _, written := range []string{"contention", "ten-contenders", "gc-pause-holding", "fencing-order", "acquire-twice-release-once", "acquire-reply-lost", "holder-cut-off", "leader-paused", "leader-clock-fast"} {
		session.Expected[written] = []string{"overlap", "stale-write"}
	}
	const order = "all of them hold, and whether one writes between two others is a matter of microseconds"
	session.Nondeterministic = map[string]string{"contention": order, "ten-contenders": order}
	xact := advisoryXact()
	xact.Expected["leader-paused"] = []string{"starvation"} // A's transaction occupies the only session, so B gets no reply at all
	for _, s := range []strategies.Strategy{session, xact, row()} {
		s.Name = strings.Replace(s.Name, Service, Pooled, 1)
		s.Service = Pooled
		s.Summary += "; behind a pooler with one session"
		list = append(list, s)
	}
	return list
}
