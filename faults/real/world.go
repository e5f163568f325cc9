// Package real is the world of real servers and real time: clients are
// processes, nodes are Redis servers that a [Host] started or, as a [UnmanagedServer],
// found running, and every connection passes an embedded toxiproxy with a toxic that
// understands RESP.
//
// As in the world of virtual time, nothing passes while the goroutine that plays
// the script isn't inside [World.Run]: messages wait for their turns then. In there
// each is decided on where it arrives, one after the other, by the goroutine
// that carries it, which also looks whether what the script waits for is so by
// then; if it is, nothing passes from that moment on. A script that waits for a
// message to be held can therefore rely on what comes next not having happened
// yet. And as there, requests and orders come in, and events go out.
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

// Config is what a world is made from.
type Config struct {
	// Host starts the servers, or finds them: Nodes primaries with Replicas
	// replicas each.
	Host            Host
	Nodes, Replicas int
	// Service is what the servers are; nil says that they are Redis.
	Service Service
	// Clock says that the script moves servers' clocks.
	Clock bool
	// Sentinels is how many sentinels watch the node, which must be the only
	// one; a failover is theirs to do then. 0 means that failovers are done
	// by REPLICAOF NO ONE.
	Sentinels int
	// Client returns the command of a client's process.
	Client func() *exec.Cmd
	// Foreign says that it is a program of somebody else's: it may have children, and
	// doesn't say itself how late it was, so that is found out from outside.
	Foreign bool
	// Lock is the lock whose changes on the servers are recorded.
	Lock faults.Lock
	// TTL is the lease; faults that speak in TTLs mean this one.
	TTL time.Duration
	// Takes is how long the host takes to end, stop or start a server when
	// nothing is in its way: for so long it is not late.
	Takes time.Duration
	// Log receives what toxiproxy logs; nil silences it.
	Log io.Writer
	// Record receives the events in order, with Time filled in and Index
	// not. Nil means that nobody wants them.
	Record func(checker.Event)
}

// World is a [faults.World] in real time. Only Notify, and the methods of the
// processes that Spawn returns, may be called by others than the goroutine
// that plays the script.
type World struct {
	cfg      Config
	password string
	over     chan struct{} // closed when it closes
	wake     chan struct{} // holds one note that the script's goroutine should look
	mine     waiter        // where the script's goroutine waits for its turn
	mu       fifoMutex     // guards all that follows, lateness apart

	until      func() bool // what Run waits for, while it does
	met        bool        // it was so, and the script's goroutine has the turn
	alarm      *time.Timer // wakes the script's goroutine
	due        time.Time   // when it does
	made       time.Time
	began      time.Time
	record     func(checker.Event) // nil until Begin
	timers     timers
	top        *topology.Topology
	ledger     *faults.Attributor
	proxies    *proxy.Proxies
	launcher   *proc.Launcher
	servers    []*server // in the order of the topology's
	clients    map[string]*process
	links      map[link]*wire
	sentinels  []string
	failure    error // of something that the world itself needs
	lateness   lateness
	doing      string        // that the present fault is to be done
	since      time.Time     // when that was begun
	granted    time.Duration // how long it may take
	cluster    agreed        // if servers are members of one
	promotions time.Duration // how long sentinels took for all that they did
	closed     bool
}

var _ faults.World = (*World)(nil)

// New makes a world: servers are started, replicas in step. It blocks until
// then, or until ctx is done. If that fails, whatever was started has ended.
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
		ledger: faults.NewLedger(cfg.Lock), proxies: proxy.New(cfg.Log), launcher: launcher,
		clients: map[string]*process{}, links: map[link]*wire{},
	}
	if lent, ok := cfg.Host.(LendingHost); ok {
		w.password = lent.Password()
	}
	w.lateness.begin(cfg.TTL)
	w.mu.take()
	w.top = topology.New(topology.Config{Nodes: cfg.Nodes, Replicas: cfg.Replicas, TTL: cfg.TTL, Peers: Clusters(cfg.Service), Promoted: cfg.Sentinels > 0}, driver{w})
	err = w.startServers(ctx)
	if err == nil && cfg.Lock.Query != "" && w.servers[0].looker() == nil {
		err = errors.New("real: the lock has a Query, and servers such as these are not asked whose a lock is: leave it out")
	}
	if err != nil {
		_ = w.Close() // what matters is why there is nothing to close
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
	w.ledger = faults.NewLedger(w.cfg.Lock)
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

// wait lets messages have their turns until the function returns true, which it
// reports, or there may be something for the script's goroutine to do: at the
// latest at that time.
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

// moved passes on the turn of somebody who moved something: to the script's
// goroutine if what it waits for is so by now. Nobody else wakes it, and
// as long as it doesn't get its turn nothing else moves.
func (w *World) moved() {
	if w.until != nil && (w.failure != nil || w.until()) {
		w.met = w.failure == nil
		w.until = nil
		w.mu.give(w.mine)
		return
	}
	w.mu.pass()
}

// Err returns what the world itself could not do, such as looking at a key; a
// history of such a world proves nothing.
func (w *World) Err() error { return w.failure }

func (w *World) must(err error) {
	if err != nil && w.failure == nil && !w.closed {
		w.failure = err
	}
}

// Close implements [faults.World]: every process, connection and file that the
// world made is gone when it returns, or back with its host.
func (w *World) Close() error {
	if w.closed {
		return nil
	}
	w.closed = true
	close(w.over)
	w.alarm.Stop()
	w.record = nil
	w.mu.end() // whoever comes sees that it is closed
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

// emit records an event at the present time.
func (w *World) emit(e checker.Event) {
	if w.record == nil {
		return
	}
	e.Time = w.Now()
	w.record(e)
}

// at returns a time since Begin; what came before it was at 0.
func (w *World) at(t time.Time) time.Duration { return max(0, t.Sub(w.began)) }

// timer is something that will happen at a time.
type timer struct {
	at   time.Time
	do   func()
	dead bool
}

// timers is a heap of them. The zero value is empty.
type timers []*timer

// plan has something done at a time; setting dead on what it returns takes it
// back.
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
