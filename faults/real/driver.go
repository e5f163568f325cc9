package real

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/topology"
)

// Apply implements [faults.World]. An unmanaged Redis accepts no commands of the harness: of the
// faults of nodes, only Evict is possible there.
func (w *World) Apply(f faults.Fault) error {
	if w.closed {
		return fmt.Errorf("real: %q: the world is closed: %w", f, net.ErrClosed)
	}
	if err := w.supports(f); err != nil {
		return err
	}
	// Time goes on for all other participants while the fault is being applied.
	w.granted, w.doing, w.since = 0, fmt.Sprintf("%q to be done", f), time.Now()
	w.suspend()
	defer func() {
		w.assign()
		w.note("script", w.doing, time.Since(w.since)-w.granted)
	}()
	w.lateness.count(f)
	if err := w.top.Apply(f); err != nil {
		return fmt.Errorf("real: %w", err)
	}
	return nil
}

// Met implements [faults.World].
func (w *World) Met() []int { return w.top.Gate.MatchCounts() }

// supports returns an error if this world can't apply a fault.
func (w *World) supports(f faults.Fault) error {
	if name := faults.TargetClient(f); name != "" {
		if c := w.clients[name]; c == nil || c.body == nil {
			return fmt.Errorf("real: %q: that client was never started here", f)
		}
	}
	if w.cfg.Service != nil && !Supports(w.cfg.Service, f) {
		return fmt.Errorf("real: %q: %w: these servers are not Redis", f, faults.ErrUnsupported)
	}
	if w.servers[0].unmanaged != nil && !f.Definition().SparesOthers() {
		return fmt.Errorf("real: %q: %w: this Redis is not ours", f, faults.ErrUnsupported)
	}
	return nil
}

// ask lets the host act on a server's process, and excludes that time, up to cfg.Takes, from the
// lateness.
func (w *World) ask(do func() error) error {
	begun := time.Now()
	err := do()
	w.granted += min(time.Since(begun), w.cfg.Takes)
	return err
}

// driver carries out the decisions of the topology.
type driver struct{ *World }

var _ topology.Driver = driver{}

func (h driver) Record(e checker.Event) { h.emit(e) }

func (h driver) Records() bool { return h.record != nil }

func (h driver) StopClient(of *topology.Client) error {
	c := h.clients[of.Name]
	c.body.MeasureLateness()
	h.lateness.pause(c.Name)
	return c.did("pausing", c.body.Pause())
}

func (h driver) ContinueClient(of *topology.Client) error {
	c := h.clients[of.Name]
	err := c.did("resuming", c.body.Resume())
	h.lateness.resume(c.Name)
	return err
}

func (h driver) EndClient(of *topology.Client) error {
	c := h.clients[of.Name]
	c.body.MeasureLateness()  // impossible after the end
	h.lateness.resume(c.Name) // the next process is not stopped
	return c.did("crashing", c.body.Kill())
}

func (h driver) ReviveClient(*topology.Client) error { return nil } // Spawn revives the client

func (h driver) Reshape(links []topology.Link) error {
	var errs []error
	for _, l := range h.wires(links) {
		errs = append(errs, l.reshape())
	}
	return errors.Join(errs...)
}

func (h driver) Cut(links []topology.Link) {
	for _, l := range h.wires(links) {
		for _, c := range l.list() {
			c.closeAfter(l.road().Closes)
		}
	}
}

// Mend resets connections that lost bytes: they are useless, and their ends notice that when they
// can communicate again.
func (h driver) Mend(links []topology.Link) {
	for _, l := range h.wires(links) {
		for _, c := range l.list() {
			c.closeAfter(0)
			if c.requests.Lost || c.replies.Lost {
				c.reset()
			}
		}
	}
}

func (h driver) CutNodes(pairs []topology.Pair) error { return h.between(pairs, ClusterHost.Part) }

func (h driver) MendNodes(pairs []topology.Pair) error { return h.between(pairs, ClusterHost.Rejoin) }

// between calls a method of the host for each pair of nodes. It returns an error if the host isn't
// a ClusterHost.
func (h driver) between(pairs []topology.Pair, do func(h ClusterHost, a, b string) error) error {
	host, ok := h.cfg.Host.(ClusterHost)
	if !ok {
		return fmt.Errorf("cut or mend the ways between nodes: this host can't: %w", faults.ErrUnsupported)
	}
	var errs []error
	for _, p := range pairs {
		errs = append(errs, do(host, p.A, p.B))
	}
	return errors.Join(errs...)
}

func (h driver) Lead(n *topology.Node) error {
	var errs []error
	for on, wire := range h.links {
		if on.node == n.Name {
			errs = append(errs, wire.lead(h.of(n.For(on.client))))
		}
	}
	return errors.Join(errs...)
}

func (h driver) Settle(s *topology.Server) { h.settle(h.of(s)) }

func (h driver) Observe(s *topology.Server, cause checker.Cause) { h.observe(h.of(s), cause, "", nil) }

func (h driver) Kill(of *topology.Server) error {
	s := h.of(of)
	s.busy, s.door = nil, nil
	if s.expiry != nil {
		s.expiry.dead = true
	}
	for _, wire := range h.links {
		for _, c := range wire.list() {
			if c.server == s {
				c.reset()
			}
		}
	}
	return h.ask(s.process.Kill)
}

func (h driver) Start(of *topology.Server, empty bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s := h.of(of)
	restart := func() error { return s.process.Restart(ctx, empty) }
	if lonely, ok := s.process.(SoloStarter); ok && !h.top.Together(of.Node) {
		restart = func() error { return lonely.RestartAlone(ctx) }
	}
	if err := h.ask(restart); err != nil {
		return fmt.Errorf("restarting %s: %w", s.Name, err)
	}
	s.started()
	return s.join()
}

func (h driver) Stop(of *topology.Server) error {
	s := h.of(of)
	return h.ask(s.process.Pause)
}

func (h driver) Continue(of *topology.Server) error {
	s := h.of(of)
	if err := h.ask(s.process.Resume); err != nil {
		return err
	}
	s.resumed = time.Now()
	h.expireLate(s)
	h.open(s)
	return nil
}

// Elect returns the replica that has received the most, or waits until the sentinels have promoted
// one.
func (h driver) Elect(n *topology.Node, among []*topology.Server) (best *topology.Server, err error) {
	if h.cfg.Sentinels > 0 {
		for _, s := range among { // bytes in transit would arrive meanwhile
			link := h.of(s).link
			link.Reset()
			link.Stop()
			h.of(s).shape.Stopped = true
		}
		h.lateness.cease(n.Name, h.doing, time.Since(h.since))
		// The sentinels' time from now on is no lateness, unless leases may expire before they are
		// done.
		defer func(begun time.Time) { h.promoted(time.Since(begun)) }(time.Now())
		return h.awaitPromotion(among)
	}
	var furthest int64 = -1
	for _, s := range among {
		is, err := h.of(s).progress()
		if err != nil {
			return nil, err
		}
		if is.Has > furthest {
			best, furthest = s, is.Has
		}
	}
	if best == nil {
		return nil, fmt.Errorf("none of the replicas of %s says how far it got", n.Name)
	}
	return best, nil
}

func (h driver) Promote(of *topology.Server) error {
	if h.cfg.Sentinels > 0 {
		return nil
	}
	s := h.of(of)
	// Bytes in transit are lost from now on, however long the promotion takes, and the replica need
	// not request them again.
	s.link.Reset()
	s.link.Stop()
	s.shape.Stopped = true
	h.lateness.cease(of.Node.Name, h.doing, time.Since(h.since))
	return h.ask(func() error { return s.replicate("promoting", Replica.Promote) })
}

// Follow makes a replica follow its leader through its link, also after a change by sentinels,
// which don't use the links.
func (h driver) Follow(of *topology.Server) error {
	s := h.of(of)
	return s.join()
}

func (h driver) Shape(of *topology.Server) error { return h.of(of).reshape() }

func (h driver) SetClock(of *topology.Server, _ topology.Clock) error { return h.of(of).setClock() }

// LimitMemory needs no policy: Redis evicts nothing by default, so a limit of one byte is enough.
func (h driver) LimitMemory(s *topology.Server) error {
	limit := "0" // unlimited
	if s.Full {
		limit = "1"
	}
	return h.Operate(s, "", "CONFIG", "SET", "maxmemory", limit)
}

func (h driver) Operate(of *topology.Server, cause checker.Cause, words ...string) error {
	s := h.of(of)
	list := make([]any, len(words))
	for i, word := range words {
		list[i] = word
	}
	if _, err := s.operate(list...); err != nil {
		return err
	}
	if cause != "" {
		h.observe(s, cause, "", nil)
	}
	return nil
}

// expireLate records the expiry of a key whose time came while the server was stopped.
func (w *World) expireLate(s *server) {
	if at := faults.Expiry(s.keys); at != 0 && w.Now() >= at {
		w.expire(s)
	}
}
