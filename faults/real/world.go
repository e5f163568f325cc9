// Package real is the world of real servers and real time: clients are
// processes, nodes are Redis servers that a [Host] started or, as a [Guest],
// found running, and every connection passes an embedded toxiproxy with a toxic that
// understands RESP.
//
// As in the world of virtual time, nothing passes on its own once the script
// has begun: each message waits until the goroutine that plays the script, inside [World.Run], has
// decided on it, one after the other. A script that waits for a message to be
// held can therefore rely on what comes next not having happened yet. And as
// there, requests and orders come in, and events go out.
package real

import (
	"container/heap"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real/proxy"
	"github.com/lockfault/lockfault/internal/child"
)

// Config is what a world is made from.
type Config struct {
	// Host starts the servers, or finds them: Nodes primaries with Replicas
	// replicas each.
	Host            Host
	Nodes, Replicas int
	// Clock says that the script moves servers' clocks.
	Clock bool
	// Sentinels is how many sentinels watch the node, which must be the only
	// one; a failover is theirs to do then. 0 means that failovers are done
	// by REPLICAOF NO ONE.
	Sentinels int
	// Client starts a client's process.
	Client func() *exec.Cmd
	// Key is the lock's key, whose changes are recorded.
	Key string
	// TTL is the lease; faults that speak in TTLs mean this one.
	TTL time.Duration
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
	cfg       Config
	password  string
	began     time.Time
	record    func(checker.Event) // nil until Begin
	inbox     inbox
	timers    timers
	gate      *faults.Gate
	ajar      ajar
	ledger    *faults.Ledger
	proxies   *proxy.Proxies
	launcher  *child.Launcher
	nodes     []*node
	clients   map[string]*process
	links     map[link]*wire
	sentinels []string
	held      []*message
	failure   error // of something that the world itself needs
	lateness  lateness
	closed    bool
	over      chan struct{} // closed when it closes
}

var _ faults.World = (*World)(nil)

// New makes a world: servers are started, replicas in step. It blocks until
// then, or until ctx is done. If that fails, whatever was started has ended.
func New(ctx context.Context, cfg Config) (*World, error) {
	launcher, err := child.NewLauncher()
	if err != nil {
		err = fmt.Errorf("real: %w", err)
		if cfg.Host != nil {
			err = errors.Join(err, cfg.Host.Close())
		}
		return nil, err
	}
	w := &World{
		cfg: cfg, password: rand.Text(), began: time.Now(), inbox: inbox{wake: make(chan struct{}, 1)},
		gate: faults.NewGate(cfg.Nodes), ledger: faults.NewLedger(cfg.Key),
		proxies: proxy.New(cfg.Log), launcher: launcher, over: make(chan struct{}), clients: map[string]*process{}, links: map[link]*wire{},
	}
	if err := w.startNodes(ctx); err != nil {
		_ = w.Close() // what matters is why there is nothing to close
		return nil, err
	}
	go w.beats()
	return w, nil
}

// Begin implements [faults.World].
func (w *World) Begin() {
	w.shut()
	for _, n := range w.nodes {
		w.must(n.inStep())
	}
	w.began = time.Now()
	w.lateness.forget()
	w.record = w.cfg.Record
	w.ledger = faults.NewLedger(w.cfg.Key)
	for _, p := range w.clients {
		p.state.Lost, p.state.Replies, p.state.RoundTrips, p.state.PausedFor = 0, 0, 0, 0
		p.since = w.began
	}
}

// Now implements [faults.World].
func (w *World) Now() time.Duration { return time.Since(w.began) }

// Notify implements [faults.World].
func (w *World) Notify() { w.inbox.rouse() }

// Run implements [faults.World].
func (w *World) Run(limit time.Duration, until func() bool) bool {
	deadline := time.Now().Add(limit)
	alarm := time.NewTimer(limit)
	defer alarm.Stop()
	for {
		if until() {
			return true
		}
		if do := w.inbox.next(); do != nil {
			do()
			continue
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
		alarm.Reset(wait.Sub(now))
		select {
		case <-w.inbox.wake:
		case <-alarm.C:
			w.note("script", time.Since(wait))
		}
	}
}

// Err returns what the world itself could not do, such as looking at a key; a
// history of such a world proves nothing.
func (w *World) Err() error { return w.failure }

func (w *World) must(err error) {
	if err != nil && w.failure == nil && !w.closed {
		w.failure = err
		w.inbox.rouse()
	}
}

// Close implements [faults.World]: every process, connection and file that the
// world made is gone when it returns.
func (w *World) Close() error {
	if w.closed {
		return nil
	}
	w.closed = true
	close(w.over)
	w.record = nil
	var errs []error
	for _, p := range w.clients {
		errs = append(errs, p.end())
	}
	errs = append(errs, w.launcher.Close(), w.proxies.Close())
	for _, n := range w.nodes {
		for _, s := range n.servers {
			s.leave()
		}
	}
	return errors.Join(append(errs, w.cfg.Host.Close())...)
}

// tell records an event at the present time.
func (w *World) tell(e checker.Event) {
	if w.record == nil {
		return
	}
	e.Time = w.Now()
	w.record(e)
}

func (w *World) fault(f faults.Fault, client, node string) {
	w.tell(checker.Event{Kind: checker.Fault, Client: client, Node: node, Text: f.String()})
}

// at returns a time since Begin; what came before it was at 0.
func (w *World) at(t time.Time) time.Duration { return max(0, t.Sub(w.began)) }

func (w *World) node(name string) *node {
	i := slices.IndexFunc(w.nodes, func(n *node) bool { return n.name == name })
	if i < 0 {
		return nil
	}
	return w.nodes[i]
}

// inbox is what other goroutines want done by the one that plays the script.
type inbox struct {
	wake chan struct{} // holds one note that there is something new
	mu   sync.Mutex
	list []func()
}

func (in *inbox) put(do func()) {
	in.mu.Lock()
	in.list = append(in.list, do)
	in.mu.Unlock()
	in.rouse()
}

func (in *inbox) next() func() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.list) == 0 {
		return nil
	}
	do := in.list[0]
	in.list[0] = nil
	in.list = in.list[1:]
	return do
}

func (in *inbox) rouse() {
	select {
	case in.wake <- struct{}{}:
	default:
	}
}

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

var errNoReplica = errors.New("there is no replica that is up; declare replicas in the script")

func unsupported(f faults.Fault, why string) error {
	return fmt.Errorf("real: %q: %w: %s", f, faults.ErrUnsupported, why)
}
