package bench

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/internal/harness/client"
	"github.com/lockfault/lockfault/strategies"
)

// patience is the longest wait of a contender for the lock, and for any reply.
const patience = 30 * time.Second

// A contender is a client that acquires and releases the lock repeatedly.
type contender struct {
	nodes []redis.UniversalClient
	lock  strategies.Lock
}

// newContender returns the contender with index i on a path.
func (r *fixture) newContender(s strategies.Strategy, path string, i, replicas int) (*contender, error) {
	name := "c" + strconv.Itoa(i+1)
	places, err := r.places(path, name)
	if err != nil {
		return nil, err
	}
	// A deadline that interrupted a command could leave the lock acquired.
	setup := client.Setup{ReadTimeout: patience, IgnoreContext: true}
	c := &contender{}
	var servers []strategies.Server
	for _, p := range places {
		if r.idle.servers.service != nil {
			servers = append(servers, strategies.Server{Addr: p.Addr, Username: p.Username, Password: p.Password})
			continue
		}
		options := setup.Options()
		options.Addr, options.Username, options.Password = p.Addr, p.Username, p.Password
		c.nodes = append(c.nodes, redis.NewClient(options))
	}
	seed := fnv.New64a()
	fmt.Fprint(seed, path, "/", name)
	random := rand.New(rand.NewPCG(1, seed.Sum64()))
	c.lock, err = s.New(strategies.Env{
		Nodes: c.nodes, Servers: servers, Key: keyOn(path), TTL: lease, Replicas: replicas, Now: time.Now, Rand: random,
		Owner: fmt.Sprintf("%s-%016x", name, random.Uint64()), Thread: strconv.FormatUint(1000+random.Uint64N(9000), 10),
	})
	if err != nil {
		c.leave()
		return nil, err
	}
	return c, nil
}

// keyOn returns the lock's key on a path. Paths to the same servers use different keys; the gate
// looks at the key of the path Recorded.
func keyOn(path string) string {
	if path == Recorded {
		return key
	}
	return key + ":" + path
}

// leave closes the contender's lock and connections.
func (c *contender) leave() {
	if closer, ok := c.lock.(io.Closer); ok {
		_ = closer.Close() // an error has no effect on the servers, which end later
	}
	for _, node := range c.nodes {
		_ = node.Close()
	}
}

// pair acquires and releases the lock once. A panic of the lock is returned as an error.
func (c *contender) pair(ctx context.Context) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panicked: %v", v)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := c.lock.Acquire(ctx); err != nil {
		return fmt.Errorf("acquire: %w", err)
	}
	if err := c.lock.Release(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	return nil
}

// A slice is the result of one slice of time.
type slice struct {
	took     []time.Duration // durations of all pairs, including those that ended after the slice
	inTime   int             // pairs that ended within the slice
	failures int
	each     []int // pairs within the slice, by contender
}

// rate returns the number of pairs per second.
func (s slice) rate(length time.Duration) float64 { return float64(s.inTime) / length.Seconds() }

// compete lets contenders compete for the lock for the given time. A pair that has begun is
// finished: a contender that waits at the end gets the lock from contenders that stop.
func compete(ctx context.Context, all []*contender, length time.Duration) slice {
	var mu sync.Mutex
	var sum slice
	var running sync.WaitGroup
	end := time.Now().Add(length)
	for _, c := range all {
		running.Go(func() {
			var own slice
			for now := time.Now(); now.Before(end) && ctx.Err() == nil; {
				begun := now
				err := c.pair(ctx)
				now = time.Now()
				switch {
				case err == nil:
					own.took = append(own.took, now.Sub(begun))
					if !now.After(end) {
						own.inTime++
					}
				case ctx.Err() == nil:
					own.failures++
				}
			}
			mu.Lock()
			defer mu.Unlock()
			sum.took = append(sum.took, own.took...)
			sum.inTime += own.inTime
			sum.failures += own.failures
			sum.each = append(sum.each, own.inTime)
		})
	}
	running.Wait()
	return sum
}

// measure measures one strategy with all numbers of contenders.
func (o Options) measure(ctx context.Context, s strategies.Strategy) (list []Cost, err error) {
	r, err := o.newRig(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closed := r.close(); err == nil {
			err = closed
		}
	}()
	for _, n := range o.Contenders {
		if o.Begin != nil {
			o.Begin(s.Name, n)
		}
		costs, err := o.contend(ctx, r, s, n)
		if err != nil {
			return list, err
		}
		list = append(list, costs...)
	}
	return list, nil
}

// contend measures one strategy with n contenders.
func (o Options) contend(ctx context.Context, r *fixture, s strategies.Strategy, n int) ([]Cost, error) {
	paths := Paths()
	contenders := make([][]*contender, len(paths))
	defer func() {
		for _, list := range contenders {
			for _, c := range list {
				c.leave()
			}
		}
	}()
	for p, path := range paths {
		for i := range n {
			c, err := r.newContender(s, path, i, o.Replicas)
			if err != nil {
				return nil, err
			}
			contenders[p] = append(contenders[p], c)
			// The first pair makes connections and loads scripts.
			if err := c.pair(ctx); err != nil {
				return nil, fmt.Errorf("on a free lock on healthy servers: %w", err)
			}
		}
	}
	length := o.Time / time.Duration(o.Rounds)
	came := make([][]slice, len(paths))
	for round := range o.Rounds {
		for i := range paths {
			p := (i + round) % len(paths) // rotate the order, so that no path is always first
			came[p] = append(came[p], compete(ctx, contenders[p], length))
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if err := r.err(); err != nil {
				return nil, err
			}
		}
	}
	return sumUp(s.Name, n, length, paths, came), nil
}
