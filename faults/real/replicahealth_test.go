package real_test

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/process"
	"github.com/lockfault/lockfault/faults/process/processtest"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/faults/worldtest"
)

// keeper is a host whose servers a test can access.
type keeper struct {
	real.Host
	mu       sync.Mutex
	password string
	servers  map[string]real.ManagedServer
}

func (k *keeper) Start(ctx context.Context, spec real.ServerSpec) (real.Server, error) {
	s, err := k.Host.Start(ctx, spec)
	if err == nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.password, k.servers[spec.Name] = spec.Password, s.(real.ManagedServer)
	}
	return s, err
}

// TestLateReplicas checks that a replica that stops or doesn't follow without a fault of the script
// counts as late: no client waits for it, but a failover shows it. What the script does to a
// replica is not lateness.
func TestLateReplicas(t *testing.T) {
	t.Parallel()
	const while = 500 * time.Millisecond
	k := &keeper{Host: processtest.Host(t, process.Options{}), servers: map[string]real.ManagedServer{}}
	s := newStage(t, real.Config{Host: k, Lock: faults.SingleKeyLock(worldtest.Key), Replicas: 1, TTL: 10 * time.Second}, "client")
	replica := k.servers["n1-1"]
	late := func(what string, after func()) {
		t.Helper()
		s.Begin()
		after()
		late, _ := s.Late()
		by, who := late.By, late.What
		if servers := strings.Contains(who, "to answer") || strings.Contains(who, "to follow"); what == "" && by >= while*9/5 && servers { // else it is the machine that is late
			t.Errorf("late by %v, for %s, with what the script does", by, who)
		}
		if what != "" && (by < while*9/10 || !strings.Contains(who, what)) {
			t.Errorf("late by %v, for %s; want %v for %s", by, who, while, what)
		}
	}
	late("n1/1 to answer", func() {
		must(t, replica.Pause())
		s.run(while)
		must(t, replica.Resume())
		s.run(while / 5)
	})
	late("n1/1 to follow n1", func() {
		c := processtest.Connect(t, replica.Addr(), k.password, 0)
		must(t, c.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err())
		s.run(while * 2)
		s.apply(faults.Replication{Node: "n1", Mode: faults.ReplicationReset})
	})
	late("", func() {
		for _, f := range []faults.Fault{
			faults.PauseNode{Node: "n1/1"}, nil, faults.ResumeNode{Node: "n1/1"},
			faults.Replication{Node: "n1", Mode: faults.ReplicationStop}, faults.CrashNode{Node: "n1/1"}, faults.RestartNode{Node: "n1/1"}, nil,
			faults.Replication{Node: "n1", Mode: faults.ReplicationStart}, faults.CrashNode{Node: "n1"}, nil, faults.RestartNode{Node: "n1"},
		} {
			if f != nil {
				s.apply(f)
			} else {
				s.run(2 * while)
			}
		}
	})
}

// TestLateForOneWhoGaveUp checks that a server counts as late if it delays one request until the
// client gives up, even if it answers all others.
func TestLateForOneWhoGaveUp(t *testing.T) {
	t.Parallel()
	const while = 500 * time.Millisecond
	k := &keeper{Host: processtest.Host(t, process.Options{}), servers: map[string]real.ManagedServer{}}
	s := newStage(t, real.Config{Host: k, Lock: faults.SingleKeyLock(worldtest.Key), TTL: 10 * time.Second}, "client")
	a := s.conn("A", "n1")
	s.Begin()
	must(t, processtest.Connect(t, k.servers["n1-0"].Addr(), k.password, 0).Do(t.Context(), "CLIENT", "PAUSE", "60000", "WRITE").Err())
	a.say("SET lock A-value-1")
	s.run(while)
	must(t, a.to.(io.Closer).Close())
	s.await("it is noticed", func() bool { late, _ := s.Late(); return late.By >= while*9/10 })
	if late, _ := s.Late(); late.By < 2*while && late.What != "n1/0 to answer" { // else it is the machine that is late
		t.Errorf("late by %v, for %s; want %v for n1/0 to answer", late.By, late.What, while)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
