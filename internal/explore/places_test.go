package explore

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/racetest"
	"github.com/lockfault/lockfault/strategies"
)

// TestPlacesOfAServer checks that everything that a server records about the order of its clients
// belongs to the state: a lock that depends on one of two orders is found.
func TestPlacesOfAServer(t *testing.T) {
	racetest.Skip(t)
	for name, place := range map[string]place{
		"a key": {
			"redis.call('set', KEYS[1], ARGV[1])",
			"return redis.call('get', KEYS[1])",
		},
		"a key of another database": {
			"redis.call('select', 1) redis.call('set', KEYS[1], ARGV[1]) redis.call('select', 0)",
			"redis.call('select', 1) local who = redis.call('get', KEYS[1]) redis.call('select', 0) return who",
		},
		"who has a pending entry": {
			`redis.pcall('xgroup', 'create', KEYS[1], 'g', '0', 'mkstream') redis.pcall('xadd', KEYS[1], '1-1', 'a', 'b')
			redis.pcall('xreadgroup', 'group', 'g', 'nobody', 'streams', KEYS[1], '>') redis.call('xclaim', KEYS[1], 'g', ARGV[1], 0, '1-1', 'justid')`,
			"return redis.call('xpending', KEYS[1], 'g', '-', '+', 9)[1][2]",
		},
		"how far a group is": {
			`redis.pcall('xgroup', 'destroy', KEYS[1], 'g')
			redis.pcall('xgroup', 'create', KEYS[1], 'g', ARGV[1] == 'A' and '0' or '1-1', 'mkstream') redis.pcall('xadd', KEYS[1], '1-1', 'a', 'b')`,
			"return redis.call('xreadgroup', 'group', 'g', 'nobody', 'streams', KEYS[1], '>') and 'A' or 'B'",
		},
	} {
		var made atomic.Int64 // locks made so far, A's and B's in turn
		lock := strategies.Strategy{
			Name: "places", Summary: "lets the second in who was first here and last there", Source: "this test", Tags: []string{strategies.TagSingle},
			New: func(env strategies.Env) (strategies.Lock, error) {
				return placesLock{bareLock{env}, place, string('A' + rune(made.Add(1)-1)%2)}, nil
			},
		}
		r := on(t, lock, Bound{Clients: 2, Rounds: 1})
		if _, ok := anomalies(r)[checker.Overlap]; !ok || r.Untabled != "" {
			t.Errorf("%s: found %v in %d states, untabled %q, %v", name, anomalies(r), r.States, r.Untabled, r.Failures)
		}
	}
}

// A place can be written and read by scripts.
type place struct{ write, read string }

type placesLock struct {
	bareLock
	place
	me string
}

// TryAcquire admits a client, and also the other one if it was first at one place and last at the
// other, when both clients are there.
func (l placesLock) TryAcquire(ctx context.Context) error {
	redis, me := l.env.Nodes[0], l.me
	for i := range 2 {
		if err := redis.Eval(ctx, l.write, []string{fmt.Sprint("place", i)}, me).Err(); err != nil && err.Error() != "redis: nil" {
			return err
		}
	}
	rank, err := redis.Incr(ctx, "bar").Result()
	if err != nil {
		return err
	}
	if both, err := redis.Get(ctx, "bar").Int(); err != nil || both != 2 {
		return strategies.ErrNotAcquired
	}
	if err := l.Acquire(ctx); err == nil || rank != 2 {
		return err
	}
	for i, want := range []bool{false, true} {
		who, err := redis.Eval(ctx, l.read, []string{fmt.Sprint("place", i)}).Text()
		if err != nil {
			return err
		}
		if (who == me) != want {
			return strategies.ErrNotAcquired
		}
	}
	return nil
}
