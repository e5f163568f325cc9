package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/strategies"
)

// Locks of attacks on the verdicts, in the frame of the others. expected.txt says what came out first.

var (
	laterBeat = redis.NewScript(`
local owner = redis.call("GET", KEYS[1])
if owner == ARGV[1] then return 1 end
if owner and redis.call("EXISTS", KEYS[2] .. owner) == 1 then return 0 end
redis.call("SET", KEYS[1], ARGV[1])
redis.call("SET", KEYS[2] .. ARGV[1], 1, "PX", ARGV[2])
return 1`)
	laterHash = redis.NewScript(`
if redis.call("HEXISTS", KEYS[1], "o") == 1 and redis.call("HGET", KEYS[1], "o") ~= ARGV[1] then return 0 end
redis.call("HSET", KEYS[1], "o", ARGV[1])
redis.call("PEXPIRE", KEYS[1], ARGV[2])
return 1`)
	laterMark = redis.NewScript(`
if redis.call("HGET", KEYS[1], "o") ~= ARGV[1] then redis.call("SET", KEYS[1], "lost") return 0 end
return redis.call("DEL", KEYS[1])`)
)

// signalling is a lock that tells its holder through Lost.
type signalling struct {
	*lk
	lost chan struct{}
}

func (s *signalling) Lost() <-chan struct{} { return s.lost }

func init() {
	add("sound-log", "SET NX PX, then SET of another key that lasts longer", single(), func(l *lk) strategies.Lock {
		l.try = func(ctx context.Context, l *lk) error {
			if err := setnx(ctx, l); err != nil {
				return err
			}
			return l.c.Set(ctx, l.env.Key+":last", l.val, 60*l.env.TTL).Err()
		}
		l.rel = relLua
		return l
	})
	add("sound-ping", "a plain lease, whose Lost closes when PING fails", single(), func(l *lk) strategies.Lock {
		s := &signalling{lk: l}
		l.try = func(ctx context.Context, l *lk) error {
			if err := setnx(ctx, l); err != nil {
				return err
			}
			lost := make(chan struct{})
			s.lost = lost
			l.dog(func(ctx context.Context) bool {
				ctx, cancel := context.WithTimeout(ctx, l.env.TTL/5)
				defer cancel()
				if l.c.Ping(ctx).Err() == nil || errors.Is(ctx.Err(), context.Canceled) {
					return true
				}
				close(lost)
				return false
			})
			return nil
		}
		l.rel = func(ctx context.Context, l *lk) error { l.stopDog(); return relLua(ctx, l) }
		return s
	})
	add("sound-heartbeat", "the key lasts for ever, and others take it over when a second key, which is renewed, is gone", single(), func(l *lk) strategies.Lock {
		s := &signalling{lk: l}
		l.try = func(ctx context.Context, l *lk) error {
			began := time.Now()
			if err := got(laterBeat.Run(ctx, l.c, []string{l.env.Key, l.env.Key + ":alive:"}, l.val, ms(l.env.TTL)).Int64()); err != nil {
				return err
			}
			lost, val := make(chan struct{}), l.val
			s.lost = lost
			end := began.Add(l.env.TTL * 9 / 10)
			l.dog(func(ctx context.Context) bool {
				ctx, cancel := context.WithDeadline(ctx, end)
				defer cancel()
				sent := time.Now()
				if sent.Before(end) && l.c.SetXX(ctx, l.env.Key+":alive:"+val, 1, l.env.TTL).Val() {
					end = sent.Add(l.env.TTL * 9 / 10)
					return true
				}
				if errors.Is(ctx.Err(), context.Canceled) {
					return false
				}
				close(lost)
				return false
			})
			return nil
		}
		l.rel = func(ctx context.Context, l *lk) error { l.stopDog(); return relLua(ctx, l) }
		return s
	})

	add("faulty-marks", "the release of a lock that is not held writes a string where others expect a hash", single(), func(l *lk) strategies.Lock {
		l.try = func(ctx context.Context, l *lk) error {
			return got(laterHash.Run(ctx, l.c, []string{l.env.Key}, l.val, ms(l.env.TTL)).Int64())
		}
		l.rel = func(ctx context.Context, l *lk) error {
			return one(laterMark.Run(ctx, l.c, []string{l.env.Key}, l.val).Int64())
		}
		return l
	})
	add("faulty-breaker", "a circuit breaker that never closes", single(), func(l *lk) strategies.Lock {
		broken := false
		l.try = func(ctx context.Context, l *lk) error {
			if broken {
				return errors.New("the breaker is open")
			}
			err := setnx(ctx, l)
			broken = err != nil && !errors.Is(err, strategies.ErrNotAcquired)
			return err
		}
		l.rel = relLua
		return l
	})
	add("faulty-late-parts", "two keys in an order of the client's own, and no look at how long it took", single(), func(l *lk) strategies.Lock {
		keys := []string{l.env.Key + ":1", l.env.Key + ":2"}
		if l.env.Rand.Uint64()%2 == 0 {
			keys[0], keys[1] = keys[1], keys[0]
		}
		l.try = func(ctx context.Context, l *lk) error {
			for i, key := range keys {
				for {
					err := nx(l.c.SetNX(ctx, key, l.val, l.env.TTL).Result())
					if err == nil {
						break
					}
					if i == 0 || ctx.Err() != nil || !errors.Is(err, strategies.ErrNotAcquired) {
						if i > 0 {
							cad.Run(context.WithoutCancel(ctx), l.c, keys[:1], l.val)
						}
						return err
					}
					time.Sleep(pause)
				}
			}
			return nil
		}
		l.rel = func(ctx context.Context, l *lk) error {
			n, err := cad.Run(ctx, l.c, keys[:1], l.val).Int64()
			m, other := cad.Run(ctx, l.c, keys[1:], l.val).Int64()
			return one(min(n, m), errors.Join(err, other))
		}
		return l
	}, func(s *strategies.Strategy) {
		s.Keys = func(key string) []string { return []string{key + ":1", key + ":2"} }
	})
	add("faulty-any-node", "two of three nodes, and a renewal that one of them confirms counts", []string{"multi"}, func(l *lk) strategies.Lock {
		return &anyNode{lk: l}
	}, func(s *strategies.Strategy) { s.Nodes = 3 })
}

// anyNode is a lock on a majority of its nodes, whose watchdog is content with one of them.
type anyNode struct{ *lk }

func (a *anyNode) Acquire(ctx context.Context) error {
	for {
		err := a.TryAcquire(ctx)
		if err == nil || !errors.Is(err, strategies.ErrNotAcquired) || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause + time.Duration(a.env.Rand.Uint64()%uint64(pause))):
		}
	}
}

func (a *anyNode) TryAcquire(ctx context.Context) error {
	a.stopDog()
	a.newval()
	began, won := time.Now(), 0
	for _, node := range a.env.Nodes {
		ctx, cancel := context.WithTimeout(ctx, a.env.TTL/20)
		if node.SetNX(ctx, a.env.Key, a.val, a.env.TTL).Val() {
			won++
		}
		cancel()
	}
	if 2*won <= len(a.env.Nodes) || time.Since(began) > a.env.TTL/2 {
		a.each(ctx, cad)
		return strategies.ErrNotAcquired
	}
	a.dog(func(ctx context.Context) bool { return a.each(ctx, cax) > 0 })
	return nil
}

// each runs a script on all nodes, and returns on how many it did something.
func (a *anyNode) each(ctx context.Context, script *redis.Script) (did int) {
	for _, node := range a.env.Nodes {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.env.TTL/20)
		if n, err := script.Run(ctx, node, []string{a.env.Key}, a.val, ms(a.env.TTL)).Int64(); err == nil && n == 1 {
			did++
		}
		cancel()
	}
	return did
}

func (a *anyNode) Release(ctx context.Context) error {
	a.stopDog()
	if 2*a.each(ctx, cad) <= len(a.env.Nodes) {
		return strategies.ErrNotHeld
	}
	return nil
}
