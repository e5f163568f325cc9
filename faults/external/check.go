package external

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/internal/rediscli"
)

// Check checks whether every Redis can be used. Each must be reachable, accept the login, be a
// primary and no cluster node, and no two may be the same database. Check blocks until all have
// answered, or ctx is done. The error names one Redis, the problem and what to do, in one line
// without secrets; it wraps [ErrAddress] if the address is wrong. Nothing is written.
func Check(ctx context.Context, urls []string) error {
	all, err := parse(urls)
	if err != nil {
		return err
	}
	ids := make([]string, len(all))
	errs := each(all, func(i int, a address) error {
		client := redis.NewClient(a.options())
		defer client.Close()
		var err error
		ids[i], err = a.visit(ctx, client)
		return err
	})
	if len(errs) > 0 {
		return errs[0]
	}
	for i, id := range ids {
		first := slices.Index(ids, id)
		if id != "" && first != i && all[first].login.DB == all[i].login.DB {
			return fmt.Errorf("external: %s and %s are one server, and its same database: nodes must be independent of each other", all[first], all[i])
		}
	}
	return nil
}

// each calls do for every address at the same time, and returns the errors in the order of the
// addresses.
func each(all []address, do func(int, address) error) []error {
	errs := make([]error, len(all))
	var ends sync.WaitGroup
	for i, a := range all {
		ends.Go(func() { errs[i] = do(i, a) })
	}
	ends.Wait()
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// oldest is the oldest supported major version of Redis. A server that reports no version is
// accepted.
const oldest = 6

// visit logs in, checks the server's version and role, and tries the commands that this package
// needs on a key that doesn't exist. It returns the server's run ID.
func (a address) visit(ctx context.Context, client *redis.Client) (id string, err error) {
	info, err := rediscli.Info(ctx, client)
	if err != nil {
		return "", a.mixedUp(ctx, err)
	}
	var major int
	_, err = fmt.Sscanf(info["redis_version"], "%d.", &major)
	switch {
	case err == nil && major < oldest:
		return "", fmt.Errorf("external: %s is Redis %s, too old: name one of version %d or newer", a, info["redis_version"], oldest)
	case info["cluster_enabled"] == "1":
		return "", fmt.Errorf("external: %s is a node of a cluster, which can't be played with: name a server on its own", a)
	case info["redis_mode"] == "sentinel":
		return "", fmt.Errorf("external: %s is a sentinel: name the primary that it watches", a)
	case info["role"] == "slave":
		return "", fmt.Errorf("external: %s is a replica: name its primary", a)
	}
	key := Prefix(NewRun()) + "}:nobody"
	_, err = client.TxPipelined(ctx, func(tx redis.Pipeliner) error {
		tx.Get(ctx, key)
		tx.HGetAll(ctx, key)
		tx.PTTL(ctx, key)
		return nil
	})
	if err == nil || errors.Is(err, redis.Nil) {
		err = remove(ctx, client, key)
	}
	if err == nil {
		err = client.Scan(ctx, 0, key, 1).Err()
	}
	if err != nil {
		return "", a.explain(err)
	}
	return info["run_id"], nil
}

// trips is the number of commands that trip measures.
const trips = 7

// trip returns the round-trip time of a command: the median of several.
func (a address) trip(ctx context.Context, client *redis.Client) (time.Duration, error) {
	var took []time.Duration
	for range trips {
		asked := time.Now()
		if err := client.Ping(ctx).Err(); err != nil {
			return 0, a.explain(err)
		}
		took = append(took, time.Since(asked))
	}
	slices.Sort(took)
	return took[trips/2], nil
}

// NewRun returns a unique name for a run.
func NewRun() string { return rand.Text() }

// Prefix returns the prefix of the names of all keys of a run. The brace keeps keys that strategies
// derive from the lock's key under the same prefix.
func Prefix(run string) string { return "lockfault:{" + run }

// Remove removes every key of the run from every Redis. No client may write such keys any more. It
// scans all names, in small steps that don't block the server, and blocks until it has finished or
// ctx is done. The error names the servers where keys may be left.
func Remove(ctx context.Context, urls []string, run string) error {
	if run == "" {
		return errors.New("external: a run without a name has no keys")
	}
	all, err := parse(urls)
	if err != nil {
		return err
	}
	return errors.Join(each(all, func(_ int, a address) error {
		client := redis.NewClient(a.options())
		defer client.Close()
		if err := sweep(ctx, client, run); err != nil {
			return a.left(run, err)
		}
		return nil
	})...)
}

// left returns an error that reports possibly remaining keys.
func (a address) left(run string, err error) error {
	return fmt.Errorf("%w: keys that begin with %s may be left there", a.explain(err), Prefix(run))
}

// scanStep is the number of names that a server scans in one step, which takes some milliseconds.
const scanStep = 1000

// sweep removes every key whose name contains the run's prefix: a strategy may have put its own
// prefix before it.
func sweep(ctx context.Context, client *redis.Client, run string) error {
	var cursor uint64
	for {
		keys, next, err := client.Scan(ctx, cursor, "*"+Prefix(run)+"*", scanStep).Result()
		if err == nil {
			err = remove(ctx, client, keys...)
		}
		if err != nil || next == 0 {
			return err
		}
		cursor = next
	}
}

// remove removes keys, repeatedly until none is left: requests that a client sent before it ended
// may arrive after the first removal.
func remove(ctx context.Context, client *redis.Client, keys ...string) error {
	if len(keys) == 0 {
		return nil
	}
	for range 10 {
		removed, err := client.Unlink(ctx, keys...).Result()
		if err != nil || removed == 0 {
			return err
		}
	}
	return errors.New("keys come back as often as they are removed")
}
