package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/strategies"
)

var hashAcq = redis.NewScript(`
if redis.call("EXISTS",KEYS[1])==0 or redis.call("HEXISTS",KEYS[1],ARGV[1])==1 then
  redis.call("HINCRBY",KEYS[1],ARGV[1],1) redis.call("PEXPIRE",KEYS[1],ARGV[2]) return 1 end
return 0`)
var hashRel = redis.NewScript(`
if redis.call("HEXISTS",KEYS[1],ARGV[1])==0 then return 0 end
if redis.call("HINCRBY",KEYS[1],ARGV[1],-1)<=0 then redis.call("DEL",KEYS[1]) end
return 1`)
var zAcq = redis.NewScript(`
local t=redis.call("TIME") local now=t[1]*1000+math.floor(t[2]/1000)
redis.call("ZREMRANGEBYSCORE",KEYS[1],"-inf",now)
if redis.call("ZCARD",KEYS[1])>0 then return 0 end
redis.call("ZADD",KEYS[1],now+ARGV[2],ARGV[1]) redis.call("PEXPIRE",KEYS[1],ARGV[2]) return 1`)
var fenceAcq = redis.NewScript(`
if redis.call("SET",KEYS[1],ARGV[1],"NX","PX",ARGV[2]) then return redis.call("INCR",KEYS[2]) end return 0`)
var relSig = redis.NewScript(`
if redis.call("GET",KEYS[1])~=ARGV[1] then return 0 end
redis.call("DEL",KEYS[1]) redis.call("DEL",KEYS[2]) redis.call("RPUSH",KEYS[2],1) redis.call("PEXPIRE",KEYS[2],ARGV[2]) return 1`)
var relPub = redis.NewScript(`
if redis.call("GET",KEYS[1])~=ARGV[1] then return 0 end
redis.call("DEL",KEYS[1]) redis.call("PUBLISH",KEYS[2],"free") return 1`)
var relKeep = redis.NewScript(`
if redis.call("GET",KEYS[1])~=ARGV[1] then return 0 end
local rest=tonumber(ARGV[2])-(tonumber(ARGV[3])-redis.call("PTTL",KEYS[1]))
if rest>0 then redis.call("PEXPIRE",KEYS[1],rest) else redis.call("DEL",KEYS[1]) end return 1`)

// sha sends EVALSHA with a hash learned by SCRIPT LOAD, and EVAL when told NOSCRIPT.
func (l *lk) evalsha(ctx context.Context, src string, keys []string, args ...any) (int64, error) {
	s := redis.NewScript(src)
	n, err := l.c.EvalSha(ctx, s.Hash(), keys, args...).Int64()
	if err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") {
		n, err = l.c.Eval(ctx, src, keys, args...).Int64()
	}
	return n, err
}

const secAcq = `if redis.call("SETNX",KEYS[1],ARGV[1])==1 then redis.call("EXPIRE",KEYS[1],ARGV[2]) return 1 end return 0`
const secRel = `if redis.call("GET",KEYS[1])==ARGV[1] then return redis.call("DEL",KEYS[1]) end return 0`

type fencedLock struct{ *lk }

func (f fencedLock) Token() int64 { return f.tok }

func init() {
	add("sound-setlua", "SET NX PX, Lua release", single(), func(l *lk) strategies.Lock {
		l.try, l.rel = setnx, relLua
		return l
	})
	add("sound-setget", "SET NX GET PX", single(), func(l *lk) strategies.Lock {
		l.try = func(ctx context.Context, l *lk) error {
			old, err := l.c.SetArgs(ctx, l.env.Key, l.val, redis.SetArgs{Mode: "NX", TTL: l.env.TTL, Get: true}).Result()
			if errors.Is(err, redis.Nil) {
				return nil // there was none
			}
			if err != nil {
				return err
			}
			if old == l.val {
				return nil // the command was repeated by the client library
			}
			return strategies.ErrNotAcquired
		}
		l.rel = relLua
		return l
	})
	add("sound-hash", "reentrant hash in a script", single("reentrant"), func(l *lk) strategies.Lock {
		id := func() string { return l.env.Owner + ":" + l.env.Thread }
		l.try = func(ctx context.Context, l *lk) error {
			return got(hashAcq.Run(ctx, l.c, []string{l.env.Key}, id(), ms(l.env.TTL)).Int64())
		}
		l.rel = func(ctx context.Context, l *lk) error {
			return one(hashRel.Run(ctx, l.c, []string{l.env.Key}, id()).Int64())
		}
		return l
	})
	add("sound-memcount", "SET NX PX, nested acquires counted in memory", single("reentrant"), func(l *lk) strategies.Lock {
		return &memLock{l}
	})
	add("sound-watchtx", "WATCH, MULTI SETEX; release by WATCH, MULTI DEL", single(), func(l *lk) strategies.Lock {
		l.try = func(ctx context.Context, l *lk) error {
			err := l.c.Watch(ctx, func(tx *redis.Tx) error {
				n, err := tx.Exists(ctx, l.env.Key).Result()
				if err != nil {
					return err
				}
				if n > 0 {
					return strategies.ErrNotAcquired
				}
				_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
					p.SetEx(ctx, l.env.Key, l.val, l.env.TTL)
					return nil
				})
				return err
			}, l.env.Key)
			if errors.Is(err, redis.TxFailedErr) {
				return strategies.ErrNotAcquired
			}
			return err
		}
		l.rel = func(ctx context.Context, l *lk) error {
			err := l.c.Watch(ctx, func(tx *redis.Tx) error {
				v, err := tx.Get(ctx, l.env.Key).Result()
				if errors.Is(err, redis.Nil) || err == nil && v != l.val {
					return strategies.ErrNotHeld
				}
				if err != nil {
					return err
				}
				_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error { p.Del(ctx, l.env.Key); return nil })
				return err
			}, l.env.Key)
			if errors.Is(err, redis.TxFailedErr) { // it changed, and nobody but its expiry could
				return strategies.ErrNotHeld
			}
			return err
		}
		return l
	})
	add("sound-zset", "token in a sorted set, score = end by the server's TIME", single(), func(l *lk) strategies.Lock {
		l.try = func(ctx context.Context, l *lk) error {
			return got(zAcq.Run(ctx, l.c, []string{l.env.Key}, l.val, ms(l.env.TTL)).Int64())
		}
		l.rel = func(ctx context.Context, l *lk) error { return one(l.c.ZRem(ctx, l.env.Key, l.val).Result()) }
		return l
	})
	add("sound-blpop", "SET NX PX, waits by BLPOP", single(), func(l *lk) strategies.Lock {
		sig := l.env.Key + ":signal"
		l.try = setnx
		l.wait = func(ctx context.Context, l *lk) {
			if l.c.BLPop(ctx, time.Second, sig).Err() != nil {
				select {
				case <-ctx.Done():
				case <-time.After(10 * time.Millisecond):
				}
			}
		}
		l.rel = func(ctx context.Context, l *lk) error {
			return one(relSig.Run(ctx, l.c, []string{l.env.Key, sig}, l.val, ms(l.env.TTL)).Int64())
		}
		return l
	})
	add("sound-pubsub", "SET NX PX, waits by SUBSCRIBE with a timer", single(), func(l *lk) strategies.Lock {
		ch := l.env.Key + ":free"
		l.try = setnx
		l.wait = func(ctx context.Context, l *lk) {
			ps := l.c.Subscribe(ctx, ch)
			defer ps.Close()
			if _, err := ps.ReceiveTimeout(ctx, time.Second); err == nil { // subscribed
				if n, err := l.c.Exists(ctx, l.env.Key).Result(); err == nil && n == 0 {
					return
				}
				ps.ReceiveTimeout(ctx, time.Second)
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		l.rel = func(ctx context.Context, l *lk) error {
			return one(relPub.Run(ctx, l.c, []string{l.env.Key, ch}, l.val).Int64())
		}
		return l
	})
	add("sound-watchdog", "watchdog, no Lost", single("renewing"), func(l *lk) strategies.Lock {
		l.try = func(ctx context.Context, l *lk) error {
			l.stopDog()
			err := setnx(ctx, l)
			if err == nil {
				v := l.val
				l.dog(func(ctx context.Context) bool {
					n, err := cax.Run(ctx, l.c, []string{l.env.Key}, v, ms(l.env.TTL)).Int64()
					return err != nil || n == 1
				})
			}
			return err
		}
		l.rel = func(ctx context.Context, l *lk) error { l.stopDog(); return relLua(ctx, l) }
		return l
	})
	add("sound-watchdog-lost", "watchdog, tells by its own clock", single("renewing", "watchdog-told"), func(l *lk) strategies.Lock {
		return &toldLock{lk: l}
	})
	add("sound-fenced", "SET NX PX and INCR in a script", single("fenced"), func(l *lk) strategies.Lock {
		l.try = func(ctx context.Context, l *lk) error {
			n, err := fenceAcq.Run(ctx, l.c, []string{l.env.Key, l.env.Key + ":fence"}, l.val, ms(l.env.TTL)).Int64()
			if n > 0 {
				l.tok = n
			}
			return got(n, err)
		}
		l.rel = relLua
		return fencedLock{l}
	})
	add("sound-seconds", "SETNX and EXPIRE in seconds in a script; EVALSHA with fallback", single(), func(l *lk) strategies.Lock {
		l.try = func(ctx context.Context, l *lk) error {
			return got(l.evalsha(ctx, secAcq, []string{l.env.Key}, l.val, int64((l.env.TTL+time.Second-1)/time.Second)))
		}
		l.rel = func(ctx context.Context, l *lk) error {
			return one(l.evalsha(ctx, secRel, []string{l.env.Key}, l.val))
		}
		return l
	})
	n := func(k int) func(*strategies.Strategy) { return func(s *strategies.Strategy) { s.Nodes = k } }
	add("sound-redlock3", "Redlock on 3, in parallel", []string{"multi", "quorum"}, func(l *lk) strategies.Lock {
		return &red{lk: l, quorum: 2, parallel: true}
	}, n(3))
	add("sound-redlock5", "Redlock on 5, one after the other", []string{"multi", "quorum"}, func(l *lk) strategies.Lock {
		return &red{lk: l, quorum: 3}
	}, n(5))
	add("faulty-majority", "Redlock on 5, n/2", []string{"multi", "quorum"}, func(l *lk) strategies.Lock {
		return &red{lk: l, quorum: 2, parallel: true}
	}, n(5))
	add("faulty-validity", "Redlock on 3, validity from the end of acquire", []string{"multi", "quorum"}, func(l *lk) strategies.Lock {
		return &red{lk: l, quorum: 2, parallel: true, late: true}
	}, n(3))
	add("faulty-norollback", "Redlock on 5, failed attempts are not undone", []string{"multi", "quorum"}, func(l *lk) strategies.Lock {
		return &red{lk: l, quorum: 3, parallel: true, norollback: true}
	}, n(5))
	add("sound-atleast", "release before a minimum time shortens the lease", single(), func(l *lk) strategies.Lock {
		l.try = setnx
		l.rel = func(ctx context.Context, l *lk) error {
			return one(relKeep.Run(ctx, l.c, []string{l.env.Key}, l.val, ms(l.env.TTL)/50, ms(l.env.TTL)).Int64())
		}
		return l
	})
	add("sound-behind", "release returns at once, and a goroutine sends its script", single(), func(l *lk) strategies.Lock {
		l.try = setnx
		l.rel = func(ctx context.Context, l *lk) error {
			val := l.val
			go func() {
				time.Sleep(pause)
				_ = cad.Run(context.WithoutCancel(ctx), l.c, []string{l.env.Key}, val).Err()
			}()
			return nil
		}
		return l
	})
	add("sound-tokenlist", "BLPOP of the only token", single("forever"), func(l *lk) strategies.Lock {
		l.try = func(ctx context.Context, l *lk) error {
			k := []string{l.env.Key + ":made", l.env.Key}
			if err := tokInit.Run(ctx, l.c, k).Err(); err != nil {
				return err
			}
			err := l.c.LPop(ctx, l.env.Key).Err()
			if errors.Is(err, redis.Nil) {
				return strategies.ErrNotAcquired
			}
			if err == nil {
				l.cnt = 1
			}
			return err
		}
		l.rel = func(ctx context.Context, l *lk) error {
			if l.cnt == 0 {
				return strategies.ErrNotHeld
			}
			l.cnt = 0
			return l.c.RPush(ctx, l.env.Key, "token").Err()
		}
		return l
	})
}

var tokInit = redis.NewScript(`if redis.call("SETNX",KEYS[1],1)==1 then redis.call("RPUSH",KEYS[2],"token") end return 1`)

type memLock struct{ *lk }

func (m *memLock) TryAcquire(ctx context.Context) error {
	if m.cnt > 0 {
		n, err := cax.Run(ctx, m.c, []string{m.env.Key}, m.val, ms(m.env.TTL)).Int64()
		if err != nil {
			return err
		}
		if n == 1 {
			m.cnt++
			return nil
		}
		m.cnt = 0 // lost
	}
	m.newval()
	err := setnx(ctx, m.lk)
	if err == nil {
		m.cnt = 1
	}
	return err
}
func (m *memLock) Acquire(ctx context.Context) error {
	return strategies.Poll(ctx, pause, m.TryAcquire)
}
func (m *memLock) Release(ctx context.Context) error {
	if m.cnt == 0 {
		return strategies.ErrNotHeld
	}
	m.cnt--
	if m.cnt > 0 {
		n, err := cax.Run(ctx, m.c, []string{m.env.Key}, m.val, ms(m.env.TTL)).Int64()
		return one(n, err)
	}
	return relLua(ctx, m.lk)
}

type toldLock struct {
	*lk
	lost chan struct{}
	wg   sync.WaitGroup
}

func (t *toldLock) Lost() <-chan struct{} { return t.lost }
func (t *toldLock) TryAcquire(ctx context.Context) error {
	t.stopDog()
	t.newval()
	t0 := time.Now()
	if err := setnx(ctx, t.lk); err != nil {
		return err
	}
	margin := t.env.TTL / 50
	left := t.env.TTL - margin - time.Since(t0)
	if left <= 0 {
		if err := cad.Run(ctx, t.c, []string{t.env.Key}, t.val).Err(); err != nil {
			return err
		}
		return strategies.ErrNotAcquired
	}
	lost := make(chan struct{})
	t.lost = lost
	v := t.val
	dctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.stop, t.done = cancel, done
	type res struct {
		start time.Time
		n     int64
		err   error
	}
	go func() {
		defer close(done)
		end := time.NewTimer(left)
		defer end.Stop()
		next := time.NewTicker(t.env.TTL / 3)
		defer next.Stop()
		answers := make(chan res, 1)
		busy := false
		for {
			select {
			case <-dctx.Done():
				if busy {
					<-answers // the release goes behind it
				}
				return
			case <-end.C:
				close(lost)
				if busy {
					<-answers
				}
				return
			case r := <-answers:
				busy = false
				if r.err != nil {
					continue
				}
				d := t.env.TTL - margin - time.Since(r.start)
				if r.n == 0 || d <= 0 {
					close(lost)
					return
				}
				end.Reset(d)
			case <-next.C:
				if busy {
					continue
				}
				busy = true
				go func() {
					s := time.Now()
					n, err := cax.Run(dctx, t.c, []string{t.env.Key}, v, ms(t.env.TTL)).Int64()
					answers <- res{s, n, err}
				}()
			}
		}
	}()
	return nil
}
func (t *toldLock) Acquire(ctx context.Context) error {
	return strategies.Poll(ctx, pause, t.TryAcquire)
}
func (t *toldLock) Release(ctx context.Context) error { t.stopDog(); return relLua(ctx, t.lk) }

// red is Redlock.
type red struct {
	*lk
	quorum                     int
	parallel, late, norollback bool
	until                      time.Time
}

var redSet = redis.NewScript(`
if redis.call("GET",KEYS[1])==ARGV[1] then return redis.call("PEXPIRE",KEYS[1],ARGV[2]) end
if redis.call("SET",KEYS[1],ARGV[1],"NX","PX",ARGV[2]) then return 1 end return 0`)

func (r *red) each(ctx context.Context, f func(context.Context, redis.UniversalClient) (int64, error)) (ok, no, bad int) {
	type a struct {
		n   int64
		err error
	}
	as := make([]a, len(r.env.Nodes))
	var wg sync.WaitGroup
	for i, c := range r.env.Nodes {
		do := func() {
			nctx, cancel := context.WithTimeout(ctx, r.env.TTL/20)
			defer cancel()
			as[i].n, as[i].err = f(nctx, c)
		}
		if r.parallel {
			wg.Add(1)
			go func() { defer wg.Done(); do() }()
		} else {
			do()
		}
	}
	wg.Wait()
	for _, x := range as {
		switch {
		case x.err != nil:
			bad++
		case x.n == 1:
			ok++
		default:
			no++
		}
	}
	return
}
func (r *red) undo(ctx context.Context) (ok, no, bad int) {
	return r.each(ctx, func(ctx context.Context, c redis.UniversalClient) (int64, error) {
		return cad.Run(ctx, c, []string{r.env.Key}, r.val).Int64()
	})
}
func (r *red) ValidUntil() time.Time { return r.until }
func (r *red) attempt(ctx context.Context) (won, unsure bool) {
	t0 := time.Now()
	ok, _, bad := r.each(ctx, func(ctx context.Context, c redis.UniversalClient) (int64, error) {
		return redSet.Run(ctx, c, []string{r.env.Key}, r.val, ms(r.env.TTL)).Int64()
	})
	drift := r.env.TTL/100 + 2*time.Millisecond
	left := r.env.TTL - drift - time.Since(t0)
	if r.late {
		left = r.env.TTL - drift
	}
	if ok >= r.quorum && left > 0 {
		r.until = r.env.Now().Add(left)
		return true, false
	}
	if r.norollback {
		return false, false
	}
	_, _, b := r.undo(context.WithoutCancel(ctx))
	return false, bad > 0 || b > 0
}
func (r *red) TryAcquire(ctx context.Context) error {
	r.newval()
	won, unsure := r.attempt(ctx)
	if won {
		return nil
	}
	if unsure {
		return errors.New("some nodes did not answer")
	}
	return strategies.ErrNotAcquired
}
func (r *red) Acquire(ctx context.Context) error {
	r.newval()
	any := false
	for i := 0; ; i++ {
		won, unsure := r.attempt(ctx)
		if won {
			return nil
		}
		any = any || unsure
		select {
		case <-ctx.Done():
		case <-time.After(pause + time.Duration(r.env.Rand.Int64N(int64(pause)))):
		}
		if ctx.Err() != nil {
			if any {
				return fmt.Errorf("gave up, some nodes did not answer: %w", ctx.Err())
			}
			return strategies.ErrNotAcquired
		}
	}
}
func (r *red) Release(ctx context.Context) error {
	ok, no, _ := r.undo(ctx)
	if ok >= r.quorum {
		return nil
	}
	if no > len(r.env.Nodes)-r.quorum {
		return strategies.ErrNotHeld
	}
	return errors.New("release unknown")
}
