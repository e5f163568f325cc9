package real_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/process"
	"github.com/lockfault/lockfault/faults/process/processtest"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/faults/real/proxy"
	"github.com/lockfault/lockfault/faults/real/realtest"
)

// council is a service whose members are servers of Redis that say of the lock what the test has them say.
type council struct {
	real.Host
	mu   sync.Mutex
	said map[string]string // by node: a version and, if somebody has the lock, an owner; nothing says that it doesn't know
}

func (*council) Name() string                     { return "council" }
func (*council) Login(password string) real.Login { return real.Login{Password: password} }
func (*council) Clusters() bool                   { return true }
func (*council) Speaks() proxy.Protocol           { return counting{} }
func (*council) Commands() []string               { return []string{"PING"} }
func (*council) Part(string, string) error        { return nil }
func (*council) Rejoin(string, string) error      { return nil }

// counting is Redis's protocol, whose servers answer one request after the other.
type counting struct{ proxy.RESP }

func (counting) Begin() proxy.Session { return new(counted) }

type counted struct {
	proxy.RESP
	asked, answers int // by who reads requests, and by who reads answers
	unanswered     atomic.Int64
}

func (c *counted) Reply(b []byte) (says proxy.Reply, n int, err error) {
	if says, n, err = c.RESP.Reply(b); n > 0 {
		c.answers++
		says.Answers = c.answers + int(c.unanswered.Load())
	}
	return says, n, err
}

// Request makes one command a Quiet message, and another one give up the previous request.
func (c *counted) Request(b []byte) (asks proxy.Request, n int, err error) {
	if asks, n, err = c.RESP.Request(b); n > 0 {
		c.asked++
		switch asks.Words[0] {
		case "CLIENT": // of what comes next there is no answer, nor of this
			asks.Quiet = true
			c.unanswered.Add(2)
		case "ECHO":
			asks.Quiet = true
		case "GET", "BLPOP":
			asks.Reads = true
		case "SET", "BRPOP":
			asks.Within = []proxy.KeyRange{proxy.Only(asks.Words[1])}
		case "TIME":
			asks.Silent, asks.GivesUp = true, []int{c.asked - 1}
		}
	}
	return asks, n, err
}

func (c *council) Start(ctx context.Context, spec real.ServerSpec) (real.Server, error) {
	s, err := c.Host.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &member{s.(real.ManagedServer), c, spec.Node}, nil
}

// says sets the answers of members from now on, a word for each of n1 to n3.
func (c *council) says(what ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, said := range what {
		c.said[fmt.Sprintf("n%d", i+1)] = said
	}
}

type member struct {
	real.ManagedServer
	of   *council
	node string
}

func (m *member) Inspect(_ context.Context, query, name string) (seen real.LockState, err error) {
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	said := m.of.said[m.node]
	if said == "" {
		return seen, errors.New("it doesn't know")
	}
	version, owner, _ := strings.Cut(said, " ")
	seen.Version, err = strconv.ParseInt(version, 10, 64)
	if err != nil || query != "?" || name != "lock" {
		return seen, fmt.Errorf("%q of %q: %s: %w", query, name, said, err)
	}
	switch owner, good := strings.CutSuffix(owner, " for good"); {
	case good:
		seen.Holders = []real.Holder{{Owner: owner}}
	case owner != "":
		bound, lasts := strings.CutSuffix(owner, " for as long as it lasts")
		seen.Holders = []real.Holder{{Owner: bound, Ends: real.WithLease}}
		if lasts {
			seen.Holders[0].Bond = "it"
		}
	}
	return seen, nil
}

// Bound implements [real.SessionInspector]: what a lock is had with lasts, and a member on a busy machine needs some time to say so.
func (m *member) Bound(ctx context.Context, bond string) (bool, error) {
	select {
	case <-time.After(300 * time.Millisecond):
		return bond == "it", nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// TestQuietMessages checks that Quiet messages pass unseen, whatever is next to them, and that a
// client that has given up a request waits for no answer.
func TestQuietMessages(t *testing.T) {
	t.Parallel()
	c := &council{Host: processtest.Host(t, process.Options{}), said: map[string]string{}}
	s := newStage(t, real.Config{Host: c, Service: c, Nodes: 1, TTL: time.Hour}, "client")
	a := s.conn("A", "n1")
	s.Begin()
	trips := func(what string, want int) {
		t.Helper()
		is := s.Client("A")
		if is.RoundTrips != want || is.UnderWay != 0 || is.Lost != 0 {
			t.Errorf("%s: %+v, want %d round trips, and nothing else", what, is, want)
		}
	}
	s.apply(faults.Drop{Match: faults.Match{Clients: []string{"A"}, Way: faults.Before, Commands: []string{"ECHO"}}})
	if _, err := a.to.Write([]byte("ECHO x\r\nPING\r\n")); err != nil { // at once
		t.Fatal(err)
	}
	a.hear("$1 x +PONG")
	trips("with something quiet before it", 1)
	s.want("", checker.Dropped)
	if _, err := a.to.Write([]byte("CLIENT REPLY SKIP\r\nPING\r\n")); err != nil {
		t.Fatal(err)
	}
	s.await("it is asked, and will have no answer", func() bool { return s.Client("A").UnderWay == 1 })
	a.say("TIME")
	s.await("it is given up", func() bool { return s.Client("A").UnderWay == 0 })
	s.await("the time is told", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		told := strings.Count(string(a.heard), "\r\n") == 5
		if told {
			a.heard = nil
		}
		return told
	})
	a.ask("PING", "+PONG")
	trips("one that was given up, and another", 3)
	s.forget()
	s.apply(faults.Partition{Clients: []string{"A"}})
	a.say("ECHO y")
	s.run(20 * time.Millisecond)
	trips("what is quiet is no loss", 3)
	s.want("", checker.Dropped)
}

// TestClustersLocks checks that a cluster's lock is as the member with the newest state reports it,
// and that a change during which no member could be asked is credited to no client.
func TestClustersLocks(t *testing.T) {
	t.Parallel()
	const (
		ofA = "A-0123456789abcdef"
		ofB = "B-fedcba9876543210"
	)
	c := &council{Host: processtest.Host(t, process.Options{}), said: map[string]string{}}
	c.says("1", "1", "1")
	s := newStage(t, real.Config{Host: c, Service: c, Nodes: 3, Lock: faults.Lock{Keys: []string{"lock"}, Query: "?"}, TTL: time.Hour}, "client")
	a, b := s.conn("A", "n1"), s.conn("B", "n2")
	s.Begin()
	stands := func(what, want string) {
		t.Helper()
		got := strings.ReplaceAll(strings.TrimSpace(realtest.States(s.events)), "\n", ", ")
		if s.events = nil; got != want {
			t.Errorf("%s: %s\nwant %s", what, got, want)
		}
	}
	const anything, answer = "PING", "+PONG"
	ask := func(w *wire) { t.Helper(); w.say(anything); w.hear(answer) }

	c.says("2 "+ofA, "1", "1")
	ask(a)
	stands("taken by way of n1", "n1: A (A1) by command A, n2: A (A1) by command A, n3: A (A1) by command A")
	ask(b)
	stands("n2 is behind", "")
	c.says("2 "+ofA, "3 "+ofB, "2 "+ofA)
	ask(b)
	stands("A's lease ended, and B took it", "n2: free by expiry, n1: free by expiry, n3: free by expiry, n2: B (B1) by command B, n1: B (B1) by command B, n3: B (B1) by command B")
	ask(a)
	stands("n1 is behind", "")
	s.apply(faults.PauseNode{Node: "n1"})
	c.says("3 "+ofB, "4", "")
	ask(b)
	stands("given back while n1 stands still", "n2: free by command B, n3: free by command B")
	c.says("5 "+ofA, "", "")
	ask(b)
	stands("nobody knows", "")
	s.apply(faults.ResumeNode{Node: "n1"})
	c.says("5 "+ofA, "6 "+ofA, "")
	ask(a)
	stands("A had it before anybody could see that", "n1: free by replication, n1: (A1) by command, n2: (A1) by command, n3: (A1) by command")
	c.says("7", "", "")
	ask(a)
	stands("and nobody any more", "n1: free by command A, n2: free by command A, n3: free by command A")
	c.says("8 "+ofA, "", "")
	ask(a)
	stands("A's again", "n1: A (A1) by command A, n2: A (A1) by command A, n3: A (A1) by command A")
	ask(b)
	c.says("9", "9", "9")
	ask(b)
	stands("what is nobody's is known to be", "n2: free by expiry, n1: free by expiry, n3: free by expiry")
	c.says("9", "9", "10 "+ofB)
	s.apply(faults.CrashNode{Node: "n3"}, faults.RestartNode{Node: "n3"})
	stands("who comes back is asked", "n3: B (B1) by command B, n1: B (B1) by command B, n2: B (B1) by command B")
	forGood := " " + ofB + " for good"
	c.says("11"+forGood, "11"+forGood, "11"+forGood)
	ask(b)
	c.says("", "", "")
	ask(b)
	stands("nobody knows again", "")
	c.says("12", "12", "12")
	ask(a)
	stands("B may have given it back when nobody could see it", "n1: free by command B, n2: free by command B, n3: free by command B")
}

// Whose lease lasts has not lost the lock by its end, however long a server takes to say that it lasts.
func TestLeaseThatLasts(t *testing.T) {
	t.Parallel()
	c, s := alone(t)
	b, a := s.conn("B", "n1"), s.conn("A", "n1")
	s.Begin()
	c.says("2 B-fedcba9876543210 for as long as it lasts")
	b.ask("PING", "+PONG")
	c.says("3")
	a.ask("PING", "+PONG")
	const want = "n1: B (B1) by command B, n1: free by command A"
	if got := strings.ReplaceAll(strings.TrimSpace(realtest.States(s.events)), "\n", ", "); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// alone returns a council of one member, which reports that the lock is free, and its stage.
func alone(t *testing.T) (*council, *stage) {
	c := &council{Host: processtest.Host(t, process.Options{}), said: map[string]string{}}
	c.says("1")
	return c, newStage(t, real.Config{Host: c, Service: c, Nodes: 1, Lock: faults.Lock{Keys: []string{"lock"}, Query: "?"}, TTL: time.Hour}, "client")
}

// What reads, or is about other keys, has not changed whose the lock is, whether it was answered or is under way.
func TestWhoCantHaveDoneIt(t *testing.T) {
	t.Parallel()
	const (
		ofB     = " B-fedcba9876543210"
		forGood = ofB + " for good"
		// Of these the latter two wait for an answer, for as long as the test lasts.
		anything, reads, elsewhere     = "PING", "GET other", "SET other x"
		open, openReads, openElsewhere = "BRPOP ?lock 0", "BLPOP list 0", "BRPOP list 0"
	)
	for _, c := range []struct {
		name     string
		had      string // by B
		open     string // of B's
		asks     string // A, while it is free
		want     string
		knowsWho bool // by which request
	}{
		{"stolen", forGood, openReads, anything, "free by command A", true},
		{"stolen, while its owner asks for another", forGood, openElsewhere, anything, "free by command A", true},
		{"stolen, or given back", forGood, open, anything, "free by command B", true},
		{"stolen by another way", forGood, openReads, reads, "free by command", false},
		{"stolen by another way, while somebody asks for another", forGood, openReads, elsewhere, "free by command", false},
		{"ended", ofB, openReads, reads, "free by expiry", false},
		{"ended, while its owner asks for another", ofB, openElsewhere, elsewhere, "free by expiry", false},
		{"ended, or given back", ofB, open, reads, "free by command B", true},
		{"ended, or given back by one of two", ofB, open + "; " + open, reads, "free by command B", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			members, s := alone(t)
			a, b := s.conn("A", "n1"), s.conn("B", "n1")
			s.Begin()
			members.says("2" + c.had)
			b.ask("PING", "+PONG")
			s.forget()
			for i, request := range strings.Split(c.open, "; ") {
				on := b
				if i > 0 {
					on = s.conn("B", "n1")
				}
				on.say(request)
				s.await("the server to have it", func() bool { return s.asked("B", request) == i+1 })
			}
			members.says("3")
			a.say(c.asks)
			s.await("A to be answered", func() bool { return s.Client("A").UnderWay == 0 && s.Client("A").RoundTrips == 1 })
			var states []checker.Event
			asked := map[time.Duration]bool{} // by when
			for _, e := range s.events {
				switch e.Kind {
				case checker.State:
					states = append(states, e)
				case checker.Request:
					asked[e.Sent] = true
				}
			}
			got := strings.TrimSpace(realtest.States(s.events))
			if got != "n1: "+c.want || len(states) != 1 {
				t.Fatalf("%s\nwant %s", got, c.want)
			}
			if sent := states[0].Sent; sent > 0 != c.knowsWho || c.knowsWho && !asked[sent] {
				t.Errorf("a request that set out at %v did it, of those at %v", sent, asked)
			}
		})
	}
}

// asked returns how often servers have been let have a request of a client's since the test forgot what was.
func (s *stage) asked(client, request string) (n int) {
	for _, e := range s.events {
		if e.Kind == checker.Request && e.Client == client && e.Command == request {
			n++
		}
	}
	return n
}

// TestAnswersThatTook checks that an answer that reports the lock as acquired is credited to a
// request that may have acquired it.
func TestAnswersThatTook(t *testing.T) {
	t.Parallel()
	c, s := alone(t)
	one, other := s.conn("A", "n1"), s.conn("A", "n1")
	s.Begin()
	s.apply(faults.Drop{Match: faults.Match{Clients: []string{"A"}, Way: faults.After, Effect: faults.Taking}})
	one.say("BRPOP ?lock 0")
	s.await("the server to have it", func() bool { return s.asked("A", "BRPOP ?lock 0") == 1 })
	c.says("2 A-0123456789abcdef")
	other.ask("SET other x", "+OK")
	s.want("", checker.Dropped)
	other.ask("LPUSH ?lock y", ":1")
	s.await("what took it to be lost", func() bool { return strings.Contains(fmt.Sprint(s.events), string(checker.Dropped)) })
	if !one.silent() {
		t.Error("the answer of what took the lock has come")
	}
}

// TestQueriesNeedServersThatCanBeAsked checks that a lock with a Query runs only on servers that
// can be asked.
func TestQueriesNeedServersThatCanBeAsked(t *testing.T) {
	t.Parallel()
	_, err := real.New(t.Context(), real.Config{
		Host: processtest.Host(t, process.Options{}), Nodes: 1, TTL: time.Second, Lock: faults.Lock{Keys: []string{"lock"}, Query: "?"},
	})
	if err == nil || !strings.Contains(err.Error(), "the lock has a Query") {
		t.Errorf("%v", err)
	}
}
