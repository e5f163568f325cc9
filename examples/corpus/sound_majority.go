package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/strategies"
)

// A majority is a lock on several independent nodes, of which more than half have
// to grant it.
type majority struct {
	env   strategies.Env
	nodes []redis.UniversalClient
	// limit is how long a client waits for one node.
	limit time.Duration
	// atOnce asks all nodes at the same time, not one after the other.
	atOnce bool
	take   *redis.Script
}

// A count says what became of a request to all nodes.
type tally struct {
	yes     int
	unknown []int // the nodes that didn't answer
	cause   error // of the last of them
}

func (m *majority) each(ctx context.Context, do func(context.Context, redis.UniversalClient) (int64, error)) tally {
	type answer struct {
		n   int64
		err error
	}
	answers := make([]answer, len(m.nodes))
	ask := func(i int) {
		limited, cancel := context.WithTimeout(ctx, m.limit)
		defer cancel()
		answers[i].n, answers[i].err = do(limited, m.nodes[i])
	}
	if m.atOnce {
		done := make(chan bool)
		for i := range m.nodes {
			go func() {
				ask(i)
				done <- true
			}()
		}
		for range m.nodes {
			<-done
		}
	} else {
		for i := range m.nodes {
			ask(i)
		}
	}
	var c tally
	for i, a := range answers {
		switch {
		case a.err != nil:
			c.unknown, c.cause = append(c.unknown, i), a.err
		case a.n == 1:
			c.yes++
		}
	}
	return c
}

func (m *majority) enough(yes int) bool { return yes > len(m.nodes)/2 }

// judge says whether a majority did it, certainly did not, or may have.
func (m *majority) judge(c tally) error {
	switch {
	case m.enough(c.yes):
		return nil
	case m.enough(c.yes + len(c.unknown)):
		return fmt.Errorf("%d of %d nodes did it, %d didn't answer: %w", c.yes, len(m.nodes), len(c.unknown), c.cause)
	}
	return strategies.ErrNotHeld
}

func (m *majority) run(ctx context.Context, script *redis.Script, args ...any) tally {
	return m.each(ctx, func(ctx context.Context, node redis.UniversalClient) (int64, error) {
		return script.Run(ctx, node, []string{m.env.Key}, args...).Int64()
	})
}

func (m *majority) steps() steps {
	return steps{
		take: func(ctx context.Context, value string) error {
			start := time.Now()
			c := m.run(ctx, m.take, value, m.env.TTL.Milliseconds(), "yes")
			if m.enough(c.yes) && left(start, m.env.TTL) > 0 {
				return nil
			}
			// What is there is taken away again, though the time for the attempt is up.
			// A node that didn't answer may get the attempt yet, whatever it says to
			// this, and one that doesn't answer now may have kept it.
			after := m.run(context.WithoutCancel(ctx), giveOwn, value)
			if cause := errors.Join(c.cause, after.cause); cause != nil {
				return fmt.Errorf("no majority, and some nodes may have the attempt, or get it yet: %w", cause)
			}
			return strategies.ErrNotAcquired
		},
		give: func(ctx context.Context, value string) error { return m.judge(m.run(ctx, giveOwn, value)) },
		prolong: func(ctx context.Context, value string) error {
			return m.judge(m.run(ctx, prolongOwn, value, m.env.TTL.Milliseconds()))
		},
	}
}

// retry repeats attempts after pauses of different lengths, so that clients who
// split the nodes between them don't do so for ever. One of unknown outcome, too, is
// followed by another: it can't have left a majority that stays.
func retry(ctx context.Context, env strategies.Env, attempt func() error) error {
	for {
		err := attempt()
		if err == nil {
			return nil
		}
		delay := pause/2 + time.Duration(env.Rand.Int64N(int64(pause)))
		if deadline, ok := ctx.Deadline(); ctx.Err() != nil || ok && time.Until(deadline) <= delay+pause {
			return err
		}
		time.Sleep(delay)
	}
}

// majorityLock publishes until when it can be relied on.
type majorityLock struct{ *dated }

func (l *majorityLock) Acquire(ctx context.Context) error {
	var value string
	err := retry(ctx, l.env, func() error {
		value = newValue(l.env)
		return l.steps.take(ctx, value)
	})
	return l.note(value, err)
}

// majorityWatch renews itself, and tells its holder when no majority confirmed that
// in time.
type majorityWatch struct{ *notifyingLease }

func (l *majorityWatch) Acquire(ctx context.Context) error {
	var value string
	err := retry(ctx, l.env, func() error {
		value = newValue(l.env)
		return l.steps.take(ctx, value)
	})
	return l.begin(l.note(value, err))
}

func soundMajorities() []strategies.Strategy {
	setNX := redis.NewScript(`
if redis.call("set", KEYS[1], ARGV[1], "NX", "PX", ARGV[2]) then return 1 end
return redis.call("get", KEYS[1]) == ARGV[1] and 1 or 0`)
	redlockRuby := redis.NewScript(`
if (redis.call("exists", KEYS[1]) == 0 and ARGV[3] == "yes") or redis.call("get", KEYS[1]) == ARGV[1] then
	redis.call("set", KEYS[1], ARGV[1], "PX", ARGV[2])
	return 1
end
return 0`)
	of := func(env strategies.Env, nodes int, atOnce bool, take *redis.Script) steps {
		limit := max(5*time.Millisecond, min(50*time.Millisecond, env.TTL/20))
		m := majority{env: env, nodes: env.Nodes[:nodes], limit: limit, atOnce: atOnce, take: take}
		return m.steps()
	}
	list := []strategies.Strategy{}
	for _, c := range []struct {
		name, summary, source string
		nodes                 int
		atOnce                bool
		take                  *redis.Script
	}{
		{"sound-redlock-3", "Redlock on three nodes, asked one after the other", "Redis documentation (Distributed Locks with Redis)", 3, false, setNX},
		{"sound-redlock-5", "Redlock on five nodes, asked at once", "Redis documentation (Distributed Locks with Redis)", 5, true, setNX},
		{"sound-redlock-rb", "Redlock on five nodes, by the commands of redlock-rb", "redlock-rb, lib/redlock/scripts.rb and client.rb", 5, false, redlockRuby},
	} {
		s := describe(c.name, classMajority, c.summary, c.source, c.nodes, strategies.TagQuorum, strategies.TagExtending)
		s.New = func(env strategies.Env) (strategies.Lock, error) {
			if err := env.Check(c.name, c.nodes); err != nil {
				return nil, err
			}
			return &majorityLock{newDated(env, of(env, c.nodes, c.atOnce, c.take))}, nil
		}
		list = append(list, s)
	}
	const name, nodes = "sound-redlock-watchdog", 5
	s := describe(name, classMajorityWatchdog, "Redlock on five nodes, renewed each 5/16 of the lease; tells its holder by its own clock when no majority confirmed", "common practice",
		nodes, strategies.TagQuorum, strategies.TagRenewing)
	s.New = func(env strategies.Env) (strategies.Lock, error) {
		if err := env.Check(name, nodes); err != nil {
			return nil, err
		}
		return &majorityWatch{newKept(env, of(env, nodes, true, setNX), true, true)}, nil
	}
	return append(list, s)
}
