package harness_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// fault is what a lock does wrong, or right.
type fault struct {
	prolong *redis.Script // its Extend, and what its watchdog does
	watches bool          // it has one
	patient bool          // which waits for an answer; if not it goes by its own clock
	tells   bool          // and tells the holder when the lock is lost
	again   bool          // it lets its holder in again, and doesn't count
}

// faulty is SET NX PX with a value for each client, released by comparing and
// deleting.
type faulty struct {
	polling
	fault
	lost chan struct{} // nil if it tells nobody
	stop chan struct{}
	gone sync.WaitGroup
}

var (
	freeIfOurs = redis.NewScript(`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`)
	// Ways to prolong: right, blind, and two that bring the key back.
	prolongIfOurs   = redis.NewScript(`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) end return 0`)
	prolongAny      = redis.NewScript(`return redis.call("pexpire", KEYS[1], ARGV[2])`)
	prolongOrRetake = redis.NewScript(`if redis.call("set", KEYS[1], ARGV[1], "NX", "PX", ARGV[2]) then return 1 end ` +
		`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) end return 0`)
	prolongBySet = redis.NewScript(`redis.call("set", KEYS[1], ARGV[1], "PX", ARGV[2]) return 1`)
)

func newFaulty(env strategies.Env, f fault) *faulty {
	l := &faulty{fault: f, stop: make(chan struct{})}
	if f.tells {
		l.lost = make(chan struct{})
	}
	l.polling = polling{env, func(ctx context.Context, env strategies.Env) (bool, error) {
		err := env.Nodes[0].Do(ctx, "SET", env.Key, env.Owner, "NX", "PX", env.TTL.Milliseconds()).Err()
		if errors.Is(err, redis.Nil) && l.again {
			value, err := env.Nodes[0].Get(ctx, env.Key).Result()
			return value == env.Owner, err
		}
		return err == nil, notNil(err)
	}, func(ctx context.Context, env strategies.Env) error {
		n, err := freeIfOurs.Run(ctx, env.Nodes[0], []string{env.Key}, env.Owner).Int()
		if err == nil && n == 0 {
			return strategies.ErrNotHeld
		}
		return err
	}}
	return l
}

func notNil(err error) error {
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}

func (l *faulty) Acquire(ctx context.Context) error {
	err := l.polling.Acquire(ctx)
	if err == nil && l.watches {
		l.gone.Go(l.watch)
	}
	return err
}

func (l *faulty) Extend(ctx context.Context) error {
	n, err := l.prolong.Run(ctx, l.env.Nodes[0], []string{l.env.Key}, l.env.Owner, l.env.TTL.Milliseconds()).Int()
	if err == nil && n == 0 {
		return strategies.ErrNotHeld
	}
	return err
}

// watch prolongs the lease every third of it until it is not the client's.
func (l *faulty) watch() {
	end := time.Now().Add(l.env.TTL)
	for {
		next := l.env.TTL / 3
		if !l.patient {
			next = min(next, time.Until(end))
		}
		select {
		case <-l.stop:
			return
		case <-time.After(next):
		}
		sent := time.Now()
		ctx, cancel := context.WithDeadline(context.Background(), end)
		if l.patient {
			ctx, cancel = context.WithCancel(context.Background())
		}
		err := l.Extend(ctx)
		cancel()
		if err == nil {
			end = sent.Add(l.env.TTL)
		}
		over := !l.patient && !time.Now().Before(end)
		if over || errors.Is(err, strategies.ErrNotHeld) {
			if l.lost != nil {
				close(l.lost)
			}
			return
		}
	}
}

func (l *faulty) Lost() <-chan struct{} { return l.lost }

func (l *faulty) Close() error {
	close(l.stop)
	l.gone.Wait()
	return nil
}

// A scenario shows what it is about with a lock that does it, and only then.
func TestScenariosShowWhatTheyAreAbout(t *testing.T) {
	type found = []checker.Anomaly
	const (
		overlap, stale, extend = checker.Overlap, checker.StaleWrite, checker.ForeignExtend
		renewing, extending    = strategies.TagRenewing, strategies.TagExtending
	)
	for _, c := range []struct {
		scenario, name string
		tag            string
		fault          fault
		want           found
	}{
		{"extend-when-taken", "compares", extending, fault{prolong: prolongIfOurs}, found{overlap, stale}},
		{"extend-when-taken", "doesn't look", extending, fault{prolong: prolongAny}, found{overlap, stale, extend}},
		{"extend-when-taken", "takes it", extending, fault{prolong: prolongBySet}, found{overlap, stale, extend}},
		{"extend-when-taken", "takes what nobody has", extending, fault{prolong: prolongOrRetake}, found{overlap, stale}},
		{"extend-after-lease", "compares", extending, fault{prolong: prolongIfOurs}, found{overlap}},
		{"extend-after-lease", "takes what nobody has", extending, fault{prolong: prolongOrRetake}, found{overlap, extend}},
		{"renewal-late", "compares", renewing, fault{prolong: prolongIfOurs, watches: true, patient: true}, found{overlap}},
		{"renewal-late", "doesn't look", renewing, fault{prolong: prolongAny, watches: true, patient: true}, found{overlap, extend}},
		{"renewal-late", "takes it", renewing, fault{prolong: prolongBySet, watches: true, patient: true}, found{overlap, extend}},
		{"renewal-late", "tells by its own clock", renewing, fault{prolong: prolongIfOurs, watches: true, tells: true}, nil},
		{"renewal-refused", "tells nobody", renewing, fault{prolong: prolongIfOurs, watches: true, patient: true}, found{overlap, stale}},
		{"renewal-refused", "tells when it is answered", renewing, fault{prolong: prolongIfOurs, watches: true, patient: true, tells: true}, found{overlap}},
		{"renewal-refused", "tells by its own clock", renewing, fault{prolong: prolongIfOurs, watches: true, tells: true}, nil},
		{"acquire-twice-release-once", "doesn't count", "single", fault{again: true}, found{overlap, stale}},
	} {
		script, err := scenarios.Lookup(c.scenario)
		if err != nil {
			t.Fatal(err)
		}
		strategy := strategies.Strategy{
			Name: "faulty", Summary: c.name, Source: "this test", Tags: []string{strategies.TagSingle, c.tag},
			New: func(env strategies.Env) (strategies.Lock, error) {
				return newFaulty(env, c.fault), env.Check("faulty", 1)
			},
		}
		got := harness.Play(t, harness.Cell{Strategy: strategy, Script: script, Seed: 1})
		if got.Status == harness.Error || !slices.Equal(got.Verdict.Anomalies(), c.want) {
			t.Errorf("%s under %s: %s %v, want %v\n%s", c.name, c.scenario, got.Status, got.Verdict.Anomalies(), c.want, got.Reason)
		}
	}
}
