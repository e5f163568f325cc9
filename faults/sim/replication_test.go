package sim_test

import (
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

// data reads back what fill wrote.
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
				s.run(time.Millisecond) // executed
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

func TestStartEndsADelay(t *testing.T) {
	play(t, sim.Config{Replicas: 1, Seed: 1}, func(s *stage) {
		a := s.client("A", "n1")
		s.apply(lag)
		s.command(a, "SET", "lock", "A-value-1").wait()
		s.apply(start)
		s.command(a, "SET", "lock", "A-value-2").wait()
		s.forget()
		s.run(9 * time.Second)
		s.want("", checker.State) // the second can't overtake the first
		s.run(2 * time.Second)
		s.want(`
			n1/1 A1 by replication
			n1/1 A2 by replication`, checker.State)
	})
}

// A key that is there on the replica only because the primary's clock differs
// goes when it goes on the primary: Redis replicates that as DEL.
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
		// n1/1 is promoted and goes on alone; n1/2 follows it.
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

// Whoever follows a new primary has its data and no other.
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
			n1/0 gone by replication
			n1/2 gone by replication`, checker.State)
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
		// The same split may take more clients along later.
		s.apply(faults.Split{Node: "n1", Clients: []string{"C"}})
		s.forget()
		s.command(a, "GET", "lock").want("A-value-1")
		s.command(b, "DEL", "lock").want("1")
		s.command(c, "SET", "lock", "C-value-1", "NX").want("OK")
		s.command(b, "WAIT", 1, 100).want("0") // the new primary has no replicas
		s.command(a, "SET", "lock", "A-value-2").want("OK")
		s.command(a, "WAIT", 1, 100).want("0") // nor has the old one any more
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

// What was written to the new primary alone counts when its replicas have it.
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

// What is on its way when a replica is promoted does not arrive: it follows
// nobody any more.
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

// What the old primary had kept back to send later must not come up again when
// it leads once more.
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

// Who lost its place in a failover comes back as a replica of its successor, and
// can take the place again.
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
