package postgres

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real"
)

const (
	other   = "B-fedcba9876543210"
	leases  = "CREATE TABLE leases (name text, owner text, expires timestamptz)"
	whose   = "SELECT owner, extract(epoch FROM expires) - extract(epoch FROM clock_timestamp()) FROM leases WHERE name = $1"
	take    = "INSERT INTO leases VALUES ('lock', $1, clock_timestamp() + $2::interval)"
	renew   = "UPDATE leases SET expires = clock_timestamp() + $2::interval WHERE owner = $1"
	give    = "DELETE FROM leases WHERE owner = $1"
	capture = "UPDATE leases SET owner = $1, expires = clock_timestamp() + '10 min'"
)

func TestWhoseARowIs(t *testing.T) {
	s := newStageFor(t, faults.Lock{Keys: []string{"lock"}, Query: whose}, false)
	a, b := s.connect("A", pgx.QueryExecModeExec), s.connect("B", pgx.QueryExecModeExec)
	s.Begin() // there is no table yet, so nobody has it
	s.Must(executing(a, leases))
	s.Stands("a table", "")
	s.Must(executing(a, take, owner, "10 min"))
	s.Stands("taken", "n1: A (A1) for 10m0s by command A")
	s.Must(executing(b, "SELECT 1"))
	s.Must(executing(a, renew, owner, "20 min"))
	s.Stands("renewed", "n1: A (A1) for 20m0s by command A")
	s.Must(executing(b, give, owner))
	s.Stands("taken away", "n1: free by command B")
	s.Must(executing(a, take, owner, "300 ms"))
	s.Await("it is over", func() bool { return strings.Contains(fmt.Sprint(s.Events), string(checker.ByExpiry)) })
	s.Stands("with a lease", `
		n1: A (A1) for 0s by command A
		n1: free by expiry`)
	s.Must(executing(b, capture, other))
	s.Stands("what was over is taken", "n1: B (B1) for 10m0s by command B")
	s.Must(executing(a, capture, owner))
	s.Stands("what wasn't is taken", "n1: A (A1) for 10m0s by command A")
	s.Must(executing(a, "UPDATE leases SET expires = 'infinity'"))
	s.Stands("for good", "n1: A (A1) by command A")
	s.Must(executing(a, "UPDATE leases SET owner = 'nobody knows'"))
	s.Stands("of whom nobody heard", `n1: ("nobody knows") by command A`)
}

// busy starts a request of a client that takes a while, and returns when the server has it.
func (s *stage) busy(client string, c *pgx.Conn) chan error {
	s.T.Helper()
	done := s.Start(executing(c, "SELECT pg_sleep(0.5)"))
	s.Await(client+" asks", func() bool { return strings.Contains(s.MessageLines(client), client+" > n1/0 SELECT pg_sleep") })
	return done
}

// TestWhoseDoingItWas checks that, among clients with a request in progress, the previous holder
// counts as the one that released the lock, and the new holder as the one that acquired it.
func TestWhoseDoingItWas(t *testing.T) {
	s := newStageFor(t, faults.Lock{Keys: []string{"lock"}, Query: whose}, false)
	a, b := s.connect("A", pgx.QueryExecModeExec), s.connect("B", pgx.QueryExecModeExec)
	s.Must(executing(a, leases))
	s.Begin()
	s.Must(executing(a, take, owner, "10 min"))
	s.Stands("taken", "n1: A (A1) for 10m0s by command A")

	done := s.busy("A", a)
	s.Must(executing(b, give, owner))
	s.Stands("freed while its owner asks something", "n1: free by command A")
	s.Must(func() error { return <-done })

	s.Must(executing(a, take, owner, "10 min"))
	s.Events = nil
	done = s.busy("A", a)
	s.Must(executing(b, capture, other))
	s.Stands("taken over meanwhile", `
		n1: free by command A
		n1: B (B1) for 10m0s by command B`)
	s.Must(func() error { return <-done })

	c := s.connect("C", pgx.QueryExecModeExec)
	s.Events = nil
	done = s.busy("A", a)
	s.Must(executing(c, give, other))
	s.Stands("taken away while others ask, too", "n1: free by command")
	s.Must(func() error { return <-done })
}

// TestWhoseASessionIs checks that an advisory lock belongs to a session, identified by the name
// with which it began, and ends with it.
func TestWhoseASessionIs(t *testing.T) {
	for name, pooled := range map[string]bool{"postgres": false, "pgbouncer": true} {
		t.Run(name, func(t *testing.T) {
			const (
				query = `SELECT application_name, NULL FROM pg_locks JOIN pg_stat_activity USING (pid)
					WHERE locktype = 'advisory' AND granted AND $1 = 'lock' AND objid = 7`
				lock   = "SELECT pg_advisory_xact_lock(7)"
				unlock = "SELECT pg_advisory_unlock(7)"
			)
			s := newStageFor(t, faults.Lock{Keys: []string{"lock"}, Query: query}, pooled)
			a := s.connectAs("A", owner)
			s.Begin() // what its session said of itself before is known still
			s.Must(executing(a, "BEGIN; "+lock, pgx.QueryExecModeSimpleProtocol))
			s.Stands("taken", "n1: A (A1) by command A")
			s.Must(executing(a, "COMMIT"))
			s.Stands("given back", "n1: free by command A")
			if pooled {
				return
			}
			b := s.connectAs("B", other)
			s.Must(executing(a, strings.Replace(lock, "_xact", "", 1)))
			done := s.Start(executing(b, lock+", pg_sleep(0.1)")) // which ends with the statement
			s.Await("B asks", func() bool { return strings.Contains(s.MessageLines("B"), "B > n1/0 SELECT pg_advisory") })
			s.Must(executing(a, unlock))
			if err := s.End(done); err != nil {
				t.Fatal(err)
			}
			s.Stands("one after the other", `
				n1: A (A1) by command A
				n1: free by command A
				n1: B (B1) by command B
				n1: free by command B`)
			s.Must(executing(a, strings.Replace(lock, "_xact", "", 1)))
			s.Events = nil
			s.Must(func() error { return a.Close(context.Background()) })
			s.Await("it is free", func() bool { return strings.Contains(fmt.Sprint(s.Events), string(checker.BySession)) })
			s.Stands("its session ends", "n1: free by session-end")
		})
	}
}

// connectAs acts like connect, with a given application name.
func (s *stage) connectAs(client, name string) *pgx.Conn {
	s.T.Helper()
	home, err := s.Admit(client)
	if err != nil {
		s.T.Fatal(err)
	}
	return s.dial(home.Places[0], pgx.QueryExecModeExec, name)
}

// TestWhoTookWhatNamesNobody checks that a lock without an owner value belongs to the client whose
// command made it, if no other client can have made it.
func TestWhoTookWhatNamesNobody(t *testing.T) {
	taker := func(c faults.Change) (string, bool) {
		if c.After[0].Exists() {
			return c.Client, c.Client != ""
		}
		return "", true
	}
	s := newStageFor(t, faults.Lock{Keys: []string{"lock"}, Query: "SELECT 'taken', 'infinity'::float8 FROM locks WHERE name = $1", Owner: taker}, false)
	a, b := s.connect("A", pgx.QueryExecModeExec), s.connect("B", pgx.QueryExecModeExec)
	s.table(a)
	s.Must(executing(a, taking, "lock", ""))
	s.Stands("taken", "n1: A (taken) by command A")
	s.Must(executing(a, "DELETE FROM locks"))
	s.Stands("freed", "n1: free by command A")
	done := s.busy("B", b)
	s.Must(executing(a, taking, "lock", ""))
	s.Stands("taken by one of two", "n1: (taken) by command")
	s.Must(func() error { return <-done })
}

// TestQueriesAsTheyAreWritten checks queries that end in a semicolon or a comment, that contain
// constants of several types, that don't use the lock's name, and that find rows without an owner.
func TestQueriesAsTheyAreWritten(t *testing.T) {
	const query = "SELECT owner, NULL FROM leases -- who else?\n UNION ALL SELECT 'A-0123456789abcdef', 600 WHERE EXISTS (SELECT FROM leases)"
	for _, ending := range []string{" ; \n", " -- and no more"} {
		s := newStageFor(t, faults.Lock{Keys: []string{"lock"}, Query: query + ending}, false)
		a := s.connect("A", pgx.QueryExecModeExec)
		s.Must(executing(a, leases))
		s.Begin()
		s.Must(executing(a, "INSERT INTO leases VALUES ('lock', NULL, NULL)"))
		s.Stands("it stands there, and is nobody's", "n1: A (A1) for 10m0s by command A")
	}
}

// TestLockedTable checks that an inspection doesn't wait for a client that has locked the table,
// because that client's answer would wait for the inspection.
func TestLockedTable(t *testing.T) {
	s := newStageFor(t, faults.Lock{Keys: []string{"lock"}, Query: whose}, false)
	a := s.connect("A", pgx.QueryExecModeExec)
	s.Must(executing(a, leases))
	s.Begin()
	for _, statement := range []string{"BEGIN", "LOCK TABLE leases IN ACCESS EXCLUSIVE MODE", "INSERT INTO leases VALUES ('lock', '" + owner + "', clock_timestamp() + '10 min'::interval)"} {
		s.Must(executing(a, statement))
	}
	s.Stands("nobody can see it", "")
	s.Must(executing(a, "COMMIT"))
	s.Stands("taken", "n1: A (A1) for 10m0s by command A")
}

// A question that makes no sense is the cell's error.
func TestQueriesThatFail(t *testing.T) {
	for query, want := range map[string]string{
		"SELECT nothing FROM pg_locks WHERE $1 = ''": `it is to return for each holder who that is and the seconds that he has left: ERROR: column "nothing" does not exist (SQLSTATE 42703)`,
		"SELECT 1 WHERE $1 = ''":                     "it has one column, and is to have two, for each holder who that is and the seconds that he has left",
		"SELECT 'A', 1, 2":                           "it has 3 columns, and is to have two, for each holder who that is and the seconds that he has left",
		"DELETE FROM pg_class WHERE relname = $1":    "syntax error",
		"SELECT 'A', 'NaN'::float8":                  "NaN seconds are none",
		"SELECT 'A', 'soon'":                         "invalid input syntax",
	} {
		w, err := real.New(t.Context(), real.Config{Host: host(t, false), Nodes: 1, Service: Service{}, Lock: faults.Lock{Keys: []string{"lock"}, Query: query}, TTL: time.Second,
			Record: func(checker.Event) {}})
		if err != nil {
			t.Fatal(err)
		}
		w.Begin()
		if err := w.Err(); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "real: n1/0: asking whose the lock is: the strategy's Query can't be asked: ") {
			t.Errorf("%s: %v; want %s", query, err, want)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}
