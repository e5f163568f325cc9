package worlds_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/all"
)

// lookup knows the strategies of a client's process: the real ones, and some
// that misbehave on the real key.
func lookup(name string) (strategies.Strategy, bool) {
	switch name {
	case "panics":
		return misbehaving(name, func(context.Context) error { panic("out of luck") }), true
	case "exits":
		return misbehaving(name, func(context.Context) error {
			fmt.Fprintln(os.Stderr, "I am off")
			os.Exit(7)
			return nil
		}), true
	case "prints":
		return misbehaving(name, func(context.Context) error {
			fmt.Println("{ not for the stage }")
			return nil
		}), true
	case "hangs":
		return misbehaving(name, hang), true
	case "deaf":
		s, ok := all.Registry().Lookup("set-nx-px-lua")
		s.Name = name
		return s, ok
	case "unmade":
		return strategies.Strategy{Name: name, New: func(strategies.Env) (strategies.Lock, error) {
			return nil, fmt.Errorf("no luck today")
		}}, true
	case "talks":
		return strategies.Strategy{Name: name, New: func(env strategies.Env) (strategies.Lock, error) {
			l := &talker{node: env.Nodes[0], key: env.Key, ended: make(chan struct{})}
			ctx := context.Background()
			if err := errors.Join(l.node.Ping(ctx).Err(), l.node.ScriptLoad(ctx, "return 1").Err()); err != nil {
				return nil, err
			}
			l.messages = l.node.Subscribe(ctx, "ch:"+env.Key)
			go func() {
				defer close(l.ended)
				for range l.messages.Channel() {
				}
			}()
			return l, nil
		}}, true
	}
	return all.Registry().Lookup(name)
}

// talker is a lock whose New talks to Redis, and listens to it from then on.
type talker struct {
	node     redis.UniversalClient
	key      string
	messages *redis.PubSub
	ended    chan struct{}
}

func (l *talker) Acquire(ctx context.Context) error {
	won, err := l.node.SetNX(ctx, l.key, "me", time.Minute).Result()
	if err == nil && !won {
		err = strategies.ErrNotAcquired
	}
	return err
}

func (l *talker) Release(ctx context.Context) error {
	return errors.Join(l.node.Del(ctx, l.key).Err(), l.node.Publish(ctx, "ch:"+l.key, "free").Err())
}

func (l *talker) Close() error {
	err := l.messages.Close()
	<-l.ended
	return err
}

// misbehaving returns a strategy whose locks behave on the warm-up's key and do
// what acquire says on the real one.
func misbehaving(name string, acquire func(context.Context) error) strategies.Strategy {
	return strategies.Strategy{Name: name, New: func(env strategies.Env) (strategies.Lock, error) {
		if strings.Contains(env.Key, "warm-up") {
			return lock(fine), nil
		}
		return lock(acquire), nil
	}}
}

func hang(context.Context) error { select {} }

// lock is a lock made of what its Acquire does.
type lock func(context.Context) error

func (l lock) Acquire(ctx context.Context) error { return l(ctx) }
func (lock) Release(context.Context) error       { return nil }

func fine(context.Context) error { return nil }

const simple = "clients A\nA acquire within 0.1ttl\nA release\nexpect none\n"

// attempts is how often a cell is played that the machine is too slow for, and stretch
// how many times as long the lease becomes: a still longer one is of no use, since what
// a machine is late with that has no time at all grows with it.
const (
	attempts = 10
	stretch  = 8
)

// playPatiently plays a cell, again if the machine was too slow, as lockfault does. If it
// always is, it says so, and the cell has shown nothing: that most cells do show
// something, where there is nothing else to do, is what make agree sees to.
func playPatiently(t *testing.T, venue *worlds.Env, base time.Duration, cell harness.Cell) (outcome harness.Outcome, shown bool) {
	t.Helper()
	cell.Place, cell.TTL = venue, base
	for left := attempts; ; left-- {
		begun := time.Now()
		outcome := harness.Play(nil, cell)
		if outcome.Late == 0 {
			return outcome, true
		}
		t.Logf("with a lease of %v, after %v: %s", cell.TTL, time.Since(begun).Round(time.Millisecond), outcome.Reason)
		if left == 1 {
			t.Logf("undecided: the machine was too slow %d times", attempts)
			return outcome, false
		}
		longer := min(worlds.RetryLease(base, cell.TTL, outcome.Late), stretch*base)
		cell.Script = lengthen(cell.Script, longer/cell.TTL)
		cell.TTL = longer
	}
}

// lengthen returns a script whose replicas are later by a factor, if it says in absolute
// time how late they are: with the lease alone it would not bear more.
func lengthen(script *scenarios.Script, by time.Duration) *scenarios.Script {
	longer := *script
	longer.Steps = slices.Clone(script.Steps)
	for i, step := range longer.Steps {
		inject, _ := step.Do.(scenarios.Inject)
		if f, ok := inject.Fault.(faults.Replication); ok {
			f.Delay.Abs *= by
			longer.Steps[i].Do = scenarios.Inject{Fault: f}
		}
	}
	return &longer
}

// The lease for scripts that wait for its end, and for those that don't: these take no
// longer with a long one, and the machine may be that much later.
const (
	short = worlds.TTL
	long  = 8 * worlds.TTL
)

// playReal plays a cell on redis-server processes, with that lease or a longer one.
func playReal(t *testing.T, strategy string, script *scenarios.Script, lease time.Duration) (outcome harness.Outcome, shown bool) {
	t.Helper()
	s, ok := lookup(strategy)
	if !ok {
		t.Fatalf("there is no strategy %s", strategy)
	}
	temp := t.TempDir()
	place := worlds.Place{World: worlds.Process, Temp: temp, Logs: filepath.Join(temp, "logs")}
	return playPatiently(t, venue(t, place), lease, harness.Cell{Strategy: s, Script: script, Seed: 1})
}

// needServer ends a test that needs a redis-server which isn't there.
func needServer(t *testing.T) {
	t.Helper()
	err := worlds.Place{World: worlds.Process}.Check(t.Context(), nil)
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatal(err)
	default:
		t.Skip(err)
	}
}

// The same facts as in virtual time happen on real servers: those that the
// project is about.
func TestMeasuredFacts(t *testing.T) {
	needServer(t)
	for _, c := range []struct {
		strategy, scenario string
		want               []checker.Anomaly
	}{
		{"getset-timestamp", "getset-race", []checker.Anomaly{checker.Unreleasable}},
		{"set-nx-px-lua", "failover-lost-write", []checker.Anomaly{checker.Overlap, checker.StaleWrite, checker.LostLock}},
		{"redisson", "gc-pause-holding", []checker.Anomaly{checker.Overlap, checker.StaleWrite}},
		{"fenced", "gc-pause-holding", []checker.Anomaly{checker.Overlap}},
		{"set-nx-px-lua", "server-clock-forward", []checker.Anomaly{checker.Overlap, checker.LostLock}},
		{"setnx-expire", "crash-mid-acquire", []checker.Anomaly{checker.StuckLock}},
		{"redlock", "quorum-restart-empty", []checker.Anomaly{checker.Overlap}},
	} {
		t.Run(c.strategy+" "+c.scenario, func(t *testing.T) {
			t.Parallel()
			script, err := scenarios.Lookup(c.scenario)
			if err != nil {
				t.Fatal(err)
			}
			outcome, shown := playReal(t, c.strategy, script, short)
			if !shown {
				return
			}
			if outcome.Status != harness.Violated {
				t.Fatalf("%s: %s", outcome.Status, outcome.Reason)
			}
			var got []checker.Anomaly
			for _, w := range outcome.Verdict.Witnesses {
				if !slices.Contains(got, w.Anomaly) {
					got = append(got, w.Anomaly)
				}
			}
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if outcome.History.Meta.World != worlds.Process {
				t.Errorf("it happened in %q", outcome.History.Meta.World)
			}
		})
	}
}

// What a strategy does wrong in a process of its own is its cell's error, and
// what the servers logged is kept.
func TestMisbehaviourOfAProcess(t *testing.T) {
	needServer(t)
	for strategy, want := range map[string][]string{
		"panics": {"A's acquire panicked: out of luck", "real_test.go"},
		"exits":  {"A's acquire process ended by itself: exit status 7", "I am off"},
		"hangs":  {"hangs ignores its context: A's acquire still runs", "worlds_test.hang"},
		"unmade": {"unmade can't be made: no luck today"},
		"prints": nil,
	} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			script, err := scenarios.Parse("test.txt", []byte(simple))
			if err != nil {
				t.Fatal(err)
			}
			outcome, shown := playReal(t, strategy, script, long)
			if !shown {
				return
			}
			if want == nil {
				if outcome.Status != harness.Held {
					t.Errorf("%s: %s", outcome.Status, outcome.Reason)
				}
				return
			}
			if outcome.Status != harness.Error {
				t.Fatalf("%s: %s", outcome.Status, outcome.Reason)
			}
			for _, part := range want {
				if !strings.Contains(outcome.Reason, part) {
					t.Errorf("the reason doesn't say %q:\n%s", part, outcome.Reason)
				}
			}
		})
	}
}

// A strategy's New may talk to Redis there too: before the script begins nobody
// records that, and in a restarted client it meets the faults of that moment.
func TestNewTalks(t *testing.T) {
	needServer(t)
	for steps, want := range map[string]struct {
		status harness.Status
		says   string
		sent   []string // by A
	}{
		"A acquire\nA release\n": {harness.Held, "", []string{"SET", "DEL", "PUBLISH"}},
		"A crash\nA restart\nA acquire\nA release\n": {
			harness.Held, "", []string{"PING", "SCRIPT", "SET", "DEL", "PUBLISH"},
		},
		"read-timeout 2ttl\nA crash\nhold A before PING\nA restart\nawait A held\nA clock 1s\nwait 0.1ttl\npass A\nA acquire\nA release\n": {
			harness.Held, "", []string{"PING", "SCRIPT", "SET", "DEL", "PUBLISH"},
		},
		"A crash\npartition A\nA restart\nA acquire\n": {
			harness.Error, "harness: client A, restarted in line 4: talks can't be made: ", nil,
		},
	} {
		t.Run(strings.ReplaceAll(steps, "\n", ", "), func(t *testing.T) {
			t.Parallel()
			script, err := scenarios.Parse("test.txt", []byte("clients A\n"+steps+"expect none\n"))
			if err != nil {
				t.Fatal(err)
			}
			outcome, shown := playReal(t, "talks", script, long)
			if !shown {
				return
			}
			if outcome.Status != want.status || !strings.Contains(outcome.Reason, want.says) {
				t.Fatalf("%s: %s", outcome.Status, outcome.Reason)
			}
			var sent []string
			for _, e := range outcome.History.Events {
				if word, _, _ := strings.Cut(e.Command, " "); e.Kind == checker.Request && word != "HELLO" && word != "AUTH" &&
					word != "SUBSCRIBE" { // a goroutine's, which comes when it comes
					sent = append(sent, word)
				}
			}
			if want.status == harness.Held && !slices.Equal(sent, want.sent) {
				t.Errorf("A sent %q, want %q", sent, want.sent)
			}
		})
	}
}

// A script that asks for what can't be done there is not applicable, or wrong.
func TestSentinelsWatchOneNode(t *testing.T) {
	script, err := scenarios.Lookup("failover-lost-write")
	if err != nil {
		t.Fatal(err)
	}
	redlock, _ := lookup("redlock")
	place := venue(t, worlds.Place{World: worlds.Process, Sentinel: true})
	outcome := harness.Play(nil, harness.Cell{Strategy: redlock, Script: script, Place: place})
	if outcome.Status != harness.NotApplicable || !strings.Contains(outcome.Reason, "sentinels watch one node") {
		t.Errorf("%s: %s", outcome.Status, outcome.Reason)
	}
}
