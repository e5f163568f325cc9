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

// patience is how long a contender waits for the lock before it gives up, and
// for any answer.
const patience = 30 * time.Second

// contender is a client that wants the lock again and again.
type contender struct {
	nodes []redis.UniversalClient
	lock  strategies.Lock
}

// newContender makes the i-th contender on a path.
func (r *fixture) newContender(s strategies.Strategy, path string, i, replicas int) (*contender, error) {
	name := "c" + strconv.Itoa(i+1)
	places, err := r.places(path, name)
	if err != nil {
		return nil, err
	}
	// A deadline that cut a command short would leave the lock taken.
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

// keyOn is the lock's key on a path: those that lead to the same servers have
// one each. The recorded one is looked at.
func keyOn(path string) string {
	if path == Recorded {
		return key
	}
	return key + ":" + path
}

// leave closes what the contender keeps open.
func (c *contender) leave() {
	if closer, ok := c.lock.(io.Closer); ok {
		_ = closer.Close() // the servers end after it
	}
	for _, node := range c.nodes {
		_ = node.Close()
	}
}

// pair acquires and releases the lock once. One that panics has failed.
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

// slice is what came of one slice of time.
type slice struct {
	took     []time.Duration // by each pair, also those that ended after it
	inTime   int             // pairs within it
	failures int
	each     []int // pairs within it by contender
}

// rate is in pairs per second.
func (s slice) rate(length time.Duration) float64 { return float64(s.inTime) / length.Seconds() }

// compete has contenders want the lock for that long. A pair that was begun is
// ended: whoever waits when the time is over gets the lock from those who don't
// want it any more.
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

// measure measures one strategy.
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

// contend measures one strategy with that many contenders.
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
			// Connections are made, and scripts loaded.
			if err := c.pair(ctx); err != nil {
				return nil, fmt.Errorf("on a free lock on healthy servers: %w", err)
			}
		}
	}
	length := o.Time / time.Duration(o.Rounds)
	came := make([][]slice, len(paths))
	for round := range o.Rounds {
		for i := range paths {
			p := (i + round) % len(paths) // none is always the first
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
