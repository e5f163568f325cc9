package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/sim"
)

var (
	stop  = faults.Replication{Node: "n1", Mode: faults.ReplicationStop}
	start = faults.Replication{Node: "n1", Mode: faults.ReplicationStart}
	lag   = faults.Replication{Node: "n1", Mode: faults.ReplicationDelay, Delay: faults.Span{Abs: 10 * time.Second}}
)

// fill writes one key of each type that is replicated.
func (s *stage) fill(c *redis.Client) {
	s.t.Helper()
	for _, command := range []string{
		"SET string x", "SET short x PX 5000", "HSET hash f v g w", "RPUSH list a b c", "SADD set a b", "ZADD zset 1 a 2.5 b",
	} {
		s.command(c, toAny(command)...).wait()
	}
}

func toAny(command string) (words []any) {
	for _, word := range strings.Fields(command) {
		words = append(words, word)
	}
	return words
}

// data returns what fill wrote.
func (s *stage) data(c *redis.Client) string {
	var all []string
	for _, command := range []string{
		"GET string", "GET short", "HGETALL hash", "LRANGE list 0 -1", "SCARD set", "ZRANGE zset 0 -1 WITHSCORES",
	} {
		all = append(all, s.command(c, toAny(command)...).wait().said())
	}
	return strings.Join(all, " ")
}

func TestReplicationCarriesAllTypes(t *testing.T) {
	play(t, sim.Config{Replicas: 1, Seed: 1}, func(s *stage) {
		a := s.client("A", "n1")
		s.fill(a)
		want := s.data(a)
		s.run(time.Second)
		s.apply(faults.Failover{Node: "n1"})
		if got := s.data(a); got != want || strings.Contains(got, "nil") {
			t.Errorf("the replica has\n%s\nthe primary had\n%s", got, want)
		}
	})
}

func TestFailover(t *testing.T) {
	for _, c := range []struct {
		name   string
		orders []faults.Fault
		wait   time.Duration
		value  string
		events string
	}{
		{"replicated", nil, time.Second, "A-value-1", `
			n1/0 A1 for 30s by command A
			n1/1 A1 for 30s by replication
			n1/1 A1 for 29s by failover`},
		{"at once", nil, 0, "redis: nil", `
			n1/0 A1 for 30s by command A
			n1/1 gone by failover`},
		{"stopped", []faults.Fault{stop}, time.Second, "redis: nil", `
			n1/0 A1 for 30s by command A
			n1/1 gone by failover`},
		{"delayed", []faults.Fault{lag}, time.Second, "redis: nil", `
			n1/0 A1 for 30s by command A
			n1/1 gone by failover`},
		{"delayed, but arrived", []faults.Fault{lag}, 11 * time.Second, "A-value-1", `
			n1/0 A1 for 30s by command A
			n1/1 A1 for 20s by replication
			n1/1 A1 for 19s by failover`}, // expiry is a date
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, sim.Config{Replicas: 1, Seed: 1, Base: time.Millisecond}, func(s *stage) {
				a, b := s.dial("A", "n1"), s.client("B", "n1")
				s.apply(c.orders...)
				a.send("SET lock A-value-1 PX 30000")
				s.run(time.Millisecond) // the request is executed
				s.run(c.wait)
				s.apply(faults.Failover{Node: "n1"})
				a.receive(100).wait() // its connection is reset
				s.command(b, "GET", "lock").want(c.value)
				s.want(c.events, checker.State)
			})
		})
	}
}

func TestReplicationCatchesUpInOrder(t *testing.T) {
	play(t, sim.Config{Replicas: 1, Seed: 1}, func(s *stage) {
		a := s.client("A", "n1")
		s.apply(stop)
		for _, command := range []string{"SET lock A-value-1 PX 20000", "DEL lock", "SET lock A-value-2 PX 20000", "PEXPIRE lock 40000"} {
			s.command(a, toAny(command)...).wait()
		}
		s.run(10 * time.Second)
		s.forget()
		s.apply(start)
		s.run(time.Second)
		s.want(`
			n1/1 A1 for 10s by replication
			n1/1 gone by replication
			n1/1 A2 for 10s by replication
			n1/1 A2 for 30s by replication`, checker.State)
	})
}

// arrivals returns the times at which the replica's key changed, one per line.
func (s *stage) arrivals() string {
	var all []string
	for _, e := range s.events {
		if e.Kind == checker.State && e.Server == "n1/1" {
			all = append(all, fmt.Sprint(e.Value, " ", e.Time.Round(time.Millisecond)))
		}
	}
	return strings.Join(all, ", ")
}

// TestReplicationFaults checks faults of the stream. A writes at 0 s and 1 s, each time 38 bytes of
// stream. The first fault exists from the beginning, and others follow 1.5 s later. Each way takes
// 10 ms.
func TestReplicationFaults(t *testing.T) {
	seconds := func(n time.Duration) faults.Span { return faults.Span{Abs: n * time.Second} }
	of := func(f faults.Replication) faults.Fault {
		f.Node = "n1"
		return f
	}
	delay := of(faults.Replication{Mode: faults.ReplicationDelay, Delay: seconds(10)})
	slow := of(faults.Replication{Mode: faults.ReplicationBandwidth, Rate: rate("19B/s")})
	timeout := of(faults.Replication{Mode: faults.ReplicationTimeout, After: seconds(5)})
	reset := of(faults.Replication{Mode: faults.ReplicationReset})
	type list = []any // faults, and how long to wait
	for _, c := range []struct {
		name  string
		first list
		then  list
		want  string
	}{
		{"none", nil, nil, "A1 20ms, A2 1.02s"},
		{"stop", list{stop}, list{start}, "A1 1.51s, A2 1.51s"},
		{"delay", list{delay}, nil, "A1 10.02s, A2 11.02s"},
		{"start ends a delay", list{delay}, list{start}, "A1 1.5s, A2 1.5s"},
		{"another delay", list{delay}, list{of(faults.Replication{Mode: faults.ReplicationDelay, Delay: seconds(5)})}, "A1 1.5s, A2 1.5s"},
		{"stop keeps nothing back that is on its way", list{delay}, list{stop}, "A1 10.02s, A2 11.02s"},
		{"bandwidth", list{slow}, nil, "A1 2.02s, A2 4.02s"},
		{"bandwidth and delay", list{slow, delay}, nil, "A1 12.02s, A2 14.02s"},
		{"start ends bandwidth", list{slow}, list{start}, "A1 1.5s, A2 1.5s"},
		{"start ends both", list{slow, delay}, list{start}, "A1 1.5s, A2 1.5s"},
		{"stop, with bandwidth", list{slow, stop}, list{time.Second, of(faults.Replication{Mode: faults.ReplicationBandwidth, Rate: rate("38B/s")}), start},
			"A1 2.51s, A2 2.51s"}, // start ends both
		// Three round trips; the third brings the missed data.
		{"reset", list{stop}, list{reset, start}, "A1 1.56s, A2 1.56s"},
		{"reset, of nothing", nil, list{reset}, "A1 20ms, A2 1.02s"},
		{"reset loses what is on its way", list{delay}, list{reset}, "A1 31.56s, A2 31.56s"},
		{"start hastens the handshake", list{delay}, list{reset, time.Second, start}, "A1 2.56s, A2 2.56s"},
		{"stop holds up the handshake", list{delay}, list{reset, stop, time.Second, start}, "A1 2.56s, A2 2.56s"},
		{"a second reset", list{delay}, list{reset, 10 * time.Second, reset}, "A1 41.56s, A2 41.56s"},
		// 7 bytes, 10 and 52 take 3.632 s, and then 38 and 38.
		{"reset, with bandwidth", list{slow}, list{reset}, "A1 7.192s, A2 9.192s"},
		{"reset of a paused node", list{stop}, list{faults.PauseNode{Node: "n1"}, reset, start, time.Second, faults.ResumeNode{Node: "n1"}}, "A1 2.56s, A2 2.56s"},
		{"a node that pauses in the handshake", list{stop}, list{reset, start, faults.PauseNode{Node: "n1"}, time.Second, faults.ResumeNode{Node: "n1"}}, "A1 2.56s, A2 2.56s"},
		{"a node that pauses briefly", list{stop}, list{reset, start, 20 * time.Millisecond, faults.PauseNode{Node: "n1"}, faults.ResumeNode{Node: "n1"}}, "A1 1.56s, A2 1.56s"},
		{"a node that crashes in the handshake", list{stop}, list{reset, start, faults.CrashNode{Node: "n1"}, time.Second, faults.RestartNode{Node: "n1"}}, "A2 2.56s"},
		{"timeout", list{timeout}, nil, ""},
		{"timeout loses what is on its way", list{delay}, list{timeout, time.Minute, start}, "A1 1m1.56s, A2 1m1.56s"},
		{"start before the timeout is over", list{timeout}, list{start}, "A1 1.56s, A2 1.56s"},
		{"stop ends a timeout", list{timeout}, list{stop}, ""},
		{"stop ends a timeout, and start that", list{timeout}, list{stop, start}, "A1 1.56s, A2 1.56s"},
		{"timeout ends a stop", list{stop}, list{timeout, time.Second, start}, "A1 2.56s, A2 2.56s"},
		{"reset ends no timeout", list{timeout}, list{reset}, ""},
		{"reset ends no stop", list{stop}, list{reset}, ""},
		{"failover in the handshake", list{stop}, list{reset, start, faults.Failover{Node: "n1"}}, " 1.5s"},
		{"failover in a timeout", list{timeout}, list{faults.Failover{Node: "n1"}}, " 1.5s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, sim.Config{Replicas: 1, Seed: 1, Base: 10 * time.Millisecond}, func(s *stage) {
				a := s.dial("A", "n1")
				do := func(steps list) {
					for _, step := range steps {
						switch step := step.(type) {
						case time.Duration:
							s.run(step)
						case faults.Fault:
							s.apply(step)
						}
					}
				}
				do(c.first)
				a.send("SET lock A-value-1")
				s.run(time.Second)
				a.send("SET lock A-value-2")
				s.run(500 * time.Millisecond)
				do(c.then)
				s.run(2 * time.Minute)
				if got := s.arrivals(); got != c.want {
					t.Errorf("got %s; want %s", got, c.want)
				}
			})
		})
	}
}

// TestWritesDuringTheHandshake checks that writes during the handshake arrive with the missed data.
func TestWritesDuringTheHandshake(t *testing.T) {
	play(t, sim.Config{Replicas: 1, Seed: 1, Base: 10 * time.Millisecond}, func(s *stage) {
		a := s.dial("A", "n1")
		s.apply(faults.Replication{Node: "n1", Mode: faults.ReplicationReset})
		for range 8 {
			a.send("INCR lock")
			s.run(10 * time.Millisecond)
		}
		s.run(time.Second)
		if got, want := s.arrivals(), "1 60ms, 2 60ms, 3 60ms, 4 60ms, 5 60ms, 6 70ms, 7 80ms, 8 90ms"; got != want {
			t.Errorf("got %s; want %s", got, want)
		}
	})
}

func TestReplicationJitter(t *testing.T) {
	play(t, sim.Config{Replicas: 1, Seed: 1, Base: 10 * time.Millisecond}, func(s *stage) {
		a := s.dial("A", "n1")
		s.apply(faults.Replication{Node: "n1", Mode: faults.ReplicationDelay, Delay: faults.Span{Abs: time.Second}, Jitter: faults.Span{TTLs: 1. / 60}})
		different := map[time.Duration]bool{}
		for range 100 {
			a.send("INCR lock")
			s.run(10 * time.Second)
			took := s.events[len(s.events)-1].Time - s.Now() + 10*time.Second - 20*time.Millisecond
			if different[took] = true; took < 500*time.Millisecond || took > 1500*time.Millisecond {
				t.Fatalf("an effect took %v", took)
			}
		}
		if len(different) < 90 {
			t.Errorf("%d different delays of 100", len(different))
		}
		s.forget()
		for range 100 {
			a.send("INCR lock")
			s.run(time.Millisecond)
		}
		s.run(10 * time.Second)
		var want []string
		for i := range 100 {
			want = append(want, fmt.Sprintf("n1/1 %d by replication", 101+i))
		}
		if got := strings.Join(slices.DeleteFunc(strings.Split(s.told(checker.State), "\n"), func(line string) bool {
			return strings.HasPrefix(line, "n1/0")
		}), "\n"); got != strings.Join(want, "\n") {
			t.Errorf("out of order:\n%s", got)
		}
	})
}

// TestSizeOfEffects checks the size of each effect, by its transfer time at 1 byte per second.
func TestSizeOfEffects(t *testing.T) {
	command := func(words ...string) int {
		text := fmt.Sprintf("*%d\r\n", len(words))
		for _, word := range words {
			text += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
		}
		return len(text)
	}
	const date = "946684830000"
	for _, c := range []struct {
		before, command string
		want            int
	}{
		{"", "SET lock A-value-1", command("SET", "lock", "A-value-1")},
		{"", "SET lock A-value-1 PX 30000000", command("SET", "lock", "A-value-1", "PXAT", date)},
		{"SET lock A-value-1", "PEXPIRE lock 30000000", command("PEXPIREAT", "lock", date)},
		{"SET lock A-value-1 PX 30000000", "PERSIST lock", command("PERSIST", "lock")},
		{"SET lock A-value-1", "DEL lock", command("DEL", "lock")},
		{"", "HSET lock field-of-a 1", command("HSET", "lock", "field-of-a", "1")},
		{"HSET lock field-of-a 1", "HINCRBY lock field-of-a 1", command("HSET", "lock", "field-of-a", "2")},
		{"", "EVAL redis.call('hset',KEYS[1],'f',1)redis.call('pexpire',KEYS[1],30000000) 1 lock", command("HSET", "lock", "f", "1") + command("PEXPIREAT", "lock", date)},
		{"", "RPUSH lock value-of-a", command("RPUSH", "lock", "value-of-a")},
	} {
		play(t, sim.Config{Replicas: 1, Seed: 1, Base: 10 * time.Millisecond}, func(s *stage) {
			a := s.dial("A", "n1")
			if c.before != "" {
				a.send(c.before)
				s.run(time.Second)
			}
			s.apply(faults.Replication{Node: "n1", Mode: faults.ReplicationBandwidth, Rate: rate("1B/s")})
			s.forget()
			sent := s.Now()
			a.send(c.command)
			s.run(time.Hour)
			last := s.events[len(s.events)-1]
			if took := last.Time - sent; last.Server != "n1/1" || took != 20*time.Millisecond+time.Duration(c.want)*time.Second {
				t.Errorf("%s: %s after %v; want %d s", c.command, line(last), took, c.want)
			}
		})
	}
}

// TestExpiryIsReplicated checks that a key whose expiry differs on the replica only because of the
// primary's clock is removed there when it expires on the primary: Redis replicates the expiry as
// DEL.
func TestExpiryIsReplicated(t *testing.T) {
	play(t, sim.Config{Replicas: 1, Seed: 1}, func(s *stage) {
		a := s.client("A", "n1")
		s.apply(faults.NodeClock{Node: "n1", By: faults.Span{Abs: time.Hour}})
		s.command(a, "SET", "lock", "A-value-1", "PX", 30000).want("OK")
		s.run(2 * ttl)
		s.want(`
			n1/0 A1 for 30s by command A
			n1/1 A1 for 3630s by replication
			n1/0 gone by expiry
			n1/1 gone by replication`, checker.State)
	})
}

func TestSuccessorIsTheOneThatGotFurthest(t *testing.T) {
	play(t, sim.Config{Replicas: 2, Seed: 1}, func(s *stage) {
		a := s.client("A", "n1")
		s.command(a, "SET", "lock", "A-value-1").want("OK")
		s.run(time.Second)
		// n1/1 is promoted and continues alone; n1/2 follows it.
		s.apply(faults.Failover{Node: "n1"})
		s.command(a, "SET", "lock", "A-value-2").want("OK")
		s.run(time.Second)
		s.forget()
		s.apply(faults.Failover{Node: "n1"})
		s.want("n1/2 A2 by failover", checker.State)
		if err := s.Apply(faults.Failover{Node: "n1"}); err == nil {
			t.Error("a third failover found somebody")
		}
	})
}

// TestReplicasFollowTheNewPrimary checks that followers of a new primary have exactly its data.
func TestReplicasFollowTheNewPrimary(t *testing.T) {
	play(t, sim.Config{Replicas: 2, Seed: 1}, func(s *stage) {
		a, b := s.client("A", "n1"), s.client("B", "n1")
		s.run(time.Second)
		s.apply(faults.Split{Node: "n1", Clients: []string{"B"}})
		s.command(a, "SET", "lock", "A-value-1").want("OK") // n1/0, and n1/2 which follows it
		s.command(b, "SET", "other", "x").want("OK")        // n1/1
		s.run(time.Second)
		s.forget()
		s.apply(faults.Join{Node: "n1"})
		s.run(time.Second)
		s.want(`
			n1/1 gone by failover
			n1/2 gone by replication
			n1/0 gone by replication`, checker.State)
		s.command(a, "GET", "other").want("x")
		s.apply(faults.Failover{Node: "n1"}, faults.Failover{Node: "n1"})
		s.command(a, "GET", "other").want("x")
		s.command(a, "EXISTS", "lock").want("0")
	})
}

func TestSplit(t *testing.T) {
	play(t, sim.Config{Replicas: 1, Seed: 1}, func(s *stage) {
		a, b, c := s.client("A", "n1"), s.client("B", "n1"), s.client("C", "n1")
		s.command(a, "SET", "lock", "A-value-1").want("OK")
		s.run(time.Second)
		s.apply(faults.Split{Node: "n1", Clients: []string{"B"}})
		// The same split may route more clients later.
		s.apply(faults.Split{Node: "n1", Clients: []string{"C"}})
		s.forget()
		s.command(a, "GET", "lock").want("A-value-1")
		s.command(b, "DEL", "lock").want("1")
		s.command(c, "SET", "lock", "C-value-1", "NX").want("OK")
		s.command(b, "WAIT", 1, 100).want("0") // the new primary has no replicas
		s.command(a, "SET", "lock", "A-value-2").want("OK")
		s.command(a, "WAIT", 1, 100).want("0") // the old primary has no replicas any more either
		s.want(`
			A > n1/0 GET lock
			B > n1/1 DEL lock
			n1/1 gone by command B
			C > n1/1 SET lock C1 NX
			n1/1 C1 by command C
			B > n1/1 WAIT 1 100
			A > n1/0 SET lock A2
			n1/0 A2 by command A
			A > n1/0 WAIT 1 100`, checker.Request, checker.State)
		s.forget()
		s.apply(faults.Join{Node: "n1"})
		s.run(time.Second)
		s.want(`
			n1/1 C1 by failover
			n1/0 C1 by replication`, checker.State)
		s.command(a, "GET", "lock").want("C-value-1")
		s.command(a, "SET", "lock", "A-value-3").want("OK")
		s.command(a, "WAIT", 1, 1000).want("1") // the old primary is a replica now
		s.apply(faults.Failover{Node: "n1"})
		s.command(b, "GET", "lock").want("A-value-3")
	})
}

// TestWaitAfterJoin checks that a write to the new primary alone counts once its replicas have it.
func TestWaitAfterJoin(t *testing.T) {
	play(t, sim.Config{Replicas: 1, Seed: 1}, func(s *stage) {
		s.apply(faults.Split{Node: "n1", Clients: []string{"B"}})
		b := s.dial("B", "n1")
		for range 10 {
			b.send("INCR n")
		}
		s.run(time.Second)
		s.apply(faults.Join{Node: "n1"})
		b.send("WAIT 1 1000")
		s.run(2 * time.Second)
		if got := s.told(checker.Reply); !strings.HasSuffix(got, "WAIT 1 1000 = (integer) 1") {
			t.Errorf("got\n%s", got)
		}
	})
}

// TestSplitCutsTheStream checks that data on its way to a replica does not arrive after the
// promotion, because the server no longer follows a leader.
func TestSplitCutsTheStream(t *testing.T) {
	play(t, sim.Config{Replicas: 1, Seed: 1}, func(s *stage) {
		a, b := s.client("A", "n1"), s.client("B", "n1")
		s.apply(lag)
		s.command(a, "SET", "lock", "A-value-1").want("OK")
		s.apply(faults.Split{Node: "n1", Clients: []string{"B"}})
		s.command(b, "SET", "lock", "B-value-1", "NX").want("OK")
		s.run(time.Minute)
		s.command(b, "GET", "lock").want("B-value-1")
	})
}

// TestOldStreamIsForgotten checks that data that the old primary held back is not sent when it
// leads again.
func TestOldStreamIsForgotten(t *testing.T) {
	play(t, sim.Config{Replicas: 1, Seed: 1}, func(s *stage) {
		a, b := s.client("A", "n1"), s.client("B", "n1")
		s.apply(stop)
		s.command(a, "SET", "lock", "A-value-1").want("OK")
		s.apply(faults.Split{Node: "n1", Clients: []string{"B"}})
		s.command(b, "SET", "lock", "B-value-1").want("OK")
		s.apply(faults.Join{Node: "n1"})
		s.run(time.Second)
		s.apply(faults.Split{Node: "n1", Clients: []string{"B"}}, faults.Join{Node: "n1"}) // n1/0 leads again
		s.forget()
		s.apply(start)
		s.run(time.Second)
		s.want("", checker.State)
		s.command(a, "GET", "lock").want("B-value-1")
	})
}

func TestEmptyRestartEmptiesReplicas(t *testing.T) {
	play(t, sim.Config{Replicas: 1, Seed: 1}, func(s *stage) {
		a := s.client("A", "n1")
		s.command(a, "SET", "lock", "A-value-1").want("OK")
		s.run(time.Second)
		s.forget()
		s.apply(faults.CrashNode{Node: "n1"}, faults.RestartNode{Node: "n1", Empty: true})
		s.run(time.Second)
		s.want(`
			n1/0 gone by restart
			n1/1 gone by replication`, checker.State)
	})
}

// TestOldPrimaryComesBackAsAReplica checks that a primary that a failover replaced comes back as a
// replica of its successor and can be promoted again.
func TestOldPrimaryComesBackAsAReplica(t *testing.T) {
	play(t, sim.Config{Replicas: 1, Seed: 1}, func(s *stage) {
		a := s.client("A", "n1")
		s.apply(stop)
		s.command(a, "SET", "lock", "lost-in-failover").wait()
		s.apply(faults.Failover{Node: "n1"})
		s.command(a, "SET", "lock", "of-the-new-primary").wait()
		s.apply(faults.RestartNode{Node: "n1"})
		s.run(time.Second)
		s.apply(faults.Failover{Node: "n1"})
		if got, want := s.command(a, "GET", "lock").wait().said(), "of-the-new-primary"; !strings.Contains(got, want) {
			t.Errorf("after the way back the lock is %s, want %s", got, want)
		}
	})
}
