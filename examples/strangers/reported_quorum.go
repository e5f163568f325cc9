package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/strategies"
)

var rpMulti = []string{strategies.TagMulti, strategies.TagQuorum}

// rpQuorum is a lock on a majority of nodes. Its fields other than env, token and until are what the
// reports are about; the lock is sound if none of them is set.
type rpQuorum struct {
	env   strategies.Env
	token string
	until time.Time

	enough     func(yes, answered, nodes int) bool // what a majority is
	anyTime    bool                                // doesn't look how long the acquire took
	noRollback bool                                // leaves what an attempt that failed has got
}

// each asks all nodes at once. Yes is how many agreed, answered how many answered, and err the error of
// one that did not answer.
func (l *rpQuorum) each(ctx context.Context, limit time.Duration,
	ask func(context.Context, redis.UniversalClient) (bool, error)) (yes, answered int, err error) {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	agreed, errs := make([]bool, len(l.env.Nodes)), make([]error, len(l.env.Nodes))
	var all sync.WaitGroup
	for i, node := range l.env.Nodes {
		all.Go(func() { agreed[i], errs[i] = ask(ctx, node) })
	}
	all.Wait()
	for i := range agreed {
		if errs[i] != nil {
			err = errs[i]
			continue
		}
		answered++
		if agreed[i] {
			yes++
		}
	}
	return yes, answered, err
}

func (l *rpQuorum) limit() time.Duration { return max(l.env.TTL/20, rpPause) }

func (l *rpQuorum) majority(yes, answered int) bool {
	if l.enough != nil {
		return l.enough(yes, answered, len(l.env.Nodes))
	}
	return yes >= len(l.env.Nodes)/2+1
}

// gave asks a node to release.
func (l *rpQuorum) gave(token string) func(context.Context, redis.UniversalClient) (bool, error) {
	return func(ctx context.Context, node redis.UniversalClient) (bool, error) {
		err := rpGive(ctx, l.env, node, token)
		if errors.Is(err, strategies.ErrNotHeld) {
			return false, nil
		}
		return err == nil, err
	}
}

func (l *rpQuorum) Acquire(ctx context.Context) error {
	token := rpToken(l.env)
	limit := l.limit()
	if l.anyTime {
		limit = 0
	}
	outcome := strategies.ErrNotAcquired // until a node has left it open
	for ctx.Err() == nil {
		sent := time.Now()
		yes, answered, err := l.each(ctx, limit, func(ctx context.Context, node redis.UniversalClient) (bool, error) {
			return rpTake(ctx, l.env, node, token)
		})
		left := l.env.TTL - time.Since(sent) - l.env.TTL/100 - 2*time.Millisecond
		if l.majority(yes, answered) && (l.anyTime || left > 0 && ctx.Err() == nil) {
			l.token, l.until = token, l.env.Now().Add(left)
			return nil
		}
		if l.noRollback {
			token = rpToken(l.env) // the caller's next attempt is another acquire
		} else {
			if err != nil {
				outcome = err
			}
			if _, _, err := l.each(context.WithoutCancel(ctx), l.limit(), l.gave(token)); err != nil {
				outcome = err
			}
		}
		if !rpSleep(ctx, rpPause/2+time.Duration(l.env.Rand.Uint64()%uint64(2*rpPause))) {
			break
		}
	}
	return outcome
}

func (l *rpQuorum) Release(ctx context.Context) error {
	if l.token == "" {
		return strategies.ErrNotHeld
	}
	yes, answered, err := l.each(ctx, l.limit(), l.gave(l.token))
	most := len(l.env.Nodes)/2 + 1
	switch {
	case yes >= most:
		err = nil
	case yes+len(l.env.Nodes)-answered < most:
		err = strategies.ErrNotHeld // whatever the others would have said
	}
	if rpKnown(err) {
		l.token = ""
	}
	return err
}

func (l *rpQuorum) ValidUntil() time.Time { return l.until }

// 21. https://github.com/ronnylt/redlock-php/pull/16: the quorum of three masters is 3/2+1, which PHP
// takes for 2.5, so three are needed.

var _ = rpAdd(rpSpec{
	name: "redlock-php-quorum", source: "ronnylt/redlock-php#16", tags: rpMulti, nodes: 3,
	bug: "the quorum is N/2+1, not rounded down: all of three",
	fix: "the quorum is the whole part of N/2, plus one",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		l := &rpQuorum{env: env}
		if !fixed {
			l.enough = func(yes, _, nodes int) bool { return float64(yes) >= float64(nodes)/2+1 }
		}
		return l
	},
})

// 22. https://github.com/SPSCommerce/redlock-py/pull/6: the quorum is a majority of the servers that the
// client could connect to, so the two sides of a partition have one each.

var _ = rpAdd(rpSpec{
	name: "redlock-py-reachable", source: "SPSCommerce/redlock-py#6", tags: rpMulti, nodes: 3,
	bug: "the quorum is a majority of the nodes that answer",
	fix: "the quorum is a majority of the nodes that there are",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		l := &rpQuorum{env: env}
		if !fixed {
			l.enough = func(yes, answered, _ int) bool { return answered > 0 && yes >= answered/2+1 }
		}
		return l
	},
})

// 23. https://github.com/mike-marcacci/node-redlock/pull/369: the acquire doesn't check whether the time
// that it took has left anything of the validity, and returns expired locks.

var _ = rpAdd(rpSpec{
	name: "node-redlock-expired", source: "mike-marcacci/node-redlock#369", tags: rpMulti, nodes: 3,
	bug: "an acquire succeeds, however long it took",
	fix: "an acquire that took as long as the validity fails, and is taken back",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		return &rpQuorum{env: env, anyTime: !fixed}
	},
})

// 24. https://github.com/xiaoxuxiansheng/redis_lock/issues/3: an acquire that misses the quorum leaves
// what it has got on the other nodes.

var _ = rpAdd(rpSpec{
	name: "redis-lock-no-rollback", source: "xiaoxuxiansheng/redis_lock#3", tags: rpMulti, nodes: 3,
	bug: "an acquire that misses the quorum takes nothing back",
	fix: "an acquire that misses the quorum takes back what it may have got, on all nodes",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		return &rpQuorum{env: env, noRollback: !fixed}
	},
})
