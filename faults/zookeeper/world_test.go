package zookeeper

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/faults/real/realtest"
)

// stage is a world of members.
type stage struct{ *realtest.Stage }

const (
	// lease is how long a session lasts when its client says nothing: longer
	// than a busy machine lets a client wait for its turn.
	lease = 15 * time.Second
	// short is one that a test can wait for. Clients ping three times in it.
	short = 6 * time.Second
)

func newStage(t *testing.T) *stage {
	t.Helper()
	return newStageFor(t, faults.SingleKeyLock("lock"), 1)
}

func newStageFor(t *testing.T, lock faults.Lock, members int) *stage {
	t.Helper()
	h := hostOf(t, members)
	s := &stage{realtest.New(t, real.Config{Host: h, Nodes: members, Service: Service{}, Lock: lock, TTL: lease})}
	s.Clean = func(told string) string { return counted.ReplaceAllString(told, "zxid 0x…") }
	return s
}

// connect connects a client by its link, and logs in.
func (s *stage) connect(client string) *zk.Conn {
	s.T.Helper()
	return s.connectFor(client, lease)
}

// connectFor is connect with a session of that length.
func (s *stage) connectFor(client string, session time.Duration) *zk.Conn {
	s.T.Helper()
	home, err := s.Admit(client)
	if err != nil {
		s.T.Fatal(err)
	}
	at := home.Places[0]
	c, _, err := zk.Connect([]string{at.Addr}, session, zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(func() { _ = s.Do(func() error { c.Close(); return nil }) })
	s.Must(func() error { return c.AddAuth("digest", []byte(at.Username+":"+at.Password)) })
	return c
}

// counted is what depends on how often members had to elect.
var counted = regexp.MustCompile(`zxid 0x[0-9a-f]+`)

// pings returns how many pings of a client were let in.
func (s *stage) pings(client string) (n int) {
	for _, e := range s.Events {
		if e.Kind == checker.Request && e.Silent && e.Client == client && e.Command == "PING" {
			n++
		}
	}
	return n
}

func match(client string, way faults.Way, commands ...string) faults.Match {
	return faults.Match{Clients: []string{client}, Way: way, Commands: commands}
}

func TestRequestsAreTold(t *testing.T) {
	s := newStage(t)
	s.Begin()
	a := s.connect("A")
	s.Wants("A", `
		A > n1/0 CONNECT new session of 15000 ms
		A < reply CONNECT new session of 15000 ms = session of 15000 ms
		A > n1/0 AUTH digest (secret)
		A < reply AUTH digest (secret) = ok`)
	b := s.connect("B")
	s.Events = nil
	acl := zk.AuthACL(zk.PermAll)
	before := s.Client("A")
	recipe := zk.NewLock(a, "/lock", acl)
	s.Must(recipe.Lock)
	after := s.Client("A")
	if trips, replies := after.RoundTrips-before.RoundTrips, after.Replies-before.Replies; trips != 5 || replies != 5 || after.UnderWay != 0 || after.InHand != 0 {
		t.Errorf("%d round trips, %d replies, %+v", trips, replies, after)
	}
	s.Wants("A", `
		A > n1/0 CREATE /lock/_c_…-lock- ephemeral sequential [A1]
		A < reply CREATE /lock/_c_…-lock- ephemeral sequential [A1] = no node
		A > n1/0 EXISTS /lock
		A < reply EXISTS /lock = no node
		A > n1/0 CREATE /lock
		A < reply CREATE /lock = /lock zxid 0x…
		A > n1/0 CREATE /lock/_c_…-lock- ephemeral sequential [A2]
		A < reply CREATE /lock/_c_…-lock- ephemeral sequential [A2] = /lock/_c_…-lock-0000000000 zxid 0x… [A2]
		A > n1/0 GETCHILDREN /lock
		A < reply GETCHILDREN /lock = _c_…-lock-0000000000 [A2]`)
	// B waits behind A, and is told when A's node is gone.
	waits := s.Start(zk.NewLock(b, "/lock", acl).Lock)
	s.Await("B watches", func() bool { return strings.Contains(s.MessageLines("B"), "watch [A2] = czxid") })
	s.Must(recipe.Unlock)
	if err := s.End(waits); err != nil {
		t.Error(err)
	}
	s.Wants("B", `
		B > n1/0 CREATE /lock/_c_…-lock- ephemeral sequential [B1]
		B < reply CREATE /lock/_c_…-lock- ephemeral sequential [B1] = /lock/_c_…-lock-0000000001 zxid 0x… [B1]
		B > n1/0 GETCHILDREN /lock
		B < reply GETCHILDREN /lock = _c_…-lock-0000000000 _c_…-lock-0000000001 [A2 B1]
		B > n1/0 GETDATA /lock/_c_…-lock-0000000000 watch [A2]
		B < reply GETDATA /lock/_c_…-lock-0000000000 watch [A2] = czxid 0x… version 0
		B < push  = node deleted /lock/_c_…-lock-0000000000 [A2]
		B > n1/0 GETCHILDREN /lock
		B < reply GETCHILDREN /lock = _c_…-lock-0000000001 [B1]`)
	s.Must(func() error {
		_, err := a.Multi(&zk.CheckVersionRequest{Path: "/lock", Version: -1}, &zk.CreateRequest{Path: "/lock/x", Data: []byte("A-0123456789"), Acl: acl}, &zk.SetDataRequest{Path: "/lock/x", Version: 0})
		return err
	})
	s.Must(func() error { _, _, err := a.Get("/lock/x"); return err })
	s.Must(func() error { _, err := a.Set("/lock/x", []byte("A-0123456789"), 1); return err })
	if err := s.Do(func() error { return a.Delete("/lock", -1) }); !errors.Is(err, zk.ErrNotEmpty) {
		t.Error(err)
	}
	s.Wants("A", `
		A > n1/0 MULTI; CHECK /lock; CREATE /lock/x [A3]; SETDATA /lock/x version 0
		A < reply MULTI; CHECK /lock; CREATE /lock/x [A3]; SETDATA /lock/x version 0 = ok; /lock/x; version 1
		A > n1/0 GETDATA /lock/x
		A < reply GETDATA /lock/x = czxid 0x… version 1
		A > n1/0 SETDATA /lock/x version 1 [A3]
		A < reply SETDATA /lock/x version 1 [A3] = version 2 zxid 0x…
		A > n1/0 DELETE /lock
		A < reply DELETE /lock = not empty`)
}

// TestPings checks that pings are carried and recorded, count as no round trip, and match no gate
// order about any request.
func TestPings(t *testing.T) {
	s := newStage(t)
	a := s.connectFor("A", short)
	s.Begin()
	s.Events = nil
	before := s.Client("A")
	s.Inject(faults.Drop{Match: match("A", faults.Before)}, faults.Drop{Match: match("A", faults.After)})
	session := a.SessionID()
	s.Await("it has pinged", func() bool { return s.pings("A") >= 4 }) // longer than a session
	after := s.Client("A")
	if after.RoundTrips != before.RoundTrips || after.Replies != before.Replies || after.Lost != 0 || after.UnderWay != 0 {
		t.Errorf("from %+v to %+v", before, after)
	}
	if met := s.Met(); !slices.Equal(met, []int{0, 0}) {
		t.Errorf("the orders have met %v", met)
	}
	s.Inject(faults.Clear{})
	s.Must(func() error { _, _, err := a.Children("/"); return err })
	if a.SessionID() != session {
		t.Error("the session has ended")
	}
	// By its name one is met. Then nothing comes any more, and the client looks for a server anew.
	s.Events = nil
	s.Inject(faults.Drop{Match: match("A", faults.Before, "PING"), Times: 1})
	s.Await("it connects again", func() bool { return strings.Contains(s.MessageLines("A"), "AUTH digest (secret) = ok") })
	if told := s.MessageLines("A"); !strings.Contains(told, "A < reply CONNECT session of 6000 ms again = session ") { // or that it has expired, where a machine is slow
		t.Errorf("told was\n%s", told)
	}
}

func TestOrdersByCommand(t *testing.T) {
	s := newStage(t)
	a, b := s.connect("A"), s.connect("B")
	acl := zk.AuthACL(zk.PermAll)
	s.Must(func() error { _, err := b.Create("/lock", nil, 0, acl); return err })
	s.Begin()
	has := func() (n int) {
		t.Helper()
		s.Must(func() error {
			list, _, err := b.Children("/lock")
			n = len(list)
			return err
		})
		return n
	}
	create := func(path string) func() error {
		return func() error { _, err := a.Create(path, nil, 0, acl); return err }
	}

	// It is held whatever else is asked for with it, and takes no effect before it passes.
	s.Inject(faults.Hold{Match: match("A", faults.Before, "SETDATA", "CREATE")})
	s.Must(func() error { _, _, err := a.Exists("/lock"); return err })
	done := s.Start(func() error {
		_, err := a.Multi(&zk.CheckVersionRequest{Path: "/lock", Version: -1}, &zk.CreateRequest{Path: "/lock/1", Acl: acl})
		return err
	})
	s.Await("it is held", func() bool { return s.Client("A").Held == 1 })
	if n := has(); n != 0 {
		t.Errorf("%d nodes before it passed", n)
	}
	s.Inject(faults.Pass{Clients: []string{"A"}})
	if err := s.End(done); err != nil {
		t.Error(err)
	}
	if n := has(); n != 1 {
		t.Errorf("%d nodes when it had passed", n)
	}

	// An answer is late by as much as it should be, and nobody else's.
	const late = 200 * time.Millisecond
	s.Inject(faults.Delay{Match: match("A", faults.After, "GETCHILDREN"), By: faults.Span{Abs: late}})
	s.Within(late, func() { has() })
	begun := time.Now()
	s.Must(func() error { _, _, err := a.Children("/lock"); return err })
	if took := time.Since(begun); took < late {
		t.Errorf("an answer that is %v late took %v", late, took)
	}
	s.Inject(faults.Clear{})

	// Whose answer is lost doesn't know that it was done, and hears nothing more on that connection: he finds a server anew, with his session.
	s.Events = nil
	s.Inject(faults.Drop{Match: match("A", faults.After, "CREATE"), Times: 1})
	if err := s.Do(create("/lock/2")); !errors.Is(err, zk.ErrConnectionClosed) {
		t.Errorf("its answer was lost, and %v", err)
	}
	if n := has(); n != 2 {
		t.Errorf("%d nodes, though only the answer was lost", n)
	}
	s.Await("it has logged in again", func() bool { return strings.Contains(s.MessageLines("A"), "AUTH digest (secret) = ok") })

	// To set up a connection is not any request; the first one behind it is reset.
	s.Inject(faults.Reset{Match: match("A", faults.Before), Times: 1})
	if err := s.Do(create("/lock/3")); err == nil {
		t.Error("a connection that was reset goes on")
	}
	s.Await("it has logged in once more", func() bool { return strings.Count(s.MessageLines("A"), "AUTH digest (secret) = ok") == 2 })
	if n := has(); n != 2 {
		t.Errorf("%d nodes, though the request was lost", n)
	}
	if met := s.Met(); !slices.Equal(met, []int{1, 1, 1, 1}) {
		t.Errorf("the orders have met %v", met)
	}
}
