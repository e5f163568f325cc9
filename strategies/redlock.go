package strategies

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// redlockStrategy returns Redlock on five independent nodes. Its steps are those of document 004
// and of the Redis documentation (document 001 describes the first steps):
//
//  1. Read the time.
//  2. Send SET NX PX with one value to each node in turn, with a time limit per node that is far
//     below the lease. Continue at once if a node fails or refuses.
//  3. The lock is acquired if a majority granted it and its validity is positive. The validity is
//     the TTL minus the elapsed time minus an allowance for clock drift (1 % of the TTL and 2 ms).
//  4. Otherwise release on all nodes, including those that did not reply, and retry after a random
//     delay of 50 to 150 ms, so that clients that split the nodes between them do not do so again.
//
// Known faults: the lock relies on clocks. A node whose clock jumps, or that loses its data in a
// restart, can grant a second majority. A client that is paused after step 3 relies on a validity
// that has ended. The lock issues no fencing token.
func redlockStrategy() Strategy {
	const name, nodes = "redlock", 5
	return Strategy{
		Name:    name,
		Summary: "SET NX PX on a majority of five nodes within the TTL; released by a compare-and-delete script on all",
		Source:  "documents 001 and 004; Redis documentation (Distributed Locks with Redis)",
		Nodes:   nodes, AnyNodes: true,
		Tags: []string{TagMulti, TagQuorum, TagExtending},
		New: func(env Env) (Lock, error) {
			if err := env.Check(name, 1); err != nil {
				return nil, err
			}
			return &redlock{
				strategy: name,
				env:      env,
				nodes:    env.Nodes,
				quorum:   len(env.Nodes)/2 + 1,
				timeout:  nodeTimeout(env.TTL),
			}, nil
		},
	}
}

// nodeTimeout returns how long Redlock waits for one node. The timeout is 50 ms, the upper end of
// the documents' range. For a lease so short that five such waits would use up much of it, the
// timeout is a twentieth of the lease, but at least 5 ms.
func nodeTimeout(ttl time.Duration) time.Duration {
	return max(5*time.Millisecond, min(50*time.Millisecond, ttl/20))
}

type redlock struct {
	strategy string
	env      Env
	nodes    []redis.UniversalClient
	quorum   int
	timeout  time.Duration // for one node

	value string
	until time.Time // end of the validity, on the clock of env.Now
}

func (l *redlock) Acquire(ctx context.Context) error {
	value := l.env.token()
	delay := func() time.Duration {
		return retryDelay/2 + time.Duration(l.env.Rand.Int64N(int64(retryDelay)))
	}
	return retry(ctx, delay, func(ctx context.Context) error { return l.attempt(ctx, value) })
}

func (l *redlock) TryAcquire(ctx context.Context) error {
	return l.attempt(ctx, l.env.token())
}

func (l *redlock) attempt(ctx context.Context, value string) error {
	start := time.Now()
	granted, _, cause := l.onEach(ctx, func(ctx context.Context, node redis.UniversalClient) (bool, error) {
		err := node.Do(ctx, "SET", l.env.Key, value, "NX", "PX", l.env.TTL.Milliseconds()).Err()
		if errors.Is(err, redis.Nil) {
			return false, nil
		}
		return err == nil, err
	})
	left := l.validity(start)
	if granted >= l.quorum && left > 0 {
		l.value, l.until = value, l.env.Now().Add(left)
		return nil
	}
	// The release is sent even if ctx ended the attempt. If an unreachable node keeps its key,
	// either the key belongs to a minority or it ends with the lease, so the attempt counts as
	// failed and not as unknown.
	l.deleteOnEach(context.WithoutCancel(ctx), value)
	if granted >= l.quorum {
		return fmt.Errorf("strategies: %s: asking the nodes for %s took %s of a lease of %s: %w",
			l.strategy, l.env.Key, time.Since(start), l.env.TTL, ErrNotAcquired)
	}
	return fmt.Errorf("strategies: %s: %d of %d nodes granted %s, %d are needed%s: %w",
		l.strategy, granted, len(l.nodes), l.env.Key, l.quorum, causeText(cause), ErrNotAcquired)
}

func (l *redlock) Release(ctx context.Context) error {
	deleted, unknown, cause := l.deleteOnEach(ctx, l.value)
	return l.verdict("released", deleted, unknown, cause)
}

func (l *redlock) Extend(ctx context.Context) error {
	start := time.Now()
	extended, unknown, cause := l.onEach(ctx, func(ctx context.Context, node redis.UniversalClient) (bool, error) {
		n, err := compareAndExpire.Run(ctx, node, []string{l.env.Key}, l.value, l.env.TTL.Milliseconds()).Int64()
		return n == 1, err
	})
	if err := l.verdict("extended", extended, unknown, cause); err != nil {
		return err
	}
	left := l.validity(start)
	if left <= 0 {
		return fmt.Errorf("strategies: %s: extending %s took the whole lease of %s: %w", l.strategy, l.env.Key, l.env.TTL, ErrNotHeld)
	}
	l.until = l.env.Now().Add(left)
	return nil
}

func (l *redlock) ValidUntil() time.Time { return l.until }

// validity returns the validity that remains of a lease that was requested at start.
func (l *redlock) validity(start time.Time) time.Duration {
	drift := l.env.TTL/100 + 2*time.Millisecond
	return l.env.TTL - time.Since(start) - drift
}

func (l *redlock) deleteOnEach(ctx context.Context, value string) (done, unknown int, cause error) {
	return l.onEach(ctx, func(ctx context.Context, node redis.UniversalClient) (bool, error) {
		n, err := compareAndDelete.Run(ctx, node, []string{l.env.Key}, value).Int64()
		return n == 1, err
	})
}

// onEach calls do for each node in turn, with the time limit for one node. onEach returns how many
// calls succeeded, how many have an unknown outcome, and the last error.
func (l *redlock) onEach(ctx context.Context, do func(context.Context, redis.UniversalClient) (bool, error)) (done, unknown int, cause error) {
	for _, node := range l.nodes {
		limited, cancel := context.WithTimeout(ctx, l.timeout)
		ok, err := do(limited, node)
		cancel()
		switch {
		case err != nil:
			unknown++
			cause = err
		case ok:
			done++
		}
	}
	return done, unknown, cause
}

// verdict returns nil if a majority succeeded, ErrNotHeld if a majority certainly did not, and
// another error if the outcome is unknown.
func (l *redlock) verdict(did string, done, unknown int, cause error) error {
	switch {
	case done >= l.quorum:
		return nil
	case done+unknown < l.quorum:
		return fmt.Errorf("strategies: %s: %d of %d nodes %s %s%s: %w",
			l.strategy, done, len(l.nodes), did, l.env.Key, causeText(cause), ErrNotHeld)
	default:
		return fmt.Errorf("strategies: %s: %d of %d nodes %s %s, %d did not answer: %w",
			l.strategy, done, len(l.nodes), did, l.env.Key, unknown, cause)
	}
}

func causeText(cause error) string {
	if cause == nil {
		return ""
	}
	return fmt.Sprintf(" (%v)", cause)
}
