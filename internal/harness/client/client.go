// Package client is the inside of a client's process: it has the lock under
// test, does what the script tells it, one thing after the other, and reports
// what happened. In the world of virtual time it is a goroutine of the stage's
// own process; in the worlds of real servers it is a process of its own, and
// [Serve] speaks the protocol of docs/client-protocol.md.
//
// A [Setup] and [Task]s come in; [Report]s go out. The package knows neither
// scripts nor worlds.
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
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/strategies"
)

// A Host is where a client lives.
type Host struct {
	// Stage hears the client's reports.
	Stage Stage
	// Dial connects to a node by its name.
	Dial func(ctx context.Context, node string) (net.Conn, error)
	// Connect returns the client of a node by its name, in place of one that
	// uses Dial; nil for the latter.
	Connect func(node string) (redis.UniversalClient, error)
	// Servers are where a strategy of another service than Redis finds them.
	Servers []strategies.Server
	// Now reads the client's wall clock.
	Now func() time.Time
}

// A Client is one participant with its lock. Only [Client.Give],
// [Client.CancelOperation] and [Client.Leave] may be called by others than its own goroutine, which first
// makes the lock and then does what it is given.
type Client struct {
	setup    Setup
	strategy strategies.Strategy
	host     Host
	life     context.Context
	env      strategies.Env
	lock     strategies.Lock
	todo     chan Task

	thoughts *rand.Rand // how long it thinks; nil until it does

	hold      int           // the number of the present hold; 0 if there is none
	lossHeard chan struct{} // closed when it is over, for the one who waits for its loss

	mu     sync.Mutex // guards what follows
	made   []strategies.Lock
	left   bool
	cancel context.CancelFunc // ends the context of the operation that it is in; nil if it is in none
}

// New returns a client that lives as long as the context. It has connections to
// its nodes and no lock yet. The error is the host's.
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

// Make makes the lock, and says in a report of kind [Made] or [Refused] what came
// of it. It blocks for as long as the strategy's New does, which may well wait for
// its servers: whoever calls it lets the world go on meanwhile.
func (c *Client) Make() Report {
	var err error
	if c.lock, err = c.lockOn(c.setup.Key); err != nil {
		return Report{Kind: Refused, Error: cmp.Or(err.Error(), "its New returned an error that says nothing")}
	}
	_, fenced := c.lock.(strategies.Fenced)
	return Report{Kind: Made, Fenced: fenced, Cancels: true}
}

// lockOn makes a lock on a key. The error is the strategy's. A lock that comes when
// the client has left is closed at once.
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
	if lock == nil {
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

// Give gives the client something to do. It must be done with what it was
// given before.
func (c *Client) Give(t Task) { c.todo <- t }

// Run does the tasks that the client is given until its life ends. The lock must be
// made.
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

// guard does a task and reports a panic of the strategy.
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

// Leave closes what the client's locks and connections keep open.
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

// closeLock closes a lock that wants to be. One that can't close properly in a world
// that has gone shows in the goroutines that it leaves behind.
func closeLock(lock strategies.Lock) {
	if closer, ok := lock.(io.Closer); ok {
		_ = closer.Close()
	}
}
