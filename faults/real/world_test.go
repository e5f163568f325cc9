package real_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/process"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/internal/proc"
)

func TestNothingIsRecordedBeforeBegin(t *testing.T) {
	t.Parallel()
	s := newStage(t, real.Config{}, "client")
	a, late := s.conn("A", "n1"), s.conn("A", "n1")
	s.place("B", "n1")
	a.ask("SET lock A-value-of-the-warm-up PX 30000", "+OK")
	a.ask("DEL lock", ":1")
	s.apply(faults.PauseClient{Client: "A"})
	s.run(time.Millisecond)
	match := faults.Match{Way: faults.Before, Commands: []string{"GET"}}
	s.apply(faults.ResumeClient{Client: "A"}, faults.Drop{Match: match, Times: 1})
	a.say("GET lock")
	s.await("it is lost", func() bool { return s.Client("A").Lost == 1 })
	s.apply(faults.Hold{Match: match})
	late.say("GET lock")
	s.await("it is held", func() bool { return s.Client("A").Held == 1 })
	s.apply(faults.PauseClient{Client: "B"})
	s.run(300 * time.Millisecond)
	s.want("")

	before := time.Now() // Begin takes its time within
	s.Begin()
	if now := s.Now(); now > time.Minute {
		t.Errorf("Now = %v", now)
	}
	if got := s.Client("A"); got != (faults.ClientState{Held: 1, UnderWay: 1}) {
		t.Errorf("A's state is %+v; want its counts to begin anew", got)
	}
	if got, most := s.Client("B").PausedFor, time.Since(before); got > most {
		t.Errorf("B was paused for %v since Begin, which was called %v ago", got, most)
	}
	s.apply(faults.Pass{})
	late.hear("$-1")
	late.ask("SET lock A-first-value", "+OK")
	s.want(`
		fault pass
		passed A request GET lock
		A > n1/0 GET lock
		A < n1 GET lock = (nil)
		A > n1/0 SET lock A1
		n1/0 A1 by command A
		A < n1 SET lock A1 = OK`)
	for i, e := range s.events {
		if e.Sent < 0 || e.Sent > e.Time || i > 0 && e.Time < s.events[i-1].Time {
			t.Errorf("event %d happened at %v and set out at %v", i, e.Time, e.Sent)
		}
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	s := newStage(t, real.Config{}, "client")
	s.Begin()
	if s.Run(20*time.Millisecond, func() bool { return false }) || s.Now() < 20*time.Millisecond {
		t.Errorf("Run ended at %v; want its limit", s.Now())
	}
	if !s.Run(0, func() bool { return true }) {
		t.Error("Run(0) doesn't ask")
	}
	done := make(chan bool, 1)
	go func() {
		time.Sleep(20 * time.Millisecond)
		done <- true
		s.Notify()
	}()
	if before := time.Now(); !s.Run(time.Hour, func() bool { return len(done) > 0 }) || time.Since(before) > time.Minute {
		t.Error("nobody woke it")
	}
}

// What is late by an hour can't be this machine's doing.
func TestLateClients(t *testing.T) {
	t.Parallel()
	const much = time.Hour
	s := newStage(t, real.Config{}, "client")
	s.place("A", "n1")
	s.place("B", "n1")
	now := proc.SinceBoot()
	s.ClientLate("A", now-much, now)
	if late, _ := s.Late(); late.By < much {
		t.Errorf("it is late by %v; want %v", late.By, much)
	}
	s.Begin() // what was before doesn't matter
	check := func(what string, least, most time.Duration) {
		t.Helper()
		if late, _ := s.Late(); late.By < least || late.By > most {
			t.Errorf("%s: late by %v; want %v to %v", what, late.By, least, most)
		}
	}
	for range 10000 {
		s.ClientLate("A", now-2*time.Millisecond, now)
	}
	check("trifles", 0, 10*time.Second)
	s.ClientLate("A", now-much, now)
	s.ClientLate("B", now-much, now)
	check("two at a time", much, much*3/2)
	s.ClientLate("A", now-much, now)
	check("one after the other", 2*much, 2*much+much/2)

	s.Begin()
	s.apply(faults.PauseClient{Client: "A"})
	paused := proc.SinceBoot()
	s.ClientLate("A", now, paused+much)
	s.apply(faults.ResumeClient{Client: "A"})
	s.ClientLate("A", paused, proc.SinceBoot()+much)
	check("paused", 0, much/2)
	s.ClientLate("B", paused, paused+much)
	check("another one", much, much*3/2)
}

// TestLateForAbsoluteTimes checks the windows of absolute times in scripts: delays further apart
// don't add up, and after a failover has lost the bytes in transit no delay counts.
func TestLateForAbsoluteTimes(t *testing.T) {
	t.Parallel()
	const within, lag = 100 * time.Millisecond, time.Minute
	s := newStage(t, real.Config{Replicas: 1, TTL: time.Hour}, "client")
	s.place("A", "n1")
	s.Begin()
	lateBy := func(by time.Duration) { now := proc.SinceBoot(); s.ClientLate("A", now-by, now) }
	check := func(what string, lease time.Duration, counts ...time.Duration) {
		t.Helper()
		is, all := s.Late()
		var got []time.Duration
		for _, l := range all {
			got = append(got, l.By)
		}
		if is.By != lease || !slices.Equal(got, counts) {
			t.Errorf("%s: late by %v in a lease and %v; want %v and %v", what, is.By, got, lease, counts)
		}
	}
	lateBy(20 * time.Second)
	s.apply(faults.Replication{Node: "n1", Mode: faults.ReplicationDelay, Delay: faults.Span{TTLs: 0.5}})
	check("before", 20*time.Second)
	s.apply(faults.Replication{Node: "n1", Mode: faults.ReplicationDelay, Delay: faults.Span{Abs: lag}})
	s.apply(faults.Delay{Match: faults.Match{Clients: []string{"A"}, Way: faults.Before}, By: faults.Span{Abs: within}})
	lateBy(20 * time.Second)
	check("once", 40*time.Second, 20*time.Second, 20*time.Second)
	s.run(2 * within)
	lateBy(20 * time.Second)
	check("further apart than the shorter", time.Minute, 40*time.Second, 20*time.Second)
	s.apply(faults.Failover{Node: "n1"})
	s.run(2 * within)
	now := proc.SinceBoot()
	s.ClientLate("A", now-within, now) // all of it behind the failover
	s.ClientLate("A", now-20*time.Second, now)
	check("over the failover", 80*time.Second+within, time.Minute, 20*time.Second+within)
	if _, counts := s.Late(); counts[0].Within != lag || counts[0].What != "the process of A to go on" {
		t.Errorf("%+v; want what was late within %v", counts[0], lag)
	}
}

// TestLateServers checks that a slow server counts as late, and a paused one does not.
func TestLateServers(t *testing.T) {
	t.Parallel()
	const pause = 700 * time.Millisecond
	s := newStage(t, real.Config{TTL: 50 * time.Millisecond}, "client") // what is further apart doesn't add up
	a, b := s.conn("A", "n1"), s.conn("B", "n1")
	s.Begin()
	s.apply(faults.PauseNode{Node: "n1"})
	a.say("SET lock A-value-1")
	s.run(pause)
	s.apply(faults.ResumeNode{Node: "n1"})
	a.hear("+OK")
	b.say("BLPOP queue 1")
	b.hear("*-1")
	if late, _ := s.Late(); late.By >= pause {
		t.Errorf("late by %v with nothing to do", late.By)
	}
	s.Begin()
	s.forget()
	a.ask("EVAL for_i=1,20000000_do_end_return_1 0", ":1")
	thought := s.events[len(s.events)-1].Time - s.events[0].Time
	if late, _ := s.Late(); late.By < thought/2 {
		t.Errorf("late by %v after %v of thinking", late.By, thought)
	}
}

// Whatever state things are in, Close leaves nothing.
func TestClose(t *testing.T) { // alone: it counts goroutines
	goroutines := runtime.NumGoroutine()
	var s *stage
	t.Run("a world", func(t *testing.T) {
		s = newStage(t, real.Config{Nodes: 3, Replicas: 1, Clock: true}, "client")
		a, b := s.through("A"), s.conn("B", "n1")
		c, d, e := s.conn("C", "n2"), s.through("D"), s.conn("E", "n1")
		s.place("F", "n1")
		s.Begin()
		a.ask("SET lock A-value-1 PX 30000", "+OK")
		s.apply(
			faults.Hold{Match: faults.Match{Clients: []string{"B"}, Way: faults.Before}},
			faults.Delay{Match: faults.Match{Clients: []string{"E"}, Way: faults.Before}, By: faults.Span{Abs: time.Hour}},
			faults.Replication{Node: "n2", Mode: faults.ReplicationStop},
			faults.Latency{Clients: []string{"C"}, Base: faults.Span{Abs: time.Hour}},
			faults.Partition{Clients: []string{"D"}},
		)
		b.say("PING")
		s.await("it is held", func() bool { return s.Client("B").Held == 1 })
		c.say("BLPOP queue 0")
		d.say("PING")
		e.say("PING")
		s.await("it is lost", func() bool { return s.Client("D").Lost == 1 })
		s.apply(
			faults.PauseClient{Client: "A"}, faults.CrashClient{Client: "F"},
			faults.PauseNode{Node: "n1"}, faults.CrashNode{Node: "n3"}, faults.Failover{Node: "n2"},
			faults.NodeClock{Node: "n2", By: faults.Span{Abs: time.Hour}},
		)
		if len(s.left()) < 7 { // five servers, and the processes of A to E
			t.Errorf("only these are there: %q", s.left())
		}
		for range 2 {
			if err := s.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
		if err := s.Apply(faults.PauseNode{Node: "n1"}); err == nil {
			t.Error("a node of a closed world was paused")
		}
		for _, name := range []string{"A", "G"} {
			if _, err := s.Spawn(name); !errors.Is(err, net.ErrClosed) {
				t.Errorf("starting %s in a closed world: %v", name, err)
			}
		}
	})
	s.nothingLeft(t, goroutines)
}

// A world that doesn't come to be leaves nothing either.
func TestNewFails(t *testing.T) { // alone: it counts goroutines
	goroutines := runtime.NumGoroutine()
	good := newStage(t, real.Config{}, "client") // finds out whether there is a server program
	server, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip(err)
	}
	if err := good.Close(); err != nil {
		t.Error(err)
	}
	s := &stage{t: t, dir: t.TempDir()}
	program := filepath.Join(t.TempDir(), "server") // its replica doesn't start
	script := fmt.Sprintf("#!/bin/sh\ncase $1 in *n2-1/*) echo out of luck; exit 3;; esac\nexec %s \"$@\"\n", server)
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	host, err := process.New(process.Options{Binary: program, Dir: s.dir})
	if err != nil {
		t.Fatal(err)
	}
	_, err = real.New(t.Context(), real.Config{Host: host, Nodes: 2, Replicas: 1, Lock: faults.SingleKeyLock("lock"), TTL: time.Second})
	if err == nil || !strings.Contains(err.Error(), "out of luck") || !strings.Contains(err.Error(), "n2/1") || strings.Contains(err.Error(), "\n") {
		t.Errorf("the error is %v", err)
	}
	s.nothingLeft(t, goroutines)
}

// left returns the command lines of the processes that this test's worlds have
// started: servers work below its directory, and clients are this process's
// children.
func (s *stage) left() (list []string) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		cwd, _ := os.Readlink(filepath.Join(dir, "cwd"))
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
		_, rest, _ := bytes.Cut(stat, []byte(") "))
		ours := strings.HasPrefix(string(rest[min(len(rest), 2):]), fmt.Sprint(os.Getpid(), " ")) && bytes.Contains(environ, []byte(role+"=client"))
		if ours || strings.HasPrefix(cwd, s.dir) {
			line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
			list = append(list, string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return list
}

// nothingLeft checks that a world's processes, files and goroutines are gone.
func (s *stage) nothingLeft(t *testing.T, goroutines int) {
	t.Helper()
	if list := s.left(); len(list) > 0 {
		t.Errorf("processes are left: %q", list)
	}
	if files, err := os.ReadDir(s.dir); err == nil && len(files) > 0 || err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in its directory: %v, %v", files, err)
	}
	for deadline := time.Now().Add(patience); runtime.NumGoroutine() > goroutines; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, before there were %d:\n%s", runtime.NumGoroutine(), goroutines, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// TestEachChangeHasItsAuthor checks that requests of two clients at the same time are executed one
// after the other, and that each change is credited to its client.
func TestEachChangeHasItsAuthor(t *testing.T) {
	t.Parallel()
	s := newStage(t, real.Config{}, "client")
	clients := map[string]*wire{"A": s.conn("A", "n1"), "B": s.conn("B", "n1"), "C": s.conn("C", "n1")}
	s.Begin()
	const rounds = 30
	for range rounds {
		for name, w := range clients {
			w.say("SET lock "+name+"-value-1", "DEL lock")
		}
	}
	s.await("all are answered", func() bool {
		return s.Client("A").Replies == 2*rounds && s.Client("B").Replies == 2*rounds && s.Client("C").Replies == 2*rounds
	})
	var last checker.Event
	for _, e := range s.events {
		switch e.Kind {
		case checker.Request:
			last = e
		case checker.State:
			if e.Client != last.Client || e.Value != "" && !strings.HasPrefix(e.Value, e.Client) {
				t.Fatalf("%+v after %+v", e, last)
			}
		}
	}
	if n := len(slices.DeleteFunc(s.events, func(e checker.Event) bool { return e.Kind != checker.State })); n < rounds {
		t.Errorf("%d changes", n)
	}
}
