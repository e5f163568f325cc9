// Package strategytest tests locks on in-memory Redis nodes in virtual time, and records each
// command that reaches a node.
//
// The input is a strategy; the output is the record of commands as text. Only the tests of package
// strategies and of its sub-packages may use it.
package strategytest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/internal/rediscli"
	"github.com/lockfault/lockfault/strategies"
)

// TTL is the default lease of the fixture's locks, Key the lock's name.
const (
	TTL = 30 * time.Second
	Key = "lock"
)

// Fixture holds one strategy with its nodes and clients, in a bubble of virtual time.
type Fixture struct {
	T        *testing.T
	Strategy strategies.Strategy
	// Replicas is the number of replicas in each client's Env. Acks is the number of replicas in
	// the reply to WAIT.
	Replicas, Acks int
	// TTL is the lease of locks that are made from now on; the initial value is [TTL].
	TTL time.Duration

	nodes   []*node
	clients map[string]*client
	start   time.Time

	mu   sync.Mutex
	wire []command
}

type node struct {
	name   string
	server *miniredis.Miniredis

	mu    sync.Mutex
	down  bool
	slow  time.Duration
	conns []net.Conn
}

type client struct {
	name  string
	lock  strategies.Lock
	redis []*redis.Client
	ahead time.Duration // of true time

	mu    sync.Mutex
	loses string // the command whose next reply is lost
}

// Run calls f in a bubble of virtual time, with nodes for the strategy and the bubble's own T, and
// closes everything afterwards.
func Run(t *testing.T, s strategies.Strategy, f func(t *testing.T, r *Fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &Fixture{T: t, Strategy: s, TTL: TTL, clients: map[string]*client{}, start: time.Now()}
		for i := range max(1, s.Nodes) {
			r.nodes = append(r.nodes, r.newNode(fmt.Sprintf("n%d", i+1)))
		}
		defer r.close()
		f(t, r)
	})
}

func (r *Fixture) newNode(name string) *node {
	n := &node{name: name, server: miniredis.NewMiniRedis()}
	n.server.ClockTTL(true)
	// The first connection creates the server, which then accepts the hook.
	conn, err := n.server.Dial()
	if err != nil {
		r.T.Fatal(err)
	}
	_ = conn.Close()
	n.server.Server().SetPreHook(func(peer *server.Peer, name string, args ...string) bool {
		return r.arrived(n, peer, name, args)
	})
	return n
}

// arrived records a command and reports whether it has replied to it. Commands from a script have
// no client name and are not recorded.
func (r *Fixture) arrived(n *node, peer *server.Peer, name string, args []string) bool {
	if peer.ClientName == "" || name == "CLIENT" || name == "HELLO" {
		return false
	}
	r.record(n.name, peer.ClientName, name, args)
	n.mu.Lock()
	slow := n.slow
	n.mu.Unlock()
	time.Sleep(slow)
	if name == "WAIT" {
		peer.WriteInt(r.Acks)
		return true
	}
	return false
}

func (r *Fixture) close() {
	for _, c := range r.clients {
		if closer, ok := c.lock.(io.Closer); ok {
			if err := closer.Close(); err != nil {
				r.T.Errorf("closing %s's lock: %v", c.name, err)
			}
		}
		for _, rdb := range c.redis {
			_ = rdb.Close()
		}
	}
	// After many refused connections a client has a goroutine that retries every second until it
	// notices that the client is closed.
	time.Sleep(2 * time.Second)
	for _, n := range r.nodes {
		n.server.Close()
	}
}

// Quiet turns off go-redis's log, which is global to the process. Call Quiet in TestMain.
func Quiet() { redis.SetLogger(quiet{}) }

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// Lock returns the client's lock. Lock makes the client and the lock on the first call.
func (r *Fixture) Lock(name string) strategies.Lock {
	r.T.Helper()
	c := r.client(name)
	if c.lock == nil {
		lock, err := r.Strategy.New(r.Env(name))
		if err != nil {
			r.T.Fatal(err)
		}
		c.lock = lock
	}
	return c.lock
}

// Env returns the Env from which the client's lock is built.
func (r *Fixture) Env(name string) strategies.Env {
	c := r.client(name)
	env := strategies.Env{
		Key:      Key,
		TTL:      r.TTL,
		Owner:    "process-" + name,
		Thread:   "thread-" + name,
		Replicas: r.Replicas,
		Now:      func() time.Time { return time.Now().Add(c.ahead) },
		Rand:     rand.New(rand.NewPCG(seed(name), 1)),
	}
	for _, rdb := range c.redis {
		env.Nodes = append(env.Nodes, rdb)
	}
	return env
}

func (r *Fixture) client(name string) *client {
	c := r.clients[name]
	if c == nil {
		c = &client{name: name}
		for i, n := range r.nodes {
			c.redis = append(c.redis, c.connect(i, n))
		}
		r.clients[name] = c
	}
	return c
}

func (c *client) connect(i int, n *node) *redis.Client {
	o := rediscli.Options(fmt.Sprintf("127.0.0.1:%d", i+1)) // a host name would be looked up
	o.ClientName, o.Dialer, o.PoolSize = c.name, n.dial, 64
	rdb := redis.NewClient(o)
	rdb.AddHook(c)
	return rdb
}

func (n *node) dial(context.Context, string, string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused by " + n.name)}
	}
	conn, err := n.server.Dial()
	n.conns = append(n.conns, conn)
	return conn, err
}

// Server returns the server of the i-th node, from 1.
func (r *Fixture) Server(i int) *miniredis.Miniredis { return r.nodes[i-1].server }

// Down closes the i-th node's connections and refuses new ones, from 1.
func (r *Fixture) Down(i int) {
	n := r.nodes[i-1]
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = true
	for _, conn := range n.conns {
		_ = conn.Close()
	}
}

// Slow makes the i-th node wait before it executes a command.
func (r *Fixture) Slow(i int, d time.Duration) {
	n := r.nodes[i-1]
	n.mu.Lock()
	defer n.mu.Unlock()
	n.slow = d
}

// Ahead sets how far the client's clock is ahead of true time.
func (r *Fixture) Ahead(name string, d time.Duration) { r.client(name).ahead = d }

// LoseReply loses the reply to the client's next such command: the node executes the command, and
// the client sees a timeout.
func (r *Fixture) LoseReply(name, command string) {
	c := r.client(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loses = command
}

// ErrLost is the timeout error of [Fixture.LoseReply].
var ErrLost error = lostReply{}

type lostReply struct{}

func (lostReply) Error() string   { return "i/o timeout: the reply was lost" }
func (lostReply) Timeout() bool   { return true }
func (lostReply) Temporary() bool { return true }

// DialHook does nothing; with the other two methods it makes the client a redis.Hook.
func (c *client) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *client) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if c.lost(cmd) {
			return ErrLost
		}
		return err
	}
}

func (c *client) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if slices.ContainsFunc(cmds, c.lost) {
			return ErrLost
		}
		return err
	}
}

func (c *client) lost(cmd redis.Cmder) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loses == "" || !strings.EqualFold(cmd.Name(), c.loses) {
		return false
	}
	c.loses = ""
	cmd.SetErr(ErrLost)
	return true
}

func seed(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return h.Sum64()
}
