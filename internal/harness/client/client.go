// Package client implements a client's process: it holds the lock under test, executes the script's
// tasks one after the other, and reports the results. In the world of virtual time a client is a
// goroutine of the runner's process. In the worlds of real servers a client is a separate process,
// and [Serve] speaks the protocol of docs/client-protocol.md.
//
// The inputs are a [Setup] and [Task]s; the outputs are [Report]s. The package does not depend on
// scripts or worlds.
package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"reflect"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/strategies"
)

// Host is the environment of a client.
type Host struct {
	// Stage receives the client's reports.
	Stage Stage
	// Dial connects to a node by its name.
	Dial func(ctx context.Context, node string) (net.Conn, error)
	// Connect returns the Redis client for a node by its name. If Connect is nil, the package makes
	// a client that uses Dial.
	Connect func(node string) (redis.UniversalClient, error)
	// Servers are the servers for a strategy of another service than Redis.
	Servers []strategies.Server
	// Now reads the client's wall clock.
	Now func() time.Time
}

// Client is one participant with its lock. The client's own goroutine first makes the lock and then
// executes tasks. Other goroutines may call only [Client.Give], [Client.CancelOperation] and
// [Client.Leave].
type Client struct {
	setup    Setup
	strategy strategies.Strategy
	host     Host
	life     context.Context
	env      strategies.Env
	lock     strategies.Lock
	todo     chan Task

	thoughts *rand.Rand // random source of the pauses between rounds; nil before its first use

	hold      int           // the number of the current hold; 0 if there is none
	lossHeard chan struct{} // closed when the hold has ended, to end the goroutine that waits for its loss

	mu     sync.Mutex // guards the following fields
	made   []strategies.Lock
	left   bool
	cancel context.CancelFunc // ends the context of the current operation; nil if there is none
}

// New returns a client that lives as long as the context. The client has connections to its nodes
// and no lock yet. The error is the host's.
func New(life context.Context, setup Setup, strategy strategies.Strategy, host Host) (*Client, error) {
	c := &Client{setup: setup, strategy: strategy, host: host, life: life, todo: make(chan Task, 1)}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%d", setup.Client, setup.Life)
	source := rand.New(rand.NewPCG(setup.Seed, h.Sum64()))
	c.env = strategies.Env{
		TTL: setup.TTL, Replicas: setup.Replicas,
		Owner:  fmt.Sprintf("%s-%016x", setup.Client, source.Uint64()),
		Thread: setup.Thread,
		Now:    host.Now,
		Rand:   source,
	}
	if c.env.Thread == "" {
		c.env.Thread = strconv.FormatUint(1000+source.Uint64N(9000), 10)
	}
	if strategy.RunsOn() != strategies.Redis {
		c.env.Servers = host.Servers
		return c, nil
	}
	for i, name := range setup.Nodes {
		node, err := c.connect(i, name)
		if err != nil {
			c.Leave()
			return nil, err
		}
		c.env.Nodes = append(c.env.Nodes, node)
	}
	return c, nil
}

// Make makes the lock and returns a report of kind [Made] or [Refused]. Make blocks as long as the
// strategy's New, which may wait for its servers, so the world must continue meanwhile.
func (c *Client) Make() Report {
	var err error
	if c.lock, err = c.lockOn(c.setup.Key); err != nil {
		return Report{Kind: Refused, Error: cmp.Or(err.Error(), "its New returned an error that says nothing")}
	}
	_, fenced := strategies.As[strategies.Fenced](c.lock)
	return Report{Kind: Made, Fenced: fenced, Cancels: true}
}

// lockOn makes a lock on a key. The error is the strategy's. If the client has left in the
// meantime, lockOn closes the lock at once.
func (c *Client) lockOn(key string) (lock strategies.Lock, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("its New panicked: %v\n\n%s", v, debug.Stack())
		}
	}()
	env := c.env
	env.Key = key
	if lock, err = c.strategy.New(env); err != nil {
		return nil, err
	}
	if v := reflect.ValueOf(lock); lock == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, errors.New("its New returned neither a lock nor an error")
	}
	c.mu.Lock()
	left := c.left
	c.made = append(c.made, lock)
	c.mu.Unlock()
	if left {
		closeLock(lock)
	}
	return lock, nil
}

// discard closes the lock that lockOn has made last, unless the client has left: then all are closed.
func (c *Client) discard() {
	c.mu.Lock()
	left, last := c.left, len(c.made)-1
	lock := c.made[last] // locks need not be comparable
	if !left {
		c.made = c.made[:last]
	}
	c.mu.Unlock()
	if !left {
		closeLock(lock)
	}
}

// Give passes a task to the client. The client must have done its previous task.
func (c *Client) Give(t Task) { c.todo <- t }

// Run executes the client's tasks until its life ends. The lock must be made.
func (c *Client) Run() {
	for {
		select {
		case <-c.life.Done():
			return
		case t := <-c.todo:
			c.guard(t)
			if !c.report(Report{Kind: Done}) {
				return
			}
		}
	}
}

// guard executes a task and reports a panic of the strategy.
func (c *Client) guard(t Task) {
	defer func() {
		if v := recover(); v != nil {
			c.report(Report{Kind: Failed, Error: fmt.Sprintf("panicked: %v\n\n%s", v, debug.Stack())})
		}
	}()
	switch t.Do {
	case DoWarmUp:
		c.warmUp()
	case DoCall:
		c.call(t.Op, t.Within)
	case DoWrite:
		c.write()
	case DoWork:
		c.work(t.For)
	case DoRounds, DoUse:
		c.rounds(t)
	default:
		c.report(Report{Kind: Failed, Error: fmt.Sprintf("doesn't know how to do %q", t.Do)})
	}
}

func (c *Client) report(r Report) bool {
	_, ok := c.host.Stage.Report(r)
	return ok
}

// Leave closes the client's locks and connections.
func (c *Client) Leave() {
	c.mu.Lock()
	c.left = true
	made := c.made
	c.mu.Unlock()
	for _, lock := range made {
		closeLock(lock)
	}
	for _, node := range c.env.Nodes {
		_ = node.Close()
	}
}

// closeLock closes a lock that implements io.Closer. closeLock ignores the error: a lock that fails
// to close in a closed world shows in its remaining goroutines.
func closeLock(lock strategies.Lock) {
	if closer, ok := lock.(io.Closer); ok {
		_ = closer.Close()
	}
}
