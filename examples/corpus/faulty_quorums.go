package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/strategies"
)

// faultyQuorums are Redlocks with one step wrong.
func faultyQuorums() []strategies.Strategy {
	return []strategies.Strategy{
		quorumOf("faulty-quorum-two", "two of five nodes are enough for it", func(q *quorum) { q.enough = 2 }),
		quorumOf("faulty-quorum-litter", "it doesn't release the nodes that it got when they were too few", func(q *quorum) { q.litters = true }),
		quorumOf("faulty-quorum-answered", "it cleans up only on those nodes that said that it had them", func(q *quorum) { q.answered = true }),
		quorumOf("faulty-quorum-slow", "it doesn't look how long it took, and waits for each node as long as that takes",
			func(q *quorum) { q.timeless = true }),
		quorumOf("faulty-quorum-same-node", "its list has one node three times, which is a majority by itself",
			func(q *quorum) {
				q.nodes = []redis.UniversalClient{q.nodes[0], q.nodes[0], q.nodes[0], q.nodes[1], q.nodes[2]}
			}),
		quorumOf("faulty-quorum-errors", "nodes that fail count as nodes that it got", func(q *quorum) { q.failures = true }),
		quorumOf("faulty-quorum-all", "it needs all five nodes", func(q *quorum) { q.enough = 5 }),
	}
}

func quorumOf(name, bug string, change func(*quorum)) strategies.Strategy {
	const nodes = 5
	s := specimen(name, bug, nil, nil)
	s.Nodes, s.Tags = nodes, []string{strategies.TagMulti, strategies.TagQuorum}
	s.New = func(env strategies.Env) (strategies.Lock, error) {
		if err := env.Check(name, nodes); err != nil {
			return nil, err
		}
		q := &quorum{env: env, nodes: env.Nodes[:nodes], enough: nodes/2 + 1}
		change(q)
		return q, nil
	}
	return s
}

// quorum takes SET NX PX from a majority of its nodes.
type quorum struct {
	env    strategies.Env
	nodes  []redis.UniversalClient
	enough int

	litters, answered, timeless, failures bool

	value string
	until time.Time
}

func (q *quorum) Acquire(ctx context.Context) error {
	value := newValue(q.env)
	for {
		err := q.attempt(ctx, value)
		if !errors.Is(err, strategies.ErrNotAcquired) {
			return err
		}
		delay := pause/2 + time.Duration(q.env.Rand.Int64N(int64(pause)))
		if deadline, ok := ctx.Deadline(); ctx.Err() != nil || ok && time.Until(deadline) <= 2*pause {
			return err
		}
		time.Sleep(delay)
	}
}

func (q *quorum) TryAcquire(ctx context.Context) error { return q.attempt(ctx, newValue(q.env)) }

// each asks one node after the other.
func (q *quorum) each(ctx context.Context, ask func(context.Context, redis.UniversalClient) error) (answers []error) {
	for _, node := range q.nodes {
		limited, cancel := ctx, context.CancelFunc(func() {})
		if !q.timeless {
			limited, cancel = context.WithTimeout(ctx, max(5*time.Millisecond, min(50*time.Millisecond, q.env.TTL/20)))
		}
		answers = append(answers, ask(limited, node))
		cancel()
	}
	return answers
}

func (q *quorum) attempt(ctx context.Context, value string) error {
	start := time.Now()
	answers := q.each(ctx, func(ctx context.Context, node redis.UniversalClient) error {
		err := won(true, node.Do(ctx, "SET", q.env.Key, value, "NX", "PX", q.env.TTL.Milliseconds()).Err())
		if errors.Is(err, strategies.ErrNotAcquired) {
			// It may be our own: the answer before was lost, or a node is asked twice.
			if found, err := node.Get(ctx, q.env.Key).Result(); err == nil && found == value {
				return nil
			}
		}
		return err
	})
	got := 0
	for _, err := range answers {
		if err == nil || q.failures && !errors.Is(err, strategies.ErrNotAcquired) {
			got++
		}
	}
	left := q.env.TTL - time.Since(start) - q.env.TTL/100 - 2*time.Millisecond
	if got >= q.enough && (left > 0 || q.timeless) {
		q.value, q.until = value, q.env.Now().Add(left)
		if q.timeless {
			q.until = q.env.Now().Add(q.env.TTL)
		}
		return nil
	}
	if !q.litters {
		q.clean(context.WithoutCancel(ctx), value, answers)
	}
	return strategies.ErrNotAcquired
}

// clean gives up what an attempt got.
func (q *quorum) clean(ctx context.Context, value string, answers []error) {
	i := -1
	q.each(ctx, func(ctx context.Context, node redis.UniversalClient) error {
		if i++; q.answered && answers[i] != nil {
			return nil
		}
		return deleteOurs.Run(ctx, node, []string{q.env.Key}, value).Err()
	})
}

func (q *quorum) Release(ctx context.Context) error {
	freed, failed := 0, strategies.ErrNotHeld
	for _, err := range q.each(ctx, func(ctx context.Context, node redis.UniversalClient) error {
		return ownerError(deleteOurs.Run(ctx, node, []string{q.env.Key}, q.value).Int64())
	}) {
		switch {
		case err == nil:
			freed++
		case !errors.Is(err, strategies.ErrNotHeld):
			failed = err
		}
	}
	if freed >= min(q.enough, 3) {
		return nil
	}
	return failed
}

func (q *quorum) ValidUntil() time.Time { return q.until }
