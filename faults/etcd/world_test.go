package etcd

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/faults/real/realtest"
)

// stage is a world of one member.
type stage struct{ *realtest.Stage }

// leaseOf is how long a lease lasts, in seconds.
const leaseOf = 4

func newStage(t *testing.T, lock faults.Lock) *stage {
	t.Helper()
	s := &stage{realtest.New(t, real.Config{Host: hostOf(t, 1), Nodes: 1, Service: Service{}, Lock: lock, TTL: leaseOf * time.Second})}
	s.Clean = func(told string) string { return timers.ReplaceAllString(told, "") }
	return s
}

// timers matches requests that clients send by their own timers: keepalives, and the login before
// each stream.
var timers = regexp.MustCompile(`(?m)^.*(LEASEKEEPALIVE|AUTHENTICATE).*\n?`)

// connect connects a client by its link.
func (s *stage) connect(client string) *clientv3.Client {
	s.T.Helper()
	home, err := s.Admit(client)
	if err != nil {
		s.T.Fatal(err)
	}
	at := home.Places[0]
	var c *clientv3.Client
	s.Must(func() error {
		c, err = clientv3.New(clientv3.Config{
			Endpoints: []string{at.Addr}, Username: at.Username, Password: at.Password, DialTimeout: startLimit, Logger: zap.NewNop(),
		})
		return err
	})
	s.T.Cleanup(func() { _ = s.Do(c.Close) })
	return c
}

func match(client string, way faults.Way, commands ...string) faults.Match {
	return faults.Match{Clients: []string{client}, Way: way, Commands: commands}
}

// limited is a context for what does not succeed.
func limited(t *testing.T, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// TestRequestsAreTold checks the recorded requests, answers and unsolicited messages of a mutex of
// etcd's library.
func TestRequestsAreTold(t *testing.T) {
	s := newStage(t, faults.SingleKeyLock("lock"))
	s.Begin()
	a, b := s.connect("A"), s.connect("B")
	session := func(c *clientv3.Client) (own *concurrency.Session) {
		s.Must(func() (err error) {
			own, err = concurrency.NewSession(c, concurrency.WithTTL(leaseOf))
			return err
		})
		return own
	}
	ofA, ofB := session(a), session(b)
	s.Wants("A", `
		A > n1/0 LEASEGRANT ttl 4 s
		A < reply LEASEGRANT ttl 4 s = lease … ttl 4 s`)
	mutex, other := concurrency.NewMutex(ofA, "lock"), concurrency.NewMutex(ofB, "lock")
	s.Must(func() error { return mutex.Lock(t.Context()) })
	s.Wants("A", `
		A > n1/0 TXN if create lock/… = 0 [A1]; then PUT lock/… lease … [A1 A1]; then RANGE lock/* by create limit 1; else RANGE lock/… [A1]; else RANGE lock/* by create limit 1
		A < reply TXN if create lock/… = 0 [A1]; then PUT lock/… lease … [A1 A1]; then RANGE lock/* by create limit 1; else RANGE lock/… [A1]; else RANGE lock/* by create limit 1 = then revision 2; ok; lock/… created 2 [A1]`)
	waits := s.Start(func() error { return other.Lock(t.Context()) })
	s.Await("B watches", func() bool { return strings.Contains(s.MessageLines("B"), "= watching") })
	s.Must(func() error { return mutex.Unlock(t.Context()) })
	if err := s.End(waits); err != nil {
		t.Error(err)
	}
	told := s.MessageLines("B")
	for _, want := range []string{
		"B > n1/0 RANGE lock/* created until 2 by create descending limit 1",
		"B > n1/0 WATCH lock/… from revision 3 [A1]", "= watching revision 3",
		"B < push  = deleted lock/… revision 4 [A1]", "B > n1/0 CANCEL of WATCH", "B > n1/0 RANGE lock/… [B1]",
	} {
		if !strings.Contains(told, want) {
			t.Errorf("told was\n%s\nwithout %s", told, want)
		}
	}
	if strings.Contains(told, "secret") {
		t.Error("what isn't asked for was told")
	}
	if now := s.Client("A"); now.UnderWay != 0 || now.Lost != 0 {
		t.Errorf("nothing is under way: %+v", now)
	}
}

// TestKeptAlive checks that keepalives are carried and recorded, count as no round trip, and match
// no gate order about any request.
func TestKeptAlive(t *testing.T) {
	s := newStage(t, faults.SingleKeyLock("lock"))
	a := s.connect("A")
	s.Begin()
	var lease *clientv3.LeaseGrantResponse
	s.Must(func() (err error) { lease, err = a.Grant(t.Context(), leaseOf); return err })
	before := s.Client("A")
	s.Inject(faults.Drop{Match: match("A", faults.Before), Times: 1}, faults.Drop{Match: match("A", faults.After), Times: 1})
	var kept <-chan *clientv3.LeaseKeepAliveResponse
	s.Must(func() (err error) { kept, err = a.KeepAlive(t.Context(), lease.ID); return err })
	for range 3 {
		s.Must(func() error {
			if is := <-kept; is == nil {
				return errors.New("it isn't kept")
			}
			return nil
		})
	}
	keeps := 0
	for _, e := range s.Events {
		if e.Kind == checker.Request && e.Silent && strings.HasPrefix(e.Command, "LEASEKEEPALIVE … [") {
			keeps++
		}
	}
	if met := s.Met(); !slices.Equal(met, []int{0, 0}) || keeps < 3 {
		t.Errorf("the orders have met %v, and it was kept %d times", met, keeps)
	}
	logins := strings.Count(fmtEvents(s.Events), "AUTHENTICATE root (secret)")
	if after := s.Client("A"); after.RoundTrips > before.RoundTrips+logins || after.Lost != 0 {
		t.Errorf("from %+v to %+v with %d logins", before, after, logins)
	}
}

func fmtEvents(events []checker.Event) string {
	var b strings.Builder
	for _, e := range events {
		if e.Kind == checker.Request {
			b.WriteString(e.Command + "\n")
		}
	}
	return b.String()
}

func TestOrdersByMethod(t *testing.T) {
	s := newStage(t, faults.SingleKeyLock("lock"))
	a, b := s.connect("A"), s.connect("B")
	s.Begin()
	has := func() (n int64) {
		t.Helper()
		s.Must(func() error {
			got, err := b.Get(t.Context(), "lock", clientv3.WithPrefix(), clientv3.WithCountOnly())
			if err == nil {
				n = got.Count
			}
			return err
		})
		return n
	}

	// It is held whatever else is asked for with it, and takes no effect before it passes.
	s.Inject(faults.Hold{Match: match("A", faults.Before, "COMPACT", "PUT")})
	s.Must(func() error { _, err := a.Get(t.Context(), "lock"); return err })
	done := s.Start(func() error { _, err := a.Txn(t.Context()).Then(clientv3.OpPut("lock/1", "")).Commit(); return err })
	s.Await("it is held", func() bool { return s.Client("A").Held == 1 })
	if n := has(); n != 0 {
		t.Errorf("%d keys before it passed", n)
	}
	s.Inject(faults.Pass{Clients: []string{"A"}})
	if err := s.End(done); err != nil {
		t.Error(err)
	}
	if n := has(); n != 1 {
		t.Errorf("%d keys when it had passed", n)
	}

	// The time that a server gives a call begins when the call gets there: one that comes late, and whose client waits, is done.
	const late = 300 * time.Millisecond
	s.Inject(faults.Delay{Match: match("A", faults.Before, "DELETERANGE"), By: faults.Span{Abs: late}, Times: 1})
	begun := time.Now()
	s.Must(func() error { _, err := a.Delete(t.Context(), "lock/1"); return err })
	if took, n := time.Since(begun), has(); took < late || n != 0 {
		t.Errorf("a request that is %v late took %v, and there are %d keys", late, took, n)
	}

	// One whose client has given up comes behind: what the server makes of it, with the cancel at its heels, is its own affair.
	s.Inject(faults.Hold{Match: match("A", faults.Before, "PUT"), Times: 1})
	if err := s.Do(func() error { _, err := a.Put(limited(t, late), "lock/2", ""); return err }); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	s.Inject(faults.Pass{Clients: []string{"A"}})
	s.Must(func() error { _, err := a.Get(t.Context(), "lock"); return err })
	s.Await("nothing is under way", func() bool { return s.Client("A").UnderWay == 0 })

	// Whose answer is lost doesn't know that it was done, and hears nothing more on that connection.
	s.Events = nil
	s.Inject(faults.Drop{Match: match("A", faults.After, "PUT"), Times: 1})
	if err := s.Do(func() error { _, err := a.Put(limited(t, late), "lock/3", ""); return err }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("its answer was lost, and %v", err)
	}
	if err := s.Do(func() error { _, err := a.Get(limited(t, late), "lock"); return err }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("what comes behind an answer that was lost is lost, too: %v", err)
	}
	s.Must(func() error {
		got, err := b.Get(t.Context(), "lock/3")
		if err == nil && got.Count != 1 {
			err = errors.New("it isn't there, though only its answer was lost")
		}
		return err
	})

	// A connection that is reset is another one soon. To set it up is not any request.
	s.Inject(faults.Reset{Match: match("A", faults.Before), Times: 1})
	s.Await("it is served again", func() bool {
		return s.Do(func() error { _, err := a.Get(limited(t, late), "lock"); return err }) == nil
	})
	if met := s.Met(); !slices.Equal(met, []int{1, 1, 1, 1, 1}) {
		t.Errorf("the orders have met %v", met)
	}
}

// TestWhoseDoingItWas checks that the deletion of a key counts as another client's action while the
// servers report that the key's lease exists.
func TestWhoseDoingItWas(t *testing.T) {
	const ofA = "A-0123456789abcdef"
	s := newStage(t, faults.Lock{Keys: []string{"lock"}, Query: "$1/"})
	a, b := s.connect("A"), s.connect("B")
	s.Begin()
	take := func() {
		s.Must(func() error {
			lease, err := a.Grant(t.Context(), 1)
			if err == nil {
				_, err = a.Put(t.Context(), "lock/a", ofA, clientv3.WithLease(lease.ID))
			}
			return err
		})
	}
	take()
	s.Must(func() error { _, err := b.Delete(t.Context(), "lock/a"); return err })
	s.Stands("taken, and taken away", `
		n1: A (A2) by command A
		n1: free by command B`)
	// Who reads meanwhile hears of it first, and it was not that request's doing.
	s.Inject(faults.Hold{Match: faults.Match{Clients: []string{"A"}, Way: faults.After, Effect: faults.Taking}, Times: 1})
	reading := s.Start(func() error {
		for range 20 {
			if _, err := a.Get(t.Context(), "lock/a"); err != nil {
				return err
			}
		}
		return nil
	})
	taking := s.Start(func() error { _, err := a.Put(t.Context(), "lock/a", ofA); return err })
	s.Await("the answer to who took it is held", func() bool { return s.Client("A").Held == 1 })
	s.Inject(faults.Pass{Clients: []string{"A"}})
	for _, done := range []chan error{reading, taking} {
		if err := s.End(done); err != nil {
			t.Error(err)
		}
	}
	if told := s.MessageLines("A"); !strings.Contains(told, "A held reply PUT") || strings.Contains(told, "held reply RANGE") {
		t.Errorf("the wrong answer was held:\n%s", told)
	}
	s.Must(func() error { _, err := a.Delete(t.Context(), "lock/a"); return err })
	s.Events = nil
	take()
	s.Await("its lease is over", func() bool { return strings.Contains(realtest.States(s.Events), "free") })
	s.Stands("it ended by itself", `
		n1: A (A2) by command A
		n1: free by expiry`)
}
