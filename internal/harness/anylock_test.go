package harness_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// polling is a lock of two functions, which polls.
type polling struct {
	env     strategies.Env
	attempt func(context.Context, strategies.Env) (bool, error)
	release func(context.Context, strategies.Env) error
}

func (l polling) Acquire(ctx context.Context) error {
	for ctx.Err() == nil {
		won, err := l.attempt(ctx, l.env)
		if won || err != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return strategies.ErrNotAcquired
}

func (l polling) Release(ctx context.Context) error { return l.release(ctx, l.env) }

func del(ctx context.Context, env strategies.Env) error {
	return env.Nodes[0].Del(ctx, env.Key).Err()
}

// once sends a command and says whether its answer is this one.
func once(want any, words func(strategies.Env) []any) func(context.Context, strategies.Env) (bool, error) {
	return func(ctx context.Context, env strategies.Env) (bool, error) {
		got, err := env.Nodes[0].Do(ctx, words(env)...).Result()
		if errors.Is(err, redis.Nil) {
			return false, nil
		}
		return err == nil && got == want, err
	}
}

// seeded is a lock whose key holds a token while nobody has the lock.
func seeded(ctx context.Context, env strategies.Env) (bool, error) {
	first, err := env.Nodes[0].SetNX(ctx, env.Key+":seed", "seeded", 0).Result()
	if err != nil {
		return false, err
	}
	if first {
		if err := env.Nodes[0].RPush(ctx, env.Key, "the-token").Err(); err != nil {
			return false, err
		}
	}
	err = env.Nodes[0].BLPop(ctx, 10*time.Second, env.Key).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, err
}

// head is the first element of a list, or the first member of a sorted set.
func head(c strategies.Change) (string, bool) {
	if !c.After[0].Exists() {
		return "", true
	}
	client := c.Wrote(c.After[0].Words[0])
	return client, client != ""
}

// Whose a lock is is read off whatever keys it has; where they don't tell, no
// command is held against anybody, and that is said.
func TestOwnersOfAnyLock(t *testing.T) {
	queued := func(ctx context.Context, env strategies.Env) (bool, error) {
		node := env.Nodes[0]
		if err := node.LPos(ctx, env.Key, env.Owner, redis.LPosArgs{}).Err(); errors.Is(err, redis.Nil) {
			n, err := node.RPush(ctx, env.Key, env.Owner).Result()
			if err == nil && n == 1 {
				err = node.PExpire(ctx, env.Key, env.TTL).Err()
			}
			if err != nil {
				return false, err
			}
		}
		first, err := node.LIndex(ctx, env.Key, 0).Result()
		if errors.Is(err, redis.Nil) {
			return false, nil
		}
		return first == env.Owner, err
	}
	leave := func(ctx context.Context, env strategies.Env) error {
		return env.Nodes[0].LRem(ctx, env.Key, 1, env.Owner).Err()
	}
	counted := func(ctx context.Context, env strategies.Env) (bool, error) {
		n, err := env.Nodes[0].Incr(ctx, env.Key).Result()
		if err == nil && n == 1 {
			err = env.Nodes[0].PExpire(ctx, env.Key, env.TTL).Err()
		}
		return n == 1, err
	}
	elsewhere := func(env strategies.Env) []any {
		return []any{"SET", "locks/" + env.Key, env.Owner, "NX", "PX", env.TTL.Milliseconds()}
	}
	const nobody, foreign = "", "foreign-release"
	for _, c := range []struct {
		name     string
		attempt  func(context.Context, strategies.Env) (bool, error)
		release  func(context.Context, strategies.Env) error
		keys     func(string) []string
		owner    func(strategies.Change) (string, bool)
		late     string // what the servers show when A releases late, behind B's acquire
		unjudged string // a part of why not all can be judged, under contention too
	}{
		{name: "a value that all use", attempt: once("OK", func(env strategies.Env) []any {
			return []any{"SET", env.Key, "1", "NX", "PX", env.TTL.Milliseconds()}
		}), release: del, late: foreign},
		{name: "an empty value", attempt: once("OK", func(env strategies.Env) []any {
			return []any{"SET", env.Key, "", "NX", "PX", env.TTL.Milliseconds()}
		}), release: del, late: foreign},
		{name: "an owner in a text", attempt: once("OK", func(env strategies.Env) []any {
			return []any{"SET", env.Key, `{"owner":"` + env.Owner + `"}`, "NX", "PX", env.TTL.Milliseconds()}
		}), release: del, late: foreign},
		{name: "a text that the server puts together", attempt: once(int64(1), func(env strategies.Env) []any {
			return []any{"EVAL", `return redis.call("set", KEYS[1], "by " .. ARGV[1], "NX", "PX", ARGV[2]) and 1 or 0`, 1, env.Key, env.Owner, env.TTL.Milliseconds()}
		}), release: del, late: foreign},
		{name: "a field of a hash", attempt: once(int64(1), func(env strategies.Env) []any {
			return []any{"EVAL", `if redis.call("hsetnx", KEYS[1], "owner_token", ARGV[1]) == 0 then return 0 end return redis.call("pexpire", KEYS[1], ARGV[2])`,
				1, env.Key, env.Owner, env.TTL.Milliseconds()}
		}), release: del, late: foreign},
		{name: "a member of a set", attempt: once(int64(1), func(env strategies.Env) []any {
			return []any{"EVAL", `if redis.call("exists", KEYS[1]) == 1 then return 0 end redis.call("sadd", KEYS[1], ARGV[1]) return redis.call("pexpire", KEYS[1], ARGV[2])`,
				1, env.Key, env.Owner, env.TTL.Milliseconds()}
		}), release: del, late: foreign},
		{name: "a counter", attempt: counted, release: del, unjudged: "doesn't say whose the lock is"},
		{name: "a counter that is the taker's", attempt: counted, release: del, owner: strategies.OwnerIsCreator, late: foreign},
		{name: "a token in a list", attempt: seeded, release: func(ctx context.Context, env strategies.Env) error {
			return env.Nodes[0].RPush(ctx, env.Key, "the-token").Err()
		}, unjudged: "by taking the key away"},
		{name: "a queue", attempt: queued, release: leave, unjudged: "doesn't say whose the lock is"},
		{name: "a queue and its head", attempt: queued, release: leave, owner: head},
		{name: "another key", attempt: once("OK", elsewhere), release: func(ctx context.Context, env strategies.Env) error {
			return env.Nodes[0].Del(ctx, "locks/"+env.Key).Err()
		}, unjudged: "no server had ever had the key"},
		{name: "another key that is named", attempt: once("OK", elsewhere), release: func(ctx context.Context, env strategies.Env) error {
			return env.Nodes[0].Del(ctx, "locks/"+env.Key).Err()
		}, keys: func(key string) []string { return []string{"locks/" + key} }, late: foreign},
	} {
		t.Run(c.name, func(t *testing.T) {
			strategy := strategies.Strategy{
				Name: "any", Summary: c.name, Source: "this test", Tags: []string{strategies.TagSingle}, Keys: c.keys, Owner: c.owner,
				New: func(env strategies.Env) (strategies.Lock, error) {
					return polling{env, c.attempt, c.release}, env.Check("any", 1)
				},
			}
			for _, scenario := range []string{"contention", "late-release"} {
				script, err := scenarios.Lookup(scenario)
				if err != nil {
					t.Fatal(err)
				}
				got := harness.Play(t, harness.Cell{Strategy: strategy, Script: script, Seed: 1})
				if got.Status != harness.Held && got.Status != harness.Violated {
					t.Fatalf("%s: %s: %s", scenario, got.Status, got.Reason)
				}
				shown := nobody
				for _, w := range got.Verdict.Witnesses {
					if slices.Contains(checker.ServerSide(), w.Anomaly) {
						shown += string(w.Anomaly) + " "
					}
				}
				want := nobody
				if scenario == "late-release" {
					want = c.late
				}
				if strings.TrimSpace(shown) != want {
					t.Errorf("%s shows %q; want %q: %v", scenario, shown, want, got.Verdict.Witnesses)
				}
				why := got.Verdict.Unjudged
				if (why != nil) != (c.unjudged != "") || why != nil && !strings.Contains(why.Message, c.unjudged) {
					t.Errorf("%s: not judged: %v; want %q", scenario, why, c.unjudged)
				}
			}
		})
	}
}

// The library's faults meet what they are about, whatever commands a lock is made
// of.
func TestFaultsMeetAnyLock(t *testing.T) {
	expires := func(won bool, err error, ctx context.Context, env strategies.Env) (bool, error) {
		if won && err == nil {
			err = env.Nodes[0].PExpire(ctx, env.Key, env.TTL).Err()
		}
		return won, err
	}
	for _, c := range []struct {
		name    string
		attempt func(context.Context, strategies.Env) (bool, error)
		release func(context.Context, strategies.Env) error
		owner   func(strategies.Change) (string, bool)
	}{
		{"HSETNX", func(ctx context.Context, env strategies.Env) (bool, error) {
			won, err := env.Nodes[0].HSetNX(ctx, env.Key, "owner", env.Owner).Result()
			return expires(won, err, ctx, env)
		}, func(ctx context.Context, env strategies.Env) error {
			return env.Nodes[0].HDel(ctx, env.Key, "owner").Err()
		}, nil},
		{"SADD", func(ctx context.Context, env strategies.Env) (bool, error) {
			n, err := env.Nodes[0].SAdd(ctx, env.Key, "taken").Result()
			return expires(n == 1, err, ctx, env)
		}, func(ctx context.Context, env strategies.Env) error {
			return env.Nodes[0].SRem(ctx, env.Key, "taken").Err()
		}, nil},
		{"INCR", func(ctx context.Context, env strategies.Env) (bool, error) {
			n, err := env.Nodes[0].Incr(ctx, env.Key).Result()
			return expires(n == 1, err, ctx, env)
		}, func(ctx context.Context, env strategies.Env) error {
			return env.Nodes[0].Unlink(ctx, env.Key).Err()
		}, nil},
		{"BLPOP", seeded, func(ctx context.Context, env strategies.Env) error {
			return env.Nodes[0].RPush(ctx, env.Key, "the-token").Err()
		}, func(c strategies.Change) (string, bool) {
			if !c.After[0].Exists() {
				return c.Client, true
			}
			return "", true
		}},
		{"MULTI", func(ctx context.Context, env strategies.Env) (won bool, err error) {
			tx := env.Nodes[0].TxPipeline()
			taken := tx.SetNX(ctx, env.Key, env.Owner, env.TTL)
			_, err = tx.Exec(ctx)
			return taken.Val(), err
		}, func(ctx context.Context, env strategies.Env) error {
			return env.Nodes[0].GetDel(ctx, env.Key).Err()
		}, nil},
	} {
		strategy := strategies.Strategy{
			Name: "any", Summary: c.name, Source: "this test", Tags: []string{strategies.TagSingle}, Owner: c.owner,
			New: func(env strategies.Env) (strategies.Lock, error) {
				return polling{env, c.attempt, c.release}, env.Check("any", 1)
			},
		}
		for _, scenario := range []string{"delayed-acquire-reply", "ghost-retry", "release-reply-lost", "acquire-cancelled", "partition-after-release"} {
			script, err := scenarios.Lookup(scenario)
			if err != nil {
				t.Fatal(err)
			}
			got := harness.Play(t, harness.Cell{Strategy: strategy, Script: script, Seed: 1})
			if got.Status != harness.Held && got.Status != harness.Violated {
				t.Errorf("%s under %s: %s: %s", c.name, scenario, got.Status, got.Reason)
			}
			for _, m := range got.MetNothing {
				if !m.OrNone {
					t.Errorf("%s under %s: line %d, %s, met nothing", c.name, scenario, m.Line, m.Text)
				}
			}
		}
	}
}
