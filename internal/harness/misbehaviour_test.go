package harness_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// lock is a lock made of two functions.
type lock struct {
	acquire func(context.Context) error
	release func(context.Context) error
}

func (l lock) Acquire(ctx context.Context) error { return l.acquire(ctx) }
func (l lock) Release(ctx context.Context) error { return l.release(ctx) }

func fine(context.Context) error { return nil }

// strategyOf makes a strategy whose locks behave on the warm-up's key and do
// what acquire says on the real one.
func strategyOf(acquire func(context.Context) error) strategies.Strategy {
	return strategies.Strategy{Name: "misbehaving", New: func(env strategies.Env) (strategies.Lock, error) {
		if strings.Contains(env.Key, "warm-up") {
			return lock{fine, fine}, nil
		}
		return lock{acquire, fine}, nil
	}}
}

func play(t *testing.T, s strategies.Strategy, script string) harness.Outcome {
	t.Helper()
	parsed, err := scenarios.Parse("test.txt", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	return harness.Play(t, harness.Cell{Strategy: s, Script: parsed, Seed: 1})
}

// The lines whose orders met nothing are named, in a run that was played to its
// end and in one that was not; those that met anything are not, nor are those
// that it did not come to.
func TestWhatMetNothing(t *testing.T) {
	strategy, _ := strategies.Builtin().Lookup("set-nx-px-lua")
	for _, c := range []struct {
		name, script string
		want         []harness.UnmatchedStep
	}{
		{"all met", "drop A before SET times 1\nhold B before any\nA try\nbegin B try\nA try", nil},
		{"each line that did not, as it stands", "hold A B before GETSET times 2\n\ndrop A  after HGET or none # a reason\nA acquire\nhold A B before GETSET times 2",
			[]harness.UnmatchedStep{{Line: 2, Text: "hold A B before GETSET times 2"}, {Line: 4, Text: "drop A after HGET or none", OrNone: true}, {Line: 6, Text: "hold A B before GETSET times 2"}}},
		{"one of two that were named", "hold A B before SET\nbegin A try\nawait A held", nil},
		{"cleared before it could", "delay A after any by 1s\nreset B before any\nclear A\nA try",
			[]harness.UnmatchedStep{{Line: 2, Text: "delay A after any by 1s"}, {Line: 3, Text: "reset B before any"}}},
		{"of those that were given", "drop messages\nn1 crash\nn1 restart\nquorum crash\nn1 evict\nhold A before any", []harness.UnmatchedStep{{Line: 2, Text: "drop messages"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := play(t, strategy, "clients A B\n"+c.script+"\nexpect none\n").MetNothing; !slices.Equal(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

const simple = "clients A\nA acquire\nA release\nexpect none\n"

// What a strategy does wrong is its own cell's error, with the reason and where
// to look. What never waits or ends the process is for the worker processes to
// see, and tested with them.
func TestMisbehaviourIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		acquire func(context.Context) error
		reason  []string
	}{
		"panics": {
			acquire: func(context.Context) error { panic("out of luck") },
			reason:  []string{"A's acquire panicked: out of luck", "misbehaviour_test.go"},
		},
		"never returns": {
			acquire: func(context.Context) error { select {} },
			reason:  []string{"ignores its context", "A's acquire", "misbehaviour_test.go"},
		},
		"ignores its context": {
			acquire: func(context.Context) error {
				for {
					time.Sleep(time.Second)
				}
			},
			reason: []string{"ignores its context", "A's acquire", "misbehaviour_test.go"},
		},
		"waits for its own mutex": {
			acquire: func(context.Context) error {
				var mu sync.Mutex
				mu.Lock()
				mu.Lock()
				return nil
			},
			reason: []string{"virtual time stands still", "waits for a sync.Mutex in", "misbehaviour_test.go"},
		},
		"waits for itself": {
			acquire: func(context.Context) error {
				c := make(chan int)
				c <- 1
				return nil
			},
			reason: []string{"ignores its context", "misbehaviour_test.go"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			script, err := scenarios.Parse("test.txt", []byte(simple))
			if err != nil {
				t.Fatal(err)
			}
			cell := harness.Cell{Strategy: strategyOf(c.acquire), Script: script, Seed: 1}
			run := harness.Begin(t, cell)
			inParts, _ := run.Continue(script)
			if inParts.Status == harness.Held { // the clients end with the run
				_, err := run.End()
				inParts.Status, inParts.Reason = harness.Error, fmt.Sprint(err)
			}
			for name, outcome := range map[string]harness.Outcome{"whole": harness.Play(t, cell), "in parts": inParts} {
				if outcome.Status != harness.Error {
					t.Fatalf("%s: status %s, want error", name, outcome.Status)
				}
				for _, want := range c.reason {
					if !strings.Contains(outcome.Reason, want) {
						t.Errorf("%s: the reason doesn't say %q:\n%s", name, want, outcome.Reason)
					}
				}
			}
		})
	}
}

// TestLeakIsNamedAndTheCellJudged checks that a goroutine that outlives its client leaves the cell its
// verdict.
func TestLeakIsNamedAndTheCellJudged(t *testing.T) {
	outcome := play(t, strategyOf(func(context.Context) error {
		go func() { select {} }()
		return nil
	}), simple)
	if outcome.Status != harness.Held || !strings.Contains(outcome.Leak, "misbehaviour_test.go:") {
		t.Errorf("%s, leak %q", outcome.Status, outcome.Leak)
	}
}

func TestStrategyThatCannotBeMade(t *testing.T) {
	s := strategies.Strategy{Name: "unmade", New: func(strategies.Env) (strategies.Lock, error) {
		return nil, errors.New("no luck today")
	}}
	outcome := play(t, s, simple)
	if outcome.Status != harness.Error || !strings.Contains(outcome.Reason, "unmade can't be made: no luck today") {
		t.Errorf("%s: %s", outcome.Status, outcome.Reason)
	}
}

func TestStrategyThatFailsItsWarmUp(t *testing.T) {
	fails := func(context.Context) error { return errors.New("too cold") }
	for did, l := range map[string]lock{"acquire": {fails, fine}, "release": {fine, fails}} {
		s := strategies.Strategy{Name: "cold", New: func(strategies.Env) (strategies.Lock, error) { return l, nil }}
		outcome := play(t, s, simple)
		want := "cold failed to " + did + " lock:warm-up:A in its warm-up, on healthy nodes, where no other client has touched that key: too cold"
		if outcome.Status != harness.Error || !strings.Contains(outcome.Reason, want) {
			t.Errorf("%s: %s; want %q", outcome.Status, outcome.Reason, want)
		}
	}
}

// A script may wait for what never comes; then it goes on.
func TestScriptsThatWaitForEver(t *testing.T) {
	for _, script := range []string{
		"clients A B\nhold A before GETSET\nbegin A acquire\nawait A held\nA release\nexpect none\n",
		"clients A B\nA acquire\nA pause\nbegin A release\nawait A done\nB acquire within 1s\nexpect none\n",
		"clients A\nhold A before any\nA acquire within 1s\nexpect none\n",
	} {
		outcome := play(t, strategyOf(fine), script)
		if outcome.Status == harness.Error {
			t.Errorf("%s\n%s", script, outcome.Reason)
		}
	}
}
