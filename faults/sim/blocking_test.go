package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/sim"
)

func TestWait(t *testing.T) {
	stop := faults.Replication{Node: "n1", Mode: faults.ReplicationStop}
	for _, c := range []struct {
		name     string
		replicas int
		order    faults.Fault
		write    string
		wait     string
		want     string
		took     time.Duration // to the nearest 10 ms
	}{
		{"no replica", 0, nil, "SET lock A-value-1", "WAIT 1 1000", ":0\r\n", time.Second},
		{"none asked for", 0, nil, "SET lock A-value-1", "WAIT 0 1000", ":0\r\n", 0},
		{"fewer than none", 0, nil, "SET lock A-value-1", "WAIT -1 1000", ":0\r\n", 0},
		{"one of one", 1, nil, "SET lock A-value-1", "WAIT 1 1000", ":1\r\n", 0},
		{"one of two", 2, nil, "SET lock A-value-1", "WAIT 2 1000", ":2\r\n", 0},
		{"three of two", 2, nil, "SET lock A-value-1", "WAIT 3 1000", ":2\r\n", time.Second},
		{"stopped", 2, stop, "SET lock A-value-1", "WAIT 1 1000", ":0\r\n", time.Second},
		{"delayed", 1, faults.Replication{Node: "n1", Mode: faults.ReplicationDelay, Delay: faults.Span{Abs: 500 * time.Millisecond}},
			"SET lock A-value-1", "WAIT 1 1000", ":1\r\n", 500 * time.Millisecond},
		// Another client's earlier write counts too, but only after a request on this connection.
		// Measured with Redis 7.0.15.
		{"after a read", 2, stop, "GET lock", "WAIT 2 1000", ":0\r\n", time.Second},
		{"after a write that changed nothing", 2, stop, "SETNX lock A-value-1", "WAIT 2 1000", ":0\r\n", time.Second},
		{"after nothing", 2, stop, "", "WAIT 2 1000", ":2\r\n", 0},
		{"after a WAIT", 2, stop, "WAIT 0 0", "WAIT 2 1000", ":0\r\n", time.Second},
		{"no number", 1, nil, "GET lock", "WAIT x 0", "-ERR value is not an integer or out of range\r\n", 0},
		{"no timeout", 1, nil, "GET lock", "WAIT 1 x", "-ERR timeout is not an integer or out of range\r\n", 0},
		{"negative timeout", 1, nil, "GET lock", "WAIT 1 -1", "-ERR timeout is negative\r\n", 0},
		{"one word too few", 1, nil, "GET lock", "WAIT 1", "-ERR wrong number of arguments for 'wait' command\r\n", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, sim.Config{Replicas: c.replicas, Seed: 1}, func(s *stage) {
				if c.order != nil {
					s.apply(c.order)
				}
				a, b := s.dial("A", "n1"), s.dial("B", "n1")
				b.send("SET lock B-value-1")
				s.run(500 * time.Millisecond)
				sent := s.Now()
				if c.write != "" {
					a.send(c.write)
					s.do(func() (any, error) { return a.Read(make([]byte, 100)) })
				}
				a.send(c.wait)
				got := a.receive(len(c.want)).want(c.want)
				if took := (got.ended - sent).Round(10 * time.Millisecond); took != c.took {
					t.Errorf("it took %v; want %v", took, c.took)
				}
			})
		})
	}
}

// TestWaitWhileReplicationSuffers checks that WAIT counts the replicas that are connected and have
// acknowledged. Each way takes 10 ms, and a handshake 50 ms until the reply to PSYNC is sent.
func TestWaitWhileReplicationSuffers(t *testing.T) {
	seconds := func(n time.Duration) faults.Span { return faults.Span{Abs: n * time.Second} }
	slow := faults.Replication{Node: "n1", Mode: faults.ReplicationBandwidth, Rate: rate("19B/s")} // 2 s for a write
	late := faults.Replication{Node: "n1", Mode: faults.ReplicationDelay, Delay: seconds(2)}
	timeout := faults.Replication{Node: "n1", Mode: faults.ReplicationTimeout, After: seconds(5)}
	reset := faults.Replication{Node: "n1", Mode: faults.ReplicationReset}
	for _, c := range []struct {
		name  string
		order []faults.Fault
		pause time.Duration
		write string
		want  string
		took  time.Duration
	}{
		{"nothing", nil, 0, "SET lock A-value-2", ":2", 40 * time.Millisecond},
		{"bandwidth", []faults.Fault{slow}, 0, "SET lock A-value-2", ":2", 2040 * time.Millisecond},
		{"bandwidth and delay", []faults.Fault{slow, late}, 0, "SET lock A-value-2", ":2", 4040 * time.Millisecond},
		{"reset, of what was acknowledged", []faults.Fault{reset}, 0, "GET lock", ":2", 80 * time.Millisecond},
		{"reset, of what was not", []faults.Fault{reset}, 0, "SET lock A-value-2", ":2", 80 * time.Millisecond},
		{"reset, some time ago", []faults.Fault{reset}, time.Second, "GET lock", ":2", 20 * time.Millisecond},
		{"timeout, of what was acknowledged, while the connection is there", []faults.Fault{timeout}, 4 * time.Second, "GET lock", ":2", 20 * time.Millisecond},
		{"timeout, of what was acknowledged, when it is closed", []faults.Fault{timeout}, 5 * time.Second, "GET lock", ":0", 10*time.Second + 20*time.Millisecond},
		{"timeout, of what was not", []faults.Fault{timeout}, 0, "SET lock A-value-2", ":0", 10*time.Second + 20*time.Millisecond},
		{"another timeout", []faults.Fault{timeout, faults.Replication{Node: "n1", Mode: faults.ReplicationTimeout, After: seconds(50)}}, 40 * time.Second, "GET lock", ":2", 20 * time.Millisecond},
		{"a timeout that was over before it closed anything", []faults.Fault{timeout, start}, 6 * time.Second, "GET lock", ":2", 20 * time.Millisecond},
		{"a timeout that is over", []faults.Fault{timeout, start}, 0, "SET lock A-value-2", ":2", 80 * time.Millisecond},
		{"a reset while the stream is stopped", []faults.Fault{stop, reset}, 0, "GET lock", ":0", 10*time.Second + 20*time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, sim.Config{Replicas: 2, Seed: 1, Base: 10 * time.Millisecond}, func(s *stage) {
				a := s.dial("A", "n1")
				a.send("SET lock A-value-1")
				a.receive(len("+OK\r\n")).wait()
				s.run(time.Second)
				s.apply(c.order...)
				s.run(c.pause)
				s.forget()
				sent := s.Now()
				a.send(c.write, "WAIT 2 10000")
				s.run(time.Minute)
				last := s.events[len(s.events)-1]
				for _, e := range s.events {
					if e.Kind == checker.Reply {
						last = e
					}
				}
				if took := (last.Time - sent).Round(time.Millisecond); ":"+strings.TrimPrefix(last.Reply, "(integer) ") != c.want || took != c.took {
					t.Errorf("%s after %v; want %s after %v", last.Reply, took, c.want, c.took)
				}
			})
		})
	}
}

// TestTimeoutLosesAcknowledgements checks that a timeout also loses acknowledgements on their way.
func TestTimeoutLosesAcknowledgements(t *testing.T) {
	play(t, sim.Config{Replicas: 1, Seed: 1, Base: 10 * time.Millisecond}, func(s *stage) {
		a := s.dial("A", "n1")
		a.send("SET lock A-value-1", "WAIT 1 1000")
		s.run(25 * time.Millisecond) // the replica has the write and has sent its acknowledgement
		s.want("n1/0 A1 by command A\nn1/1 A1 by replication", checker.State)
		s.apply(faults.Replication{Node: "n1", Mode: faults.ReplicationTimeout, After: faults.Span{Abs: time.Hour}})
		a.receive(len("+OK\r\n:0\r\n")).want("+OK\r\n:0\r\n")
	})
}

func TestWaitForEver(t *testing.T) {
	play(t, sim.Config{Replicas: 1, Seed: 1}, func(s *stage) {
		s.apply(faults.Replication{Node: "n1", Mode: faults.ReplicationStop})
		a := s.dial("A", "n1")
		a.send("SET lock A-value-1", "WAIT 1 0", "GET lock")
		answers := a.receive(len("+OK\r\n:1\r\n$9\r\nA-value-1\r\n"))
		s.run(time.Hour)
		s.want("A > n1/0 SET lock A1\nA > n1/0 WAIT 1 0", checker.Request) // GET waits behind
		s.apply(faults.Replication{Node: "n1", Mode: faults.ReplicationStart})
		answers.want("+OK\r\n:1\r\n$9\r\nA-value-1\r\n")
	})
}

func TestWaitOnAPausedNode(t *testing.T) {
	play(t, sim.Config{Replicas: 1, Seed: 1}, func(s *stage) {
		s.apply(faults.Replication{Node: "n1", Mode: faults.ReplicationStop})
		a := s.dial("A", "n1")
		a.send("SET lock A-value-1", "WAIT 1 1000")
		answers := a.receive(len("+OK\r\n:0\r\n"))
		s.run(100 * time.Millisecond)
		s.apply(faults.PauseNode{Node: "n1"})
		s.run(time.Minute)
		if answers.done {
			t.Error("a stopped process answered")
		}
		s.apply(faults.ResumeNode{Node: "n1"})
		answers.want("+OK\r\n:0\r\n")
	})
}

func TestWaitingClientLosesItsNode(t *testing.T) {
	for _, f := range []faults.Fault{faults.CrashNode{Node: "n1"}, faults.Failover{Node: "n1"}} {
		play(t, sim.Config{Replicas: 1, Seed: 1}, func(s *stage) {
			s.apply(faults.Replication{Node: "n1", Mode: faults.ReplicationStop})
			a := s.dial("A", "n1")
			a.send("SET lock A-value-1", "WAIT 1 1000", "BLPOP queue 1")
			answers := a.receive(100)
			s.run(100 * time.Millisecond)
			s.apply(f)
			answers.want("read: connection reset by peer")
			s.run(time.Minute) // nothing of the blocked request remains
			s.want("A < n1 SET lock A1 = OK", checker.Reply)
		})
	}
}

func TestBlockingCommands(t *testing.T) {
	for _, c := range []struct {
		name, block, push, want string
		took                    time.Duration // to the nearest 10 ms
	}{
		{"there already", "BLPOP queue 1", "", "*2\r\n$5\r\nqueue\r\n$1\r\na\r\n", 0},
		{"BLPOP", "BLPOP other queue 10", "RPUSH queue x", "*2\r\n$5\r\nqueue\r\n$1\r\nx\r\n", time.Second},
		{"BRPOP", "BRPOP queue 10", "RPUSH queue x y", "*2\r\n$5\r\nqueue\r\n$1\r\ny\r\n", time.Second},
		{"BRPOPLPUSH", "BRPOPLPUSH queue other 10", "RPUSH queue x", "$1\r\nx\r\n", time.Second},
		{"BLMOVE", "BLMOVE queue other LEFT RIGHT 10", "RPUSH queue x", "$1\r\nx\r\n", time.Second},
		{"BZPOPMIN", "BZPOPMIN set 10", "ZADD set 1 x", "*3\r\n$3\r\nset\r\n$1\r\nx\r\n$1\r\n1\r\n", time.Second},
		{"XREAD", "XREAD BLOCK 10000 STREAMS stream 0", "XADD stream 1-1 f v", "*1\r\n*2\r\n$6\r\nstream\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n", time.Second},
		{"timeout", "BLPOP queue 0.5", "", "*-1\r\n", 500 * time.Millisecond},
		{"timeout of XREAD", "XREAD BLOCK 500 STREAMS stream 0", "", "*-1\r\n", 500 * time.Millisecond},
		{"no timeout", "BLPOP queue x", "", "-ERR timeout is not a float or out of range\r\n", 0},
		{"negative timeout", "BLPOP queue -1", "", "-ERR timeout is negative\r\n", 0},
		{"wrong type", "BLPOP string 1", "", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n", 0},
		{"not possible", "XREAD BLOCK 1000 STREAMS stream $", "", "-ERR XREAD with BLOCK and $ is not possible in this world\r\n", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, sim.Config{Seed: 1}, func(s *stage) {
				a, b := s.dial("A", "n1"), s.dial("B", "n1")
				if c.name == "there already" {
					b.send("RPUSH queue a")
				}
				b.send("SET string x")
				s.run(time.Second)
				sent := s.Now()
				a.send(c.block)
				answer := a.receive(len(c.want))
				s.run(time.Second)
				if c.push != "" {
					b.send(c.push)
				}
				answer.want(c.want)
				if took := (answer.ended - sent).Round(10 * time.Millisecond); took != c.took {
					t.Errorf("it took %v; want %v", took, c.took)
				}
			})
		})
	}
}

// TestBlockingCommandsAreServedInTurn checks that the longest waiter is served first, as in Redis.
func TestBlockingCommandsAreServedInTurn(t *testing.T) {
	play(t, sim.Config{Base: time.Millisecond}, func(s *stage) {
		b, c, a := s.dial("B", "n1"), s.dial("C", "n1"), s.dial("A", "n1")
		for _, w := range []*wire{b, c} {
			w.send("BLPOP queue 0")
			s.run(time.Second)
		}
		s.forget()
		a.send("RPUSH queue x")
		s.run(time.Second)
		a.send("RPUSH queue y")
		s.run(time.Second)
		s.want(`
			A < n1 RPUSH queue x = (integer) 1
			B < n1 BLPOP queue 0 = ["queue" "x"]
			A < n1 RPUSH queue y = (integer) 1
			C < n1 BLPOP queue 0 = ["queue" "y"]`, checker.Reply)
	})
}

func TestBlockedConnectionsCanBlockAgain(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		a := s.client("A", "n1")
		for range 3 {
			s.command(a, "BLPOP", "queue", "1").want("redis: nil")
		}
		s.command(a, "GET", "lock").want("redis: nil")
	})
}

// TestBlockedClientHangsUp checks that a client that hung up takes no element, and that its
// requests behind the blocked one are discarded.
func TestBlockedClientHangsUp(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		a, b := s.dial("A", "n1"), s.client("B", "n1")
		a.send("BLPOP queue 0", "SET lock A-value-1")
		s.run(time.Second)
		a.Close()
		s.run(time.Second)
		s.command(b, "RPUSH", "queue", "x").want("1")
		s.command(b, "LLEN", "queue").want("1")
		s.command(b, "EXISTS", "lock").want("0")
	})
}

// TestBlockingCommandInTransaction checks that no command blocks in a transaction.
func TestBlockingCommandInTransaction(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		a := s.dial("A", "n1")
		a.send("MULTI", "BLPOP queue 0", "EXEC", "WAIT 0 0")
		want := "+OK\r\n+QUEUED\r\n*1\r\n*-1\r\n:0\r\n"
		a.receive(len(want)).want(want)
	})
}

// TestBlockedCommandChangesTheLock checks a lock whose key is a list from which the owner took an
// element.
func TestBlockedCommandChangesTheLock(t *testing.T) {
	play(t, sim.Config{Replicas: 1, Seed: 1}, func(s *stage) {
		a, b := s.dial("A", "n1"), s.dial("B", "n1")
		a.send("BLPOP lock 0")
		s.run(time.Second)
		b.send("RPUSH lock x")
		s.run(time.Second)
		s.want(`
			n1/0 [B1] by command B
			n1/0 gone by command A
			n1/1 [B1] by replication
			n1/1 gone by replication`, checker.State)
	})
}
