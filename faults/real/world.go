// Package real is the world of real servers and real time. Clients are processes. Nodes are servers
// that a [Host] started or found running, as an [UnmanagedServer]. Every connection passes an
// embedded toxiproxy and a gate that parses its protocol, RESP by default.
//
// The input is requests of clients and faults of a script; the output is events. As in the
// simulated world, messages move only while the goroutine that plays the script is inside
// [World.Run]; otherwise they wait for their turn. Inside Run the goroutine that carries a message
// decides on it at its arrival, one message at a time. The same goroutine then checks the condition
// that the script waits for; if it is true, nothing moves from that moment on. A script that waits
// for a message to be held can therefore rely on the next message not having moved yet.
package real

import (
	"container/heap"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real/proxy"
	"github.com/lockfault/lockfault/faults/topology"
	"github.com/lockfault/lockfault/internal/proc"
)

// Config configures a world.
type Config struct {
	// Host starts the servers, or finds them: Nodes primaries with Replicas replicas each.
	Host            Host
	Nodes, Replicas int
	// Service is the kind of servers; nil means Redis.
	Service Service
	// Clock reports that the script moves servers' clocks.
	Clock bool
	// Sentinels is the number of sentinels that monitor the node, which must be the only one. The
	// sentinels then do every failover. 0 means that the world does failovers by REPLICAOF NO ONE.
	Sentinels int
	// Client returns the command of a client's process.
	Client func() *exec.Cmd
	// Foreign reports that the client is a program of the user. Such a program may have children,
	// and doesn't report its own delays, so the world measures them from outside.
	Foreign bool
	// Lock is the lock whose changes on the servers are recorded.
	Lock faults.Lock
	// TTL is the lease; faults that use TTLs as their unit refer to it.
	TTL time.Duration
	// Takes is how long the host takes to end, stop or start a server on an idle machine; that time
	// is no lateness.
	Takes time.Duration
	// Log receives toxiproxy's log; nil disables it.
	Log io.Writer
	// Record receives the events in order, with Time set and Index not set. Nil means that no
	// events are recorded.
	Record func(checker.Event)
}

// World is a [faults.World] in real time. Only the goroutine that plays the script may use it,
// except for Notify, ClientLate, and the methods of the processes that Spawn returns.
type World struct {
	cfg      Config
	password string
	over     chan struct{} // closed by Close
	wake     chan struct{} // holds one token: the script's goroutine should look
	mine     waiter        // where the script's goroutine waits for the lock
	mu       fifoMutex     // guards all fields below, except lateness

	until      func() bool // the condition that Run waits for; nil outside
	met        bool        // the condition was true, and the script's goroutine has the lock
	alarm      *time.Timer // wakes the script's goroutine
	due        time.Time   // when alarm fires
	made       time.Time
	began      time.Time
	record     func(checker.Event) // nil until Begin
	timers     timers
	top        *topology.Topology
	ledger     *faults.Attributor
	proxies    *proxy.Proxies
	launcher   *proc.Launcher
	servers    []*server // in the order of the topology's servers
	clients    map[string]*process
	links      map[link]*wire
	sentinels  []string
	failure    error // of something that the world itself needs
	lateness   lateness
	doing      string        // names the current fault, for lateness
	since      time.Time     // when the current fault began
	granted    time.Duration // how much time the current fault may take
	cluster    agreed        // the last known state of a cluster's lock
	promotions time.Duration // total time that sentinels took for promotions
	closed     bool
}

var _ faults.World = (*World)(nil)

// New makes a world with started servers and replicas in step. It blocks until then, or until ctx
// is done. If New fails, everything that it started has ended.
func New(ctx context.Context, cfg Config) (*World, error) {
	begin := proc.NewLauncher
	if cfg.Foreign {
		begin = proc.NewGuardedLauncher
	}
	launcher, err := begin()
	if err != nil {
		err = fmt.Errorf("real: %w", err)
		if cfg.Host != nil {
			err = errors.Join(err, cfg.Host.Close())
		}
		return nil, err
	}
	w := &World{
		cfg: cfg, password: rand.Text(), made: time.Now(), began: time.Now(),
		over: make(chan struct{}), wake: make(chan struct{}, 1), mine: make(waiter, 1), alarm: time.NewTimer(time.Hour),
		ledger: faults.NewAttributor(cfg.Lock), proxies: proxy.New(cfg.Log), launcher: launcher,
		clients: map[string]*process{}, links: map[link]*wire{},
	}
	if lent, ok := cfg.Host.(LendingHost); ok {
		w.password = lent.Password()
	}
	w.lateness.begin(cfg.TTL)
	w.mu.take()
	w.top = topology.New(topology.Config{Nodes: cfg.Nodes, Replicas: cfg.Replicas, TTL: cfg.TTL, Key: cfg.Lock.OwnKey(), Peers: Clusters(cfg.Service), Promoted: cfg.Sentinels > 0}, driver{w})
	err = w.startServers(ctx)
	if err == nil && cfg.Lock.Query != "" && w.servers[0].looker() == nil {
		err = errors.New("real: the lock has a Query, and servers such as these are not asked whose a lock is: leave it out")
	}
	if err != nil {
		_ = w.Close() // the error that matters is the first one
		return nil, err
	}
	go proc.MeasureTimerLag(cfg.TTL, w.over, func(by time.Duration) { w.note("world", "this process to go on", by) })
	return w, nil
}

// Begin implements [faults.World].
func (w *World) Begin() {
	for _, n := range w.top.Nodes {
		w.must(w.inStep(n))
	}
	w.began = time.Now()
	w.ledger = faults.NewAttributor(w.cfg.Lock)
	w.introduce()
	w.cluster = agreed{}
	for _, s := range w.servers {
		w.must(w.find(s))
	}
	w.lateness.begin(w.cfg.TTL)
	w.record = w.cfg.Record
	w.top.Begin()
	w.assign()
	w.keepLooking()
}

// Now implements [faults.World].
func (w *World) Now() time.Duration { return time.Since(w.began) }

// Notify implements [faults.World].
func (w *World) Notify() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Run implements [faults.World].
func (w *World) Run(limit time.Duration, until func() bool) bool {
	deadline := time.Now().Add(limit)
	for {
		if until() {
			return true
		}
		now := time.Now()
		if due := w.timers.next(); due != nil && !due.at.After(now) {
			heap.Pop(&w.timers)
			due.do()
			continue
		}
		if !now.Before(deadline) || w.failure != nil {
			return false
		}
		wait := deadline
		if due := w.timers.next(); due != nil && due.at.Before(wait) {
			wait = due.at
		}
		if w.wait(until, wait) {
			return true
		}
	}
}

// wait lets messages move until the condition is true, which it reports. It also returns when the
// script's goroutine may have something to do, at the latest at the time due.
func (w *World) wait(until func() bool, due time.Time) (met bool) {
	w.until, w.due = until, due
	w.alarm.Reset(time.Until(due))
	w.mu.pass()
	select {
	case <-w.mine:
	case <-w.wake:
		w.mu.takeAt(w.mine)
	case <-w.alarm.C:
		w.mu.takeAt(w.mine)
		w.note("script", "this process to go on", time.Since(w.due))
	}
	met, w.until, w.met = w.met, nil, false
	return met
}

// moved hands on the lock after a message moved: to the script's goroutine if its condition is true
// by now. Only that goroutine continues then, and nothing else moves until it runs.
func (w *World) moved() {
	if w.until != nil && (w.failure != nil || w.until()) {
		w.met = w.failure == nil
		w.until = nil
		w.mu.give(w.mine)
		return
	}
	w.mu.pass()
}

// Err returns the first action that the world itself failed to do, such as reading a key. The
// history of such a world proves nothing.
func (w *World) Err() error { return w.failure }

func (w *World) must(err error) {
	if err != nil && w.failure == nil && !w.closed {
		w.failure = err
	}
}

// Close implements [faults.World]. When Close returns, every process, connection and file that the
// world made is gone, or returned to its host.
func (w *World) Close() error {
	if w.closed {
		return nil
	}
	w.closed = true
	close(w.over)
	w.alarm.Stop()
	w.record = nil
	w.mu.end() // later callers see that the world is closed
	var errs []error
	for _, p := range w.clients {
		errs = append(errs, p.end())
	}
	if w.cfg.Foreign {
		_, err := endOrphans()
		errs = append(errs, err)
	}
	errs = append(errs, w.launcher.Close(), w.proxies.Close())
	for _, s := range w.servers {
		s.leave()
	}
	return errors.Join(append(errs, w.cfg.Host.Close())...)
}

// emit records an event at the current time.
func (w *World) emit(e checker.Event) {
	if w.record == nil {
		return
	}
	e.Time = w.Now()
	w.record(e)
}

// at returns a time since Begin, and 0 for earlier times.
func (w *World) at(t time.Time) time.Duration { return max(0, t.Sub(w.began)) }

// timer is a function that will be called at a time, unless dead is set.
type timer struct {
	at   time.Time
	do   func()
	dead bool
}

// timers is a heap of timers. The zero value is empty.
type timers []*timer

// plan schedules a function call at a time. Setting dead on the returned timer cancels the call.
func (w *World) plan(at time.Time, do func()) *timer {
	t := &timer{at: at, do: do}
	heap.Push(&w.timers, t)
	if w.until != nil && at.Before(w.due) {
		w.due = at
		w.alarm.Reset(time.Until(at))
	}
	return t
}

func (t *timers) next() *timer {
	for len(*t) > 0 && (*t)[0].dead {
		heap.Pop(t)
	}
	if len(*t) == 0 {
		return nil
	}
	return (*t)[0]
}

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at.Before(t[j].at) }
func (t timers) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any)        { *t = append(*t, x.(*timer)) }
func (t *timers) Pop() any {
	old := *t
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*t = old[:len(old)-1]
	return last
}
