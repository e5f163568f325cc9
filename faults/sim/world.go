// Package sim is the world of virtual time. Redis nodes are miniredis servers in this process,
// links are queues, and the clock is that of a testing/synctest bubble, which stands still while
// any goroutine can run.
//
// All messages and timers are items of one schedule, and Run takes the next item only when every
// goroutine waits. The same script and seed therefore give a byte-identical history.
//
// Faults and requests come in; events and connections go out. A world must be created, used and
// closed inside one bubble. The package may not be used to measure time: code takes no virtual time
// to run.
package sim

import (
	"context"
	"fmt"
	"math"
	"net"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/sim/lua"
	"github.com/lockfault/lockfault/faults/topology"
)

// Config holds the parameters of a world.
type Config struct {
	// Nodes is the number of independent nodes, and Replicas the number of replicas of each node.
	Nodes, Replicas int
	// Lock is the lock whose changes on the servers are recorded.
	Lock faults.Lock
	// TTL is the lease, to which faults with spans in TTLs refer.
	TTL time.Duration
	// Seed determines the jitter.
	Seed uint64
	// Base and Jitter are the one-way latency of every link until a fault changes it. If both are
	// zero, they are 500 µs and 200 µs.
	Base, Jitter time.Duration
	// Record receives the events in order, with Time set and Index unset. nil discards the events.
	Record func(checker.Event)
	// Spares provides servers, and receives the world's servers when it closes. nil makes new
	// servers and closes them with the world.
	Spares *Pool
}

// World is a [faults.Dialer] in virtual time.
type World struct {
	cfg   Config
	timer *time.Timer

	mu       sync.Mutex
	began    time.Time
	record   func(checker.Event) // nil until Begin
	schedule schedule
	readers  readers
	sleeping time.Time // until when Run sleeps; zero while Run does not sleep
	notified bool
	stirred  bool // some goroutine may have become runnable since all last waited
	closed   bool
	top      *topology.Topology
	ledger   *faults.Attributor
	servers  []*redis // in the order of the topology's servers
	clients  map[string]*client
	machine  *lua.Machine

	subscribers []*conn   // connections with subscriptions
	former      []*client // ended lives of clients that were restarted
}

var _ faults.Dialer = (*World)(nil)

// client is one life of a client's process.
type client struct {
	*topology.Client
	dead  bool          // the process has crashed
	freed chan struct{} // closed when a pause or the process ends, and then replaced
	ended chan struct{} // closed when the world closes
	conns []*conn
	door  []*message // replies that wait while the client is paused
}

// New creates a world. New must be called inside a bubble.
func New(cfg Config) (*World, error) {
	if cfg.Base == 0 && cfg.Jitter == 0 {
		cfg.Base, cfg.Jitter = 500*time.Microsecond, 200*time.Microsecond
	}
	w := &World{
		cfg: cfg, timer: time.NewTimer(math.MaxInt64), began: time.Now(),
		ledger: faults.NewAttributor(cfg.Lock), clients: map[string]*client{}, machine: cfg.Spares.takeMachine(),
	}
	w.top = topology.New(topology.Config{
		Nodes: cfg.Nodes, Replicas: cfg.Replicas, TTL: cfg.TTL, Key: cfg.Lock.OwnKey(), Seed: cfg.Seed, Base: cfg.Base, Jitter: cfg.Jitter,
	}, driver{w})
	for _, of := range w.top.Servers {
		s, err := w.newRedis(of)
		if err != nil {
			return nil, err
		}
		w.servers = append(w.servers, s)
	}
	return w, nil
}

// Begin implements [faults.World]. Begin starts with a new Attributor, so the values written during
// the preparations have no names.
func (w *World) Begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.began = time.Now()
	w.record = w.cfg.Record
	w.ledger = faults.NewAttributor(w.cfg.Lock)
	for _, s := range w.servers {
		s.keys = s.readKeys(w.cfg.Lock, w.began)
		w.ledger.Found(s.Name, s.keys)
		w.planExpiry(s, s.keys)
	}
	w.top.Begin()
}

// Now returns the virtual time since Begin. Now implements [faults.World].
func (w *World) Now() time.Duration { return time.Since(w.began) }

// ClientTime implements [faults.World].
func (w *World) ClientTime(name string) time.Time {
	c := w.present(name)
	if err := w.running(c); err != nil {
		return time.Now()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(c.Skew)
}

// Dial implements [faults.Dialer]. If nodeName is the name of a server, such as n1/1, Dial connects
// to that server, whatever its role is. On a partitioned link Dial blocks until ctx is done or the
// world closes, and then returns an error.
func (w *World) Dial(ctx context.Context, name, nodeName string) (net.Conn, error) {
	c := w.present(name)
	if err := w.running(c); err != nil {
		return nil, err
	}
	w.mu.Lock()
	server, fixed := w.lead(name, nodeName)
	if server == nil {
		w.mu.Unlock()
		return nil, fmt.Errorf("sim: there is no node %s", nodeName)
	}
	on := topology.Link{Client: name, Node: server.Node.Name}
	if road := w.top.Links.On(on); road.Cut && road.Closes == 0 {
		w.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-c.ended:
		}
		if err := w.running(c); err != nil {
			return nil, err
		}
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: address(nodeName), Err: context.DeadlineExceeded}
	}
	if !server.Up {
		w.mu.Unlock()
		w.refuse(ctx, c, on)
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: address(nodeName), Err: errRefused}
	}
	defer w.mu.Unlock()
	return w.newConn(c, server, fixed), nil
}

// refuse waits until the schedule delivers the refusal of a connection. Goroutines that are refused
// at one instant thus learn of it in a reproducible order.
func (w *World) refuse(ctx context.Context, c *client, on topology.Link) {
	turn := make(chan struct{})
	w.mu.Lock()
	w.plan(w.noticedAt(on), rank{who: on.Client, where: on.Node, what: "refusal"}, func() {
		w.stirred = true
		close(turn)
	})
	w.mu.Unlock()
	select {
	case <-turn:
	case <-ctx.Done():
	case <-c.ended:
	}
}

// Client returns the state of the client. Client implements [faults.World].
func (w *World) Client(name string) faults.ClientState {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.process(name)
	state := w.top.State(c.Client)
	state.UnderWay = state.Held
	for _, conn := range c.conns {
		state.UnderWay += conn.travelling
	}
	return state
}

// Holds implements [faults.World].
func (w *World) Holds(client, node string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.top.Holds(client, node)
}

// Notify implements [faults.World].
func (w *World) Notify() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notified = true
	w.rouse()
}

// rouse ends Run's sleep, if Run sleeps. Callers hold w.mu.
func (w *World) rouse() {
	if !w.sleeping.IsZero() {
		w.timer.Reset(0)
	}
}

// Run implements [faults.World].
func (w *World) Run(limit time.Duration, until func() bool) bool {
	deadline := time.Now().Add(limit)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stirred = true // the caller may have made any goroutine runnable
	for {
		if w.stirred {
			w.quiesce()
		}
		reader, crowded := w.readers.next()
		if reader != nil {
			reader.wake()
			w.stirred = true
			continue
		}
		w.mu.Unlock()
		met := until()
		w.mu.Lock()
		if met {
			return true
		}
		if w.notified {
			w.notified, w.stirred = false, true
			continue
		}
		now := time.Now()
		next, ok := w.schedule.peek()
		switch {
		case ok && !next.due.After(now):
			w.schedule.pop()
			next.run()
		case !now.Before(deadline):
			return false
		case crowded:
			w.sleep(now.Add(time.Nanosecond))
		case ok && next.due.Before(deadline):
			w.sleep(next.due)
		default:
			w.sleep(deadline)
		}
	}
}

// quiesce waits until every goroutine of the bubble waits, and collects the pushes that servers
// have written meanwhile. Callers hold w.mu, which quiesce releases while it waits.
func (w *World) quiesce() {
	w.stirred = false
	w.mu.Unlock()
	synctest.Wait()
	w.mu.Lock()
	w.collect()
}

// sleep lets time pass until the given moment, or until an earlier item is planned. Timers of the
// clients may make goroutines runnable meanwhile. Callers hold w.mu, which sleep releases
// meanwhile.
func (w *World) sleep(until time.Time) {
	w.sleeping, w.stirred = until, true
	w.timer.Reset(time.Until(until))
	w.mu.Unlock()
	<-w.timer.C
	w.mu.Lock()
	w.sleeping = time.Time{}
}

// Close implements [faults.World]. Close is idempotent and must not be called while Run runs.
func (w *World) Close() error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil
	}
	w.closed = true
	w.record = nil
	w.timer.Stop()
	for _, c := range w.readers.waking {
		c.wake()
	}
	for _, c := range w.clients {
		w.end(c)
	}
	for _, c := range w.former {
		w.end(c)
	}
	for _, s := range w.servers {
		s.crash() // closes connections whose close by the client has not reached the server
	}
	w.schedule = schedule{}
	w.mu.Unlock()
	for _, s := range w.servers {
		w.cfg.Spares.leave(s.mini)
	}
	w.cfg.Spares.leaveMachine(w.machine)
	return nil
}

// end closes all connections of a client's process and unblocks every goroutine that waits in it.
func (w *World) end(c *client) {
	select {
	case <-c.ended:
	default:
		close(c.ended)
	}
	for _, conn := range slices.Clone(c.conns) {
		conn.sever(net.ErrClosed)
	}
}

func (w *World) present(name string) *client {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.process(name)
}

// process returns the present life of a client's process, and creates it on first use. Callers hold
// w.mu.
func (w *World) process(name string) *client {
	c := w.clients[name]
	if c == nil {
		c = newClient(w.top.Client(name))
		if w.closed {
			close(c.ended)
		}
		w.clients[name] = c
	}
	return c
}

func newClient(of *topology.Client) *client {
	return &client{Client: of, freed: make(chan struct{}), ended: make(chan struct{})}
}

// running blocks while the process is paused and, once it has crashed, until the world closes.
// running returns nil if the process runs, and net.ErrClosed if the world has closed.
func (w *World) running(c *client) error {
	for {
		w.mu.Lock()
		paused, crashed, freed := c.State.Paused, c.dead, c.freed
		w.mu.Unlock()
		switch {
		case crashed:
			<-c.ended
			return net.ErrClosed
		case paused:
			select {
			case <-freed:
			case <-c.ended:
				return net.ErrClosed
			}
		default:
			select {
			case <-c.ended:
				return net.ErrClosed
			default:
				return nil
			}
		}
	}
}

// emit records an event at the present time. Callers hold w.mu.
func (w *World) emit(e checker.Event) {
	if w.record == nil {
		return
	}
	e.Time = time.Since(w.began)
	w.record(e)
}

// at returns t as the time since Begin, or 0 if t is before Begin.
func (w *World) at(t time.Time) time.Duration { return max(0, t.Sub(w.began)) }

// lead returns the server to which the client is routed at the node of that name. If name is the
// name of a server, lead returns that server and true. s is nil if the name is unknown.
func (w *World) lead(client, name string) (s *redis, fixed bool) {
	for _, n := range w.top.Nodes {
		if n.Name == name {
			return w.of(n.For(client)), false
		}
	}
	for _, s := range w.servers {
		if s.Name == name {
			return s, true
		}
	}
	return nil, false
}
