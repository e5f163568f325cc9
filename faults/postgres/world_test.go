package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/faults/real/realtest"
)

// stage is a world of one server.
type stage struct{ *realtest.Stage }

func newStage(t *testing.T, pooled bool) *stage {
	t.Helper()
	return newStageFor(t, faults.SingleKeyLock("lock"), pooled)
}

func newStageFor(t *testing.T, lock faults.Lock, pooled bool) *stage {
	t.Helper()
	h := host(t, false)
	if pooled {
		pooler, err := FindPooler()
		if err != nil && os.Getenv("CI") == "" {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		h.options.Pooler = pooler
	}
	return &stage{realtest.New(t, real.Config{Host: h, Nodes: 1, Service: Service{}, Lock: lock, TTL: 2 * time.Second})}
}

// connect connects a client by its link, in the given mode.
func (s *stage) connect(client string, mode pgx.QueryExecMode) *pgx.Conn {
	s.T.Helper()
	home, err := s.Admit(client)
	if err != nil {
		s.T.Fatal(err)
	}
	return s.dial(home.Places[0], mode, "")
}

// dial connects a client that calls itself that.
func (s *stage) dial(at real.Place, mode pgx.QueryExecMode, name string) *pgx.Conn {
	s.T.Helper()
	u := url.URL{Scheme: "postgres", User: url.UserPassword(at.Username, at.Password), Host: at.Addr, Path: database}
	config, err := pgx.ParseConfig(u.String()) // which asks for TLS first
	if err != nil {
		s.T.Fatal(err)
	}
	config.DefaultQueryExecMode = mode
	if name != "" {
		config.RuntimeParams["application_name"] = name
	}
	var c *pgx.Conn
	s.Must(func() (err error) {
		c, err = pgx.ConnectConfig(s.T.Context(), config)
		return err
	})
	s.T.Cleanup(func() {
		_ = s.Do(func() error {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			return c.Close(ctx)
		})
	})
	return c
}

// executing executes a statement.
func executing(c *pgx.Conn, sql string, values ...any) func() error {
	return func() error {
		_, err := c.Exec(context.Background(), sql, values...)
		return err
	}
}

func match(client string, way faults.Way, commands ...string) faults.Match {
	return faults.Match{Clients: []string{client}, Way: way, Commands: commands}
}

const taking = "INSERT INTO locks VALUES ($1, $2)"

// owner is an owner value such as a client draws.
const owner = "A-0123456789abcdef"

// table makes the table that the tests have, and begins.
func (s *stage) table(c *pgx.Conn) {
	s.T.Helper()
	s.Must(executing(c, "CREATE TABLE locks (name text, owner text)"))
	s.Begin()
}

func TestRequestsAreTold(t *testing.T) {
	s := newStage(t, false)
	a := s.connect("A", pgx.QueryExecModeExec)
	s.table(a)
	before := s.Client("A")
	s.Must(executing(a, taking, "lock", owner))
	s.Must(func() error {
		var batch pgx.Batch
		batch.Queue("SELECT owner FROM locks WHERE name = $1", "lock")
		batch.Queue("UPDATE locks SET owner = $1", owner)
		return a.SendBatch(context.Background(), &batch).Close()
	})
	s.Must(executing(a, "BEGIN; DELETE FROM locks; COMMIT", pgx.QueryExecModeSimpleProtocol))
	if err := s.Do(executing(a, "SELECT 1/0")); err == nil {
		t.Error("one can divide by 0")
	}
	after := s.Client("A")
	if trips, replies := after.RoundTrips-before.RoundTrips, after.Replies-before.Replies; trips != 4 || replies != 4 || after.UnderWay != 0 || after.InHand != 0 {
		t.Errorf("%d round trips, %d replies, %+v", trips, replies, after)
	}
	s.Wants("A", `
		A > n1/0 INSERT INTO locks VALUES ($1, $2) [lock A1]
		A < reply INSERT INTO locks VALUES ($1, $2) [lock A1] = INSERT 0 1
		A > n1/0 SELECT owner FROM locks WHERE name = $1 [lock]; UPDATE locks SET owner = $1 [A1]
		A < reply SELECT owner FROM locks WHERE name = $1 [lock]; UPDATE locks SET owner = $1 [A1] = SELECT 1 [A1]; UPDATE 1
		A > n1/0 BEGIN; DELETE FROM locks; COMMIT
		A < reply BEGIN; DELETE FROM locks; COMMIT = BEGIN; DELETE 1; COMMIT
		A > n1/0 SELECT 1/0
		A < reply SELECT 1/0 = ERROR 22012 division by zero`)
	// Who prepares a statement first needs a round trip more, once.
	s.Must(executing(a, "SELECT $1::int", pgx.QueryExecModeCacheStatement, 7))
	s.Must(executing(a, "SELECT $1::int", pgx.QueryExecModeCacheStatement, 8))
	s.Wants("A", `
		A > n1/0 PREPARE SELECT $1::int
		A < reply PREPARE SELECT $1::int = ready
		A > n1/0 SELECT $1::int [\x00000007]
		A < reply SELECT $1::int [\x00000007] = SELECT 1 [\x00000007]
		A > n1/0 SELECT $1::int [\x00000008]
		A < reply SELECT $1::int [\x00000008] = SELECT 1 [\x00000008]`)
}

func TestOrdersByCommand(t *testing.T) {
	for name, pooled := range map[string]bool{"postgres": false, "pgbouncer": true} {
		t.Run(name, func(t *testing.T) { playOrders(t, pooled) })
	}
}

func playOrders(t *testing.T, pooled bool) {
	s := newStage(t, pooled)
	a, b := s.connect("A", pgx.QueryExecModeExec), s.connect("B", pgx.QueryExecModeExec)
	s.table(b)
	rows := func() (n int) {
		t.Helper()
		s.Must(func() error { return b.QueryRow(context.Background(), "SELECT count(*) FROM locks").Scan(&n) })
		return n
	}

	// It is held whatever else is in its batch, and takes no effect before it passes.
	s.Inject(faults.Hold{Match: match("A", faults.Before, "DELETE", "INSERT")})
	s.Must(executing(a, "SELECT 1"))
	done := s.Start(func() error {
		var batch pgx.Batch
		batch.Queue("SELECT 1")
		batch.Queue(taking, "lock", owner)
		return a.SendBatch(context.Background(), &batch).Close()
	})
	s.Await("it is held", func() bool { return s.Client("A").Held == 1 })
	if n := rows(); n != 0 {
		t.Errorf("%d rows before it passed", n)
	}
	s.Inject(faults.Pass{Clients: []string{"A"}})
	if err := s.End(done); err != nil {
		t.Error(err)
	}
	if n := rows(); n != 1 {
		t.Errorf("%d rows when it had passed", n)
	}

	// An answer is late by as much as it should be, and nobody else's.
	const late = 200 * time.Millisecond
	s.Inject(faults.Delay{Match: match("A", faults.After, "SELECT"), By: faults.Span{Abs: late}})
	s.Within(late, func() { rows() })
	begun := time.Now()
	s.Must(executing(a, "SELECT 1"))
	if took := time.Since(begun); took < late {
		t.Errorf("an answer that is %v late took %v", late, took)
	}
	s.Inject(faults.Clear{})

	// Whose answer is lost doesn't know that it was done.
	s.Inject(faults.Drop{Match: match("A", faults.After, "INSERT"), Times: 1})
	ctx, cancel := context.WithCancel(context.Background())
	done = s.Start(func() error { _, err := a.Exec(ctx, taking, "lock", owner); return err })
	s.Await("it is lost", func() bool { return s.Client("A").Lost == 1 })
	cancel()
	if err := s.End(done); !errors.Is(err, context.Canceled) {
		t.Errorf("its answer was lost, and %v", err)
	}
	s.Must(func() error { <-a.PgConn().CleanupDone(); return nil })
	if n := rows(); n != 2 {
		t.Errorf("%d rows, though only the answer was lost", n)
	}
	s.Events = nil

	// To set up a connection is not any request; the first one behind it is reset.
	s.Inject(faults.Reset{Match: match("A", faults.Before), Times: 1})
	a = s.connect("A", pgx.QueryExecModeExec)
	if err := s.Do(executing(a, "SELECT 2")); err == nil {
		t.Error("a connection that was reset goes on")
	}
	if met := s.Met(); !slices.Equal(met, []int{1, 1, 1, 1}) {
		t.Errorf("the orders have met %v", met)
	}
	if told := s.MessageLines("A"); !strings.Contains(told, "A dropped request SELECT 2") || !strings.Contains(told, "A > n1/0 STARTUP user=lockfault database=postgres") {
		t.Errorf("told was\n%s", told)
	}
}

// TestWaitsAndGivesUp checks that a blocking statement delays no other connection, not even one of
// the same client, and that a client that gives up sends a cancel request on a new connection.
func TestWaitsAndGivesUp(t *testing.T) {
	s := newStage(t, false)
	a, b, other := s.connect("A", pgx.QueryExecModeExec), s.connect("B", pgx.QueryExecModeExec), s.connect("A", pgx.QueryExecModeExec)
	s.Begin()
	const lock = "SELECT pg_advisory_lock(7)"
	s.Must(executing(b, lock))
	s.Inject(faults.Hold{Match: match("A", faults.Before, "CANCEL")})
	ctx, cancel := context.WithCancel(context.Background())
	trips := s.Client("A").RoundTrips
	done := s.Start(func() error { _, err := a.Exec(ctx, lock); return err })
	s.Await("it waits", func() bool { return strings.Contains(s.MessageLines("A"), lock) })
	if is := s.Client("A"); is.UnderWay != 1 || is.InHand != 0 {
		t.Errorf("while it waits %+v", is)
	}
	s.Must(executing(other, "SELECT 1"))
	s.Must(executing(b, "SELECT 2"))
	cancel()
	if err := s.End(done); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	s.Await("its word is held", func() bool { return s.Client("A").Held == 1 })
	s.Inject(faults.Pass{Clients: []string{"A"}})
	s.Must(func() error { <-a.PgConn().CleanupDone(); return nil })
	// pgx leaves without waiting for the answer, so it is open whether the answer still finds it there.
	answered := func() bool { return strings.Contains(s.MessageLines("A"), "canceling statement") }
	s.Await("it is answered or has left", func() bool { return answered() || strings.Contains(s.MessageLines("A"), "TERMINATE") })
	answer := ""
	if answered() {
		if trips = s.Client("A").RoundTrips - trips; trips != 2 { // who cancels, or leaves, waits for no answer
			t.Errorf("%d round trips", trips)
		}
		answer = "\n\t\tA < reply SELECT pg_advisory_lock(7) = ERROR 57014 canceling statement due to user request"
	}
	s.Events = slices.DeleteFunc(s.Events, func(e checker.Event) bool { return e.Command == "TERMINATE" }) // who comes first isn't said
	s.Wants("A", `
		A > n1/0 SELECT pg_advisory_lock(7)
		A > n1/0 SELECT 1
		A < reply SELECT 1 = SELECT 1 [1]
		A held request CANCEL
		A passed request CANCEL
		A > n1/0 CANCEL`+answer)
}

func TestCopyAndNotices(t *testing.T) {
	s := newStage(t, false)
	a, b := s.connect("A", pgx.QueryExecModeExec), s.connect("B", pgx.QueryExecModeExec)
	s.table(b)
	s.Events = nil
	copied := func() error {
		n, err := a.CopyFrom(context.Background(), pgx.Identifier{"locks"}, []string{"name", "owner"}, pgx.CopyFromRows([][]any{{"x", "1"}, {"y", "2"}}))
		if err == nil && n != 2 {
			err = fmt.Errorf("%d rows", n)
		}
		return err
	}
	s.Must(copied)
	// pgx doesn't wait for the server before it sends the data.
	for _, line := range []string{
		`A > n1/0 copy "locks" ( "name", "owner" ) from stdin binary`, `A < reply copy "locks" ( "name", "owner" ) from stdin binary = go on`,
		"A > n1/0 COPYDATA", "A < reply COPYDATA = COPY 2",
	} {
		if told := s.MessageLines("A"); !strings.Contains(told, line+"\n") {
			t.Errorf("told was not %q, but\n%s", line, told)
		}
	}
	// The data waits before the server has it.
	s.Inject(faults.Hold{Match: match("A", faults.Before, "COPYDATA")})
	done := s.Start(copied)
	s.Await("data is held", func() bool { return s.Client("A").Held == 1 })
	var n int
	count := func() error { return b.QueryRow(context.Background(), "SELECT count(*) FROM locks").Scan(&n) }
	if s.Must(count); n != 2 {
		t.Errorf("%d rows", n)
	}
	s.Inject(faults.Pass{})
	if err := s.End(done); err != nil {
		t.Error(err)
	}
	if s.Must(count); n != 4 {
		t.Errorf("%d rows", n)
	}

	// What nobody asked for is told, and isn't taken for an answer: neither to what comes next, nor by an order.
	s.Inject(faults.Drop{Match: match("A", faults.After)}, faults.Clear{})
	s.Must(executing(a, "LISTEN freed"))
	s.Inject(faults.Drop{Match: match("A", faults.After)}, faults.Drop{Match: match("A", faults.Messages)})
	s.Events = nil
	heard := s.Start(func() error { _, err := a.WaitForNotification(context.Background()); return err })
	s.Must(executing(b, "NOTIFY freed, 'by B'"))
	if err := s.End(heard); err != nil {
		t.Error(err)
	}
	s.Inject(faults.Clear{})
	s.Must(executing(a, "SELECT 1"))
	s.Wants("A", `
		A < push  = NOTIFY freed ["by B"]
		A > n1/0 SELECT 1
		A < reply SELECT 1 = SELECT 1 [1]`)

	// Nor is the server's last word, when it ends a session.
	s.Must(executing(b, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = 'SELECT 1'"))
	s.Await("the session has ended", func() bool { return strings.Contains(s.MessageLines("A"), "57P01") })
	s.Wants("A", `A < push  = FATAL 57P01 terminating connection due to administrator command`)
}

// Behind an error the server skips what a client has sent, up to a Sync, and answers nothing of it: what comes next is answered all the same.
func TestSkippedRequests(t *testing.T) {
	s := newStage(t, false)
	a := s.connect("A", pgx.QueryExecModeExec)
	s.Begin()
	s.Must(func() error {
		p := a.PgConn().StartPipeline(context.Background())
		for _, sql := range []string{"SELECT 1/0", "SELECT 2", "SELECT 3"} {
			p.SendQueryParams(sql, nil, nil, nil, nil)
			p.SendFlushRequest()
			if err := p.Flush(); err != nil {
				return err
			}
		}
		if _, err := p.GetResults(); err == nil {
			return errors.New("one can divide by 0")
		}
		if err := p.Sync(); err != nil {
			return err
		}
		_ = p.Close() // which says what went wrong once more
		return nil
	})
	before := s.Client("A")
	s.Must(executing(a, "SELECT 4"))
	after := s.Client("A")
	if trips := after.RoundTrips - before.RoundTrips; after.UnderWay != 0 || trips != 1 {
		t.Errorf("%d round trips, %+v", trips, after)
	}
	var replies []string
	for line := range strings.Lines(s.MessageLines("A")) {
		if strings.HasPrefix(line, "A <") {
			replies = append(replies, strings.TrimSpace(line))
		}
	}
	want := []string{"A < reply SELECT 1/0 = ERROR 22012 division by zero", "A < reply SYNC = ready", "A < reply SELECT 4 = SELECT 1 [4]"}
	if !slices.Equal(replies, want) {
		t.Errorf("got  %q\nwant %q", replies, want)
	}
}
