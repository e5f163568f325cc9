package harness_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/strategies"
)

// happened returns what became of clients and their operations, without times.
func happened(h checker.History) string {
	var list []string
	for _, e := range h.Events {
		switch e.Kind {
		case checker.Invoke:
			list = append(list, fmt.Sprintf("%s %s", e.Client, e.Op))
		case checker.Return:
			list = append(list, fmt.Sprintf("%s %s %s", e.Client, e.Op, e.Result))
		case checker.Cancel, checker.Pause, checker.Resume, checker.Crash, checker.Restart, checker.Write:
			list = append(list, e.Client+" "+string(e.Kind))
		}
	}
	return strings.Join(list, ", ")
}

// Whoever gives up is heard by the operation that its client is in, and by no other.
func TestCancel(t *testing.T) {
	strategy, _ := strategies.Builtin().Lookup("set-nx-px-lua")
	for _, c := range []struct{ name, script, want, nothing string }{
		{"one that waits", "B acquire\nbegin A acquire\nwait 0.5ttl\nA cancel\nawait A done\nA release",
			"B acquire, B acquire ok, A acquire, A cancel, A acquire fail, A release, A release fail", ""},
		{"nothing is left to wait for", "B acquire\nbegin A acquire\nA cancel\nwait 0.1ttl\nA cancel\nB release\nA acquire",
			"B acquire, B acquire ok, A acquire, A cancel, A acquire fail, B release, B release ok, A acquire, A acquire ok", "6 A cancel"},
		{"an answer that comes all the same", "hold A after SET\nbegin A acquire\nawait A held\nA cancel\npass A\nawait A done\nA write",
			"A acquire, A cancel, A acquire ok, A write", ""},
		{"a release", "A acquire\nhold A before any\nbegin A release\nawait A held\nA cancel\npass A\nawait A done",
			"A acquire, A acquire ok, A release, A cancel, A release ok", ""},
		{"one of several rounds", "B acquire\nbegin A rounds 2\nwait 0.2ttl\nA cancel\nB release\nawait A done",
			"B acquire, B acquire ok, A acquire, A cancel, A acquire fail, A acquire, B release, B release ok, A acquire ok, A write, A release, A release ok", ""},
		{"nobody, or nothing", "A cancel\nA acquire\nB cancel\nbegin A work 0.1ttl\nA B cancel\nawait A done",
			"A acquire, A acquire ok", "2 A cancel, 4 B cancel, 6 A B cancel"},
		{"one of two", "B acquire\nbegin A acquire\nA B cancel\nawait A done",
			"B acquire, B acquire ok, A acquire, A cancel, A acquire fail", ""},
		{"while it is stopped", "B acquire\nbegin A acquire\nwait 0.2ttl\nA pause\nA cancel\nA cancel\nwait 0.5ttl\nA resume\nawait A done",
			"B acquire, B acquire ok, A acquire, A pause, A resume, A cancel, A acquire fail", "7 A cancel"},
		{"and it dies of it", "B acquire\nbegin A acquire\nwait 0.2ttl\nA pause\nA cancel\nA crash\nA restart\nB release\nA acquire",
			"B acquire, B acquire ok, A acquire, A pause, A crash, A restart, B release, B release ok, A acquire, A acquire ok", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			outcome := play(t, strategy, "clients A B\n"+c.script+"\nexpect none\n")
			if outcome.Status != harness.Held {
				t.Errorf("%s %v: %s", outcome.Status, outcome.Verdict.Witnesses, outcome.Reason)
			}
			if got := happened(outcome.History); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			var nothing []string
			for _, m := range outcome.MetNothing {
				if !strings.HasPrefix(m.Text, "hold") {
					nothing = append(nothing, fmt.Sprint(m.Line, " ", m.Text))
				}
			}
			if got := strings.Join(nothing, ", "); got != c.nothing {
				t.Errorf("%q met nothing, want %q", got, c.nothing)
			}
		})
	}
}

// The lock sees that its caller gave up, at that moment; what it does about it by itself it
// does when its process runs.
func TestWhatALockSeesOfACancel(t *testing.T) {
	for script, want := range map[string]string{
		"begin A acquire\nwait 0.2ttl\nA cancel\nawait A done":                               "context canceled after 200ms; tidied up",
		"begin A acquire\nwait 0.1ttl\nA pause\nA cancel\nwait 1ttl\nA resume\nawait A done": "context canceled after 1.1s; tidied up",
		"A acquire within 0.3ttl": "context deadline exceeded after 300ms; tidied up",
	} {
		var saw string
		lock := strategies.Strategy{
			Name: "watches", Summary: "waits for the end of its context", Source: "this test", Tags: []string{strategies.TagSingle},
			New: func(env strategies.Env) (strategies.Lock, error) { return &watchingLock{env, &saw}, nil },
		}
		outcome := play(t, lock, "ttl 1s\nclients A\nlatency 0s\n"+script+"\nexpect none\n")
		if outcome.Status == harness.Error {
			t.Fatal(outcome.Reason)
		}
		if saw != want {
			t.Errorf("%q: it saw %q, want %q", script, saw, want)
		}
	}
}

// watchingLock never gets the lock, and asks for a moment for itself when it has to give up.
type watchingLock struct {
	env strategies.Env
	saw *string
}

func (l *watchingLock) Acquire(ctx context.Context) error {
	if strings.Contains(l.env.Key, "warm-up") {
		return nil
	}
	began := time.Now()
	<-ctx.Done()
	*l.saw = fmt.Sprintf("%v after %v", ctx.Err(), time.Since(began).Round(time.Millisecond))
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), 50*time.Millisecond)
	defer cancel()
	if err := l.env.Nodes[0].Del(own, l.env.Key).Err(); err != nil {
		*l.saw += "; " + err.Error()
	} else {
		*l.saw += "; tidied up"
	}
	return ctx.Err()
}

func (l *watchingLock) Release(context.Context) error { return nil }

// An operation of a restarted client is another one, and one that a lock's making keeps
// waiting has not begun.
func TestCancelWhileALockIsMade(t *testing.T) {
	lives := 0
	slow := strategies.Strategy{
		Name: "slow", Summary: "asks before it is a lock", Source: "this test", Tags: []string{strategies.TagSingle},
		New: func(env strategies.Env) (strategies.Lock, error) {
			if lives++; lives > 2 {
				env.Nodes[0].Ping(context.Background())
			}
			return lockOf{env}, nil
		},
	}
	outcome := play(t, slow, "clients A\nread-timeout 2ttl\nA crash\nhold A before PING\nA restart\nawait A held\nA cancel\npass A\nA acquire\nexpect none\n")
	if want := []harness.UnmatchedStep{{Line: 7, Text: "A cancel"}}; outcome.Status != harness.Held || !slices.Equal(outcome.MetNothing, want) {
		t.Errorf("%s %s: %v met nothing, want %v", outcome.Status, outcome.Reason, outcome.MetNothing, want)
	}
}

type lockOf struct{ env strategies.Env }

func (l lockOf) Acquire(ctx context.Context) error {
	return l.env.Nodes[0].SetNX(ctx, l.env.Key, l.env.Owner, l.env.TTL).Err()
}
func (l lockOf) Release(ctx context.Context) error {
	return l.env.Nodes[0].Del(ctx, l.env.Key).Err()
}
