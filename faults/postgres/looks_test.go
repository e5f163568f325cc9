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

// states returns how the lock stood on the servers since the last time, one change a line.
func (s *stage) states() string {
	var b strings.Builder
	for _, e := range s.events {
		if e.Kind != checker.State {
			continue
		}
		whose := "free"
		if e.Owner != "" || e.Value != "" {
			whose = strings.TrimSpace(fmt.Sprintf("%s (%s)", e.Owner, e.Value))
		}
		if e.Expires != 0 {
			whose += " until " + fmt.Sprint((e.Expires - e.Time).Round(10*time.Second))
		}
		fmt.Fprintf(&b, "%s by %s\n", whose, strings.TrimSpace(string(e.Cause)+" "+e.Client))
	}
	s.events = nil
	return strings.TrimSpace(b.String())
}

// stands compares how the lock stood since the last time.
func (s *stage) stands(what, want string) {
	s.t.Helper()
	want = strings.ReplaceAll(strings.TrimSpace(want), "\t", "")
	if got := s.states(); got != want {
		s.t.Errorf("%s:\n%s\nwant\n%s", what, got, want)
	}
}

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
	s.must(executing(a, leases))
	s.stands("a table", "")
	s.must(executing(a, take, owner, "10 min"))
	s.stands("taken", "A (A1) until 10m0s by command A")
	s.must(executing(b, "SELECT 1"))
	s.must(executing(a, renew, owner, "20 min"))
	s.stands("renewed", "A (A1) until 20m0s by command A")
	s.must(executing(b, give, owner))
	s.stands("taken away", "free by command B")
	s.must(executing(a, take, owner, "300 ms"))
	s.await("it is over", func() bool { return strings.Contains(fmt.Sprint(s.events), string(checker.ByExpiry)) })
	s.stands("with a lease", `
		A (A1) until 0s by command A
		free by expiry`)
	s.must(executing(b, capture, other))
	s.stands("what was over is taken", "B (B1) until 10m0s by command B")
	s.must(executing(a, capture, owner))
	s.stands("what wasn't is taken", "A (A1) until 10m0s by command A")
	s.must(executing(a, "UPDATE leases SET expires = 'infinity'"))
	s.stands("for good", "A (A1) by command A")
	s.must(executing(a, "UPDATE leases SET owner = 'nobody knows'"))
	s.stands("of whom nobody heard", `("nobody knows") by command A`)
}

// Of those who have something under way he has given the lock back who had it, and a new holder has taken it.
func TestWhoseDoingItWas(t *testing.T) {
	s := newStageFor(t, faults.Lock{Keys: []string{"lock"}, Query: whose}, false)
	a, b := s.connect("A", pgx.QueryExecModeExec), s.connect("B", pgx.QueryExecModeExec)
	s.must(executing(a, leases))
	s.Begin()
	s.must(executing(a, take, owner, "10 min"))
	s.stands("taken", "A (A1) until 10m0s by command A")

	busy := func(c *pgx.Conn) chan error { return s.begin(executing(c, "SELECT pg_sleep(0.5)")) }
	done := busy(a)
	s.must(executing(b, give, owner))
	s.stands("freed while its owner asks something", "free by command A")
	s.must(func() error { return <-done })

	s.must(executing(a, take, owner, "10 min"))
	s.states()
	done = busy(a)
	s.must(executing(b, capture, other))
	s.stands("taken over meanwhile", `
		free by command A
		B (B1) until 10m0s by command B`)
	s.must(func() error { return <-done })

	c := s.connect("C", pgx.QueryExecModeExec)
	s.states()
	done = busy(a)
	s.must(executing(c, give, other))
	s.stands("taken away while others ask, too", "free by command")
	s.must(func() error { return <-done })
}

// An advisory lock is that session's which has it, by what that was called as it began, and ends with it.
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
			s.must(executing(a, "BEGIN; "+lock, pgx.QueryExecModeSimpleProtocol))
			s.stands("taken", "A (A1) by command A")
			s.must(executing(a, "COMMIT"))
			s.stands("given back", "free by command A")
			if pooled {
				return
			}
			b := s.connectAs("B", other)
			s.must(executing(a, strings.Replace(lock, "_xact", "", 1)))
			done := s.begin(executing(b, lock+", pg_sleep(0.1)")) // which ends with the statement
			s.await("B asks", func() bool { return s.Client("B").UnderWay == 1 })
			s.must(executing(a, unlock))
			if err := s.end(done); err != nil {
				t.Fatal(err)
			}
			s.stands("one after the other", `
				A (A1) by command A
				free by command A
				B (B1) by command B
				free by command B`)
			s.must(executing(a, strings.Replace(lock, "_xact", "", 1)))
			s.states()
			s.must(func() error { return a.Close(context.Background()) })
			s.await("it is free", func() bool { return strings.Contains(fmt.Sprint(s.events), string(checker.BySession)) })
			s.stands("its session ends", "free by session-end")
		})
	}
}

// connectAs is connect with a name of one's own.
func (s *stage) connectAs(client, name string) *pgx.Conn {
	s.t.Helper()
	home, err := s.Admit(client)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.dial(home.Places[0], pgx.QueryExecModeExec, name)
}

// A lock that names nobody is whose command made it, if nobody else's could have.
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
	s.must(executing(a, taking, "lock", ""))
	s.stands("taken", "A (taken) by command A")
	s.must(executing(a, "DELETE FROM locks"))
	s.stands("freed", "free by command A")
	done := s.begin(executing(b, "SELECT pg_sleep(0.5)"))
	s.must(executing(a, taking, "lock", ""))
	s.stands("taken by one of two", "(taken) by command")
	s.must(func() error { return <-done })
}

// A question that makes no sense is the cell's error, and one on servers that are not asked at all is, too.
func TestQueriesThatFail(t *testing.T) {
	for query, want := range map[string]string{
		"SELECT nothing FROM pg_locks WHERE $1 = ''": `column "nothing" does not exist`,
		"SELECT 1 WHERE $1 = ''":                     `2 columns specified`,
		"DELETE FROM pg_class WHERE relname = $1":    `syntax error`,
	} {
		s := &stage{t: t}
		w, err := real.New(t.Context(), real.Config{Host: host(t, false), Nodes: 1, Service: Service{}, Lock: faults.Lock{Keys: []string{"lock"}, Query: query}, TTL: time.Second,
			Record: func(e checker.Event) { s.events = append(s.events, e) }})
		if err != nil {
			t.Fatal(err)
		}
		w.Begin()
		if err := w.Err(); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "real: n1/0: asking whose the lock is: ") {
			t.Errorf("%s: %v; want %s", query, err, want)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	_, err := real.New(t.Context(), real.Config{Host: host(t, false), Nodes: 1, Lock: faults.Lock{Keys: []string{"lock"}, Query: "SELECT 1"}})
	if err == nil || !strings.Contains(err.Error(), "has a Query") {
		t.Errorf("servers that are not asked: %v", err)
	}
}
