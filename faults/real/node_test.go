package real_test

import (
	"context"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/process"
	"github.com/lockfault/lockfault/faults/process/processtest"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/faults/worldtest"
	"github.com/lockfault/lockfault/internal/rediscli"
)

var (
	stop     = faults.Replication{Node: "n1", Mode: faults.ReplicationStop}
	failover = faults.Failover{Node: "n1"}
	crash    = faults.CrashNode{Node: "n1"}
	restart  = faults.RestartNode{Node: "n1"}
)

func lag(d time.Duration) faults.Fault {
	return faults.Replication{Node: "n1", Mode: faults.ReplicationDelay, Delay: faults.Span{Abs: d}}
}

func TestFailover(t *testing.T) {
	const long = 10 * time.Minute
	for _, c := range []struct {
		name   string
		order  faults.Fault
		wait   string // the answer to WAIT
		value  string
		events string
	}{
		{"replicated", nil, ":1", "$9 A-value-1", `
			n1/0 A1 for 30s by command A
			n1/1 A1 for 30s by failover`},
		{"stopped", stop, ":0", "$-1", `
			n1/0 A1 for 30s by command A
			n1/1 gone by failover`},
		{"delayed", lag(long), ":0", "$-1", `
			n1/0 A1 for 30s by command A
			n1/1 gone by failover`},
		{"delayed, but arrived", lag(50 * time.Millisecond), ":1", "$9 A-value-1", `
			n1/0 A1 for 30s by command A
			n1/1 A1 for 30s by failover`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, real.Config{Replicas: 1}, "client")
			a := s.conn("A", "n1")
			s.Begin()
			if c.order != nil {
				s.apply(c.order)
			}
			a.ask("SET lock A-value-1 PX 30000", "+OK")
			within := "WAIT 1 0"
			if c.wait == ":0" {
				within = "WAIT 1 100"
			}
			a.ask(within, c.wait)
			s.apply(failover)
			a.ends()
			s.conn("B", "n1").ask("GET lock", c.value)
			s.want(c.events, checker.State)
			if err := s.Apply(failover); err == nil || !strings.Contains(err.Error(), "no replica of n1 runs") {
				t.Errorf("a second failover: %v", err)
			}
		})
	}
}

// TestFailoverBySentinels checks that the world leaves a failover to the sentinels, redirects no
// client, and records the failover.
func TestFailoverBySentinels(t *testing.T) {
	t.Parallel()
	s := newStage(t, real.Config{Replicas: 1, Sentinels: 3}, "client")
	home := s.home("A")
	if len(home.Sentinels) != 3 || len(home.Addresses) != 2 || len(home.Places) != 0 {
		t.Fatalf("A finds %+v", home)
	}
	primary := func(sentinel string) string { return primary(t, home, sentinel) }
	old := primary(home.Sentinels[0])
	a := s.reach(real.Place{Addr: home.Addresses[old], Password: home.Password})
	s.Begin()
	a.ask("SET lock A-value-1 PX 30000", "+OK")
	a.ask("WAIT 1 0", ":1")
	s.apply(failover)
	a.ends()
	for _, sentinel := range home.Sentinels {
		if now := primary(sentinel); now == old || home.Addresses[now] == "" {
			t.Errorf("sentinel %s names %s", sentinel, now)
		}
	}
	s.reach(real.Place{Addr: home.Addresses[primary(home.Sentinels[0])], Password: home.Password}).ask("GET lock", "$9 A-value-1")
	s.want(`
		n1/0 A1 for 30s by command A
		n1/1 A1 for 30s by failover`, checker.State)
}

// primary returns the primary's address that a sentinel reports.
func primary(t *testing.T, home real.Home, sentinel string) string {
	t.Helper()
	o := rediscli.Options(sentinel)
	o.Password = home.Password
	c := redis.NewSentinelClient(o)
	defer c.Close()
	addr, err := c.GetMasterAddrByName(t.Context(), home.Master).Result()
	if err != nil || len(addr) != 2 {
		t.Fatalf("sentinel %s says %v, %v", sentinel, addr, err)
	}
	return net.JoinHostPort(addr[0], addr[1])
}

// Replicas follow by the links whose faults a script plays, however long sentinels look
// at that, and after a failover too: they would have each follow the primary itself.
func TestSentinelsLeaveLinks(t *testing.T) {
	t.Parallel()
	s := newStage(t, real.Config{Replicas: 2, Sentinels: 3}, "client")
	home := s.home("A")
	s.Begin()
	for range 2 {
		time.Sleep(1500 * time.Millisecond) // for a failover-timeout of a second, and what sentinels ask for ten times a second
		s.apply(lag(time.Minute))
		s.reach(real.Place{Addr: home.Addresses[primary(t, home, home.Sentinels[0])], Password: home.Password}).ask("SET lock A-value-1 NX", "+OK")
		s.apply(failover)
	}
	first, second := "n1/1", "n1/2"
	if strings.Contains(worldtest.Lines(s.events, checker.State), "n1/2 A1") {
		first, second = second, first // both had got equally far
	}
	s.want(fmt.Sprintf(`
		n1/0 A1 by command A
		%[1]s gone by failover
		%[1]s A1 by command A
		%[2]s gone by failover`, first, second), checker.State)
}

func TestSplit(t *testing.T) {
	t.Parallel()
	s := newStage(t, real.Config{Replicas: 2}, "client")
	a, b := s.conn("A", "n1"), s.conn("B", "n1")
	s.Begin()
	a.ask("SET lock A-value-1", "+OK")
	a.ask("WAIT 2 0", ":2")
	s.apply(faults.Split{Node: "n1", Clients: []string{"B"}})
	b.ends()
	b, c := s.conn("B", "n1"), s.conn("C", "n1")
	s.apply(faults.Split{Node: "n1", Clients: []string{"C"}}) // later it may take more along
	c.ends()
	c = s.conn("C", "n1")
	if told := worldtest.Lines(s.events, checker.State); !strings.HasSuffix(told, "A1 by replication") {
		t.Errorf("nothing tells what the new primary has:\n%s", told)
	}
	s.forget()
	a.ask("GET lock", "$9 A-value-1") // A's connection is as it was
	b.ask("DEL lock", ":1")
	c.ask("SET lock C-value-1 NX", "+OK")
	a.ask("SET lock A-value-2", "+OK")
	told := "n1/1"
	if len(s.events) > 2 && strings.HasSuffix(s.events[2].Server, "2") {
		told = "n1/2" // both had got equally far
	}
	s.want(strings.ReplaceAll(`
		A > n1/0 GET lock
		B > n1/1 DEL lock
		n1/1 gone by command B
		C > n1/1 SET lock C1 NX
		n1/1 C1 by command C
		A > n1/0 SET lock A2
		n1/0 A2 by command A`, "n1/1", told), checker.Request, checker.State)
	s.forget()
	s.apply(faults.Join{Node: "n1"})
	a.ends()
	s.want(strings.ReplaceAll("n1/1 C1 by failover", "n1/1", told), checker.State)
	a = s.conn("A", "n1")
	a.ask("GET lock", "$9 C-value-1")
	a.ask("SET lock A-value-3", "+OK")
	a.ask("WAIT 2 0", ":2") // the old primary follows now, and so does the third
}

// Who lost its place in a failover comes back as a replica of its successor, and
// can take the place again.
func TestOldPrimaryComesBackAsAReplica(t *testing.T) {
	t.Parallel()
	s := newStage(t, real.Config{Replicas: 1}, "client")
	a := s.conn("A", "n1")
	s.Begin()
	s.apply(stop)
	a.ask("SET lock A-value-1", "+OK")
	s.apply(failover)
	a.ends()
	a = s.conn("A", "n1")
	a.ask("SET lock A-value-2", "+OK")
	s.apply(restart)
	a.ask("WAIT 1 0", ":1")
	s.apply(failover)
	s.conn("A", "n1").ask("GET lock", "$9 A-value-2")
	s.want(`
		n1/0 A1 by command A
		n1/1 gone by failover
		n1/1 A2 by command A
		n1/0 A2 by failover`, checker.State)
}

func TestEmptyRestartEmptiesReplicas(t *testing.T) {
	t.Parallel()
	s := newStage(t, real.Config{Replicas: 1}, "client")
	a := s.conn("A", "n1")
	s.Begin()
	a.ask("SET lock A-value-1", "+OK")
	a.ask("WAIT 1 0", ":1")
	s.apply(crash)
	a.ends()
	down := s.dial("A", "n1")
	ends := make(chan error, 1)
	go func() {
		_, err := down()
		ends <- err
		s.Notify()
	}()
	s.await("nobody answers on a node that is down", func() bool { return len(ends) > 0 })
	if err := <-ends; err == nil {
		t.Error("connected to a node that is down")
	}
	s.apply(faults.RestartNode{Node: "n1", Empty: true})
	a = s.conn("A", "n1")
	a.ask("WAIT 1 0", ":1")
	s.apply(failover)
	s.conn("A", "n1").ask("GET lock", "$-1")
}

// A lease is over when it is over, and not before.
func TestExpiry(t *testing.T) {
	const lease = 250 * time.Millisecond
	for _, c := range []struct {
		name   string
		before []faults.Fault
		after  []faults.Fault
		events string
	}{
		{"by itself", nil, nil, `
			n1/0 A1 for 10s by command A
			n1/0 gone by expiry`},
		{"while the node is paused", []faults.Fault{faults.PauseNode{Node: "n1"}}, []faults.Fault{faults.ResumeNode{Node: "n1"}}, `
			n1/0 A1 for 10s by command A
			n1/0 gone by expiry`},
		{"while the node is down", []faults.Fault{crash}, []faults.Fault{restart}, `
			n1/0 A1 for 10s by command A
			n1/0 gone by expiry`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, real.Config{}, "client")
			a := s.conn("A", "n1")
			s.Begin()
			a.ask("SET lock A-value-1 PX 250", "+OK")
			s.apply(c.before...)
			s.run(2 * lease)
			s.apply(c.after...)
			s.want(c.events, checker.State)
			var states []checker.Event
			for _, e := range s.events {
				if e.Kind == checker.State {
					states = append(states, e)
				}
			}
			if len(states) != 2 {
				return
			}
			set, gone := states[0], states[1]
			const grain = 5 * time.Millisecond // dates are in milliseconds
			if set.Expires < lease-set.Time-grain || set.Expires > set.Time+lease {
				t.Errorf("set at %v, it is said to expire at %v", set.Time, set.Expires)
			}
			if gone.Time < set.Expires || gone.Time > set.Expires+10*time.Second {
				t.Errorf("gone at %v; its lease ended at %v", gone.Time, set.Expires)
			}
		})
	}
}

// A client that comes when the lease has just run out isn't the reason why.
func TestExpiryBeforeACommand(t *testing.T) {
	t.Parallel()
	s := newStage(t, real.Config{}, "client")
	a := s.conn("A", "n1")
	s.Begin()
	a.ask("SET lock A-value-1 PX 100", "+OK")
	time.Sleep(300 * time.Millisecond) // nobody looks meanwhile
	a.ask("SET lock A-value-2 NX", "+OK")
	s.want(`
		n1/0 A1 for 10s by command A
		n1/0 gone by expiry
		n1/0 A2 by command A`, checker.State)
}

func TestApplyErrors(t *testing.T) {
	t.Parallel()
	s := newStage(t, real.Config{}, "client")
	s.place("A", "n1")
	s.Begin()
	for _, c := range []struct {
		fault faults.Fault
		want  string
	}{
		{faults.Flush{Node: "n2"}, "no such node"},
		{failover, "declare some in the script"},
		{faults.Split{Node: "n1", Clients: []string{"A"}}, "declare some in the script"},
		{faults.Join{Node: "n1"}, "not split"},
		{faults.NodeDrift{Node: "n1"}, "above 0"},
		{faults.NodeDrift{Node: "n1", Rate: math.NaN()}, "above 0"},
		{faults.NodeDrift{Node: "n1", Rate: math.Inf(1)}, "above 0"},
		{faults.NodeClock{Node: "n1", By: faults.Span{TTLs: 1}}, "without one of its own"},
		{faults.PauseClient{Client: "Z"}, "never started"},
	} {
		err := s.Apply(c.fault)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; want %q", c.fault, err, c.want)
		}
	}
	// What is so already is no fault.
	s.apply(
		restart, faults.ResumeNode{Node: "n1"}, faults.Heal{}, faults.Pass{},
		faults.ResumeClient{Client: "A"}, faults.RestartClient{Client: "A"},
		faults.PauseNode{Node: "n1"}, faults.PauseNode{Node: "n1"}, faults.ResumeNode{Node: "n1"},
		crash, crash, restart, restart,
	)
	if slices.ContainsFunc(s.events, func(e checker.Event) bool { return e.Kind != checker.Fault }) {
		t.Error("something happened")
	}
	s.conn("A", "n1").ask("PING", "+PONG")
}

// slow is a host whose servers take a while to die.
type slow struct {
	real.SentinelHost
	by time.Duration
}

type slowServer struct {
	real.ManagedServer
	by time.Duration
}

func (h slow) Start(ctx context.Context, spec real.ServerSpec) (real.Server, error) {
	s, err := h.SentinelHost.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	return slowServer{s.(real.ManagedServer), h.by}, nil
}

func (s slowServer) Kill() error {
	time.Sleep(s.by)
	return s.ManagedServer.Kill()
}

// TestLateKill checks that bytes in transit to a replica arrive while its primary is killed,
// however long that takes. If a script sets the replication lag, that time is lateness.
func TestLateKill(t *testing.T) {
	t.Parallel()
	const by = 300 * time.Millisecond
	h := processtest.Host(t, process.Options{})
	s := newStage(t, real.Config{Host: slow{h, by}, Replicas: 1, Sentinels: 3, TTL: time.Hour}, "client")
	s.Begin()
	s.apply(faults.Replication{Node: "n1", Mode: faults.ReplicationDelay, Delay: faults.Span{Abs: 50 * time.Millisecond}}, faults.Failover{Node: "n1"})
	if _, counts := s.Late(); len(counts) != 1 || counts[0].By < by || counts[0].What != `"n1 failover" to be done` {
		t.Errorf("late by %+v; want at least %v", counts, by)
	}
}
