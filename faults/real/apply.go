package real

import (
	"context"
	"fmt"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real/proxy"
)

// Apply implements [faults.World]. A Redis that the user has takes no orders:
// of the faults of nodes, only Evict is possible there.
func (w *World) Apply(f faults.Fault) error {
	w.shut()
	if w.gate.Order(f, w.cfg.TTL) {
		w.fault(f, "", "")
		return nil
	}
	switch f := f.(type) {
	case faults.Pass:
		w.fault(f, "", "")
		w.pass(f)
		return nil
	case faults.Clear:
		w.fault(f, "", "")
		w.gate.Clear(f.Clients)
		return nil
	case faults.Latency:
		w.fault(f, "", "")
		return w.eachLink(f.Clients, f.Nodes, func(l *wire) error {
			return l.link.Latency(proxy.Both, f.Base.Of(w.cfg.TTL), f.Jitter.Of(w.cfg.TTL))
		})
	case faults.Bandwidth:
		w.fault(f, "", "")
		return w.eachLink(f.Clients, f.Nodes, func(l *wire) error {
			return l.link.Bandwidth(proxy.Both, f.Rate.PerSecond(w.cfg.TTL))
		})
	case faults.Partition:
		w.fault(f, "", "")
		return w.eachLink(f.Clients, f.Nodes, func(l *wire) error { l.lose(0); return nil })
	case faults.Timeout:
		w.fault(f, "", "")
		return w.eachLink(f.Clients, f.Nodes, func(l *wire) error { l.lose(f.After.Of(w.cfg.TTL)); return nil })
	case faults.Heal:
		w.fault(f, "", "")
		return w.eachLink(f.Clients, f.Nodes, (*wire).heal)
	}
	if name := faults.ClientOf(f); name != "" {
		return w.applyToClient(f, w.clients[name])
	}
	n := w.node(faults.ResolveNodes([]string{faults.NodeOf(f)}, w.cfg.Nodes)[0])
	if n == nil {
		return fmt.Errorf("real: %q: there is no such node among %d", f, w.cfg.Nodes)
	}
	if err := n.supports(f); err != nil {
		return err
	}
	w.settle(n.primary)
	w.fault(f, "", n.name)
	return w.applyToNode(f, n)
}

func (w *World) applyToNode(f faults.Fault, n *node) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s := n.primary
	switch f := f.(type) {
	case faults.CrashNode:
		return s.crash()
	case faults.RestartNode:
		return n.restart(ctx, f.Empty)
	case faults.PauseNode:
		s.paused = true
		return s.ask(s.process.Pause)
	case faults.ResumeNode:
		if err := s.ask(s.process.Resume); err != nil {
			return err
		}
		s.paused, s.resumed = false, time.Now()
		w.expireLate(s)
		w.open(s)
	case faults.Failover:
		return w.failover(ctx, f, n)
	case faults.Split:
		if n.rival == nil {
			next, err := n.successor()
			if err != nil {
				return err
			}
			if next == nil {
				return fmt.Errorf("real: %q: %s: %w", f, n.name, errNoReplica)
			}
			if err := next.becomePrimary(); err != nil {
				return err
			}
			n.rival = next
			w.observe(next, checker.ByReplication, "", nil) // what it has to begin with
		}
		for _, name := range f.Clients {
			n.split[name] = true
		}
		return n.lead()
	case faults.Join:
		if n.rival == nil {
			return fmt.Errorf("real: %q: %s is not split", f, n.name)
		}
		return n.join()
	case faults.NodeClock:
		return w.moveClock(s, s.offset()+f.By.Of(w.cfg.TTL), s.rate)
	case faults.NodeDrift:
		if !(f.Rate > 0) || f.Rate > faults.MaxRate {
			return fmt.Errorf("real: %q: a clock runs at a rate above 0 and up to %d", f, faults.MaxRate)
		}
		return w.moveClock(s, s.offset(), f.Rate)
	case faults.Flush:
		return w.operate(s, checker.ByFlush, "FLUSHALL")
	case faults.Evict:
		return w.operate(s, checker.ByEviction, "DEL", w.cfg.Key)
	case faults.ScriptFlush:
		return w.operate(s, "", "SCRIPT", "FLUSH")
	case faults.Replication:
		return w.setReplication(n, f)
	default:
		return fmt.Errorf("real: %T: %w", f, faults.ErrUnsupported)
	}
	return nil
}

// expireLate looks at a key whose time came while the server was stopped.
func (w *World) expireLate(s *server) {
	if s.expires != 0 && w.Now() >= s.expires {
		w.expire(s)
	}
}

func (w *World) moveClock(s *server, offset time.Duration, rate float64) error {
	if err := s.setClock(offset, rate); err != nil {
		return err
	}
	w.observe(s, checker.ByClock, "", nil)
	return nil
}

// operate has an operator do something, and records what it did to the key.
func (w *World) operate(s *server, cause checker.Cause, words ...any) error {
	if _, err := s.operate(words...); err != nil {
		return err
	}
	if cause != "" {
		w.observe(s, cause, "", nil)
	}
	return nil
}

// failover crashes the primary; the promotion is the world's doing, or the
// sentinels'.
func (w *World) failover(ctx context.Context, f faults.Fault, n *node) error {
	if len(n.replicas()) == 0 {
		return fmt.Errorf("real: %q: %s: %w", f, n.name, errNoReplica)
	}
	// Nothing comes before the crash: what it is to lose would be on its way.
	if err := n.primary.crash(); err != nil {
		return err
	}
	if w.cfg.Sentinels > 0 {
		return w.awaitPromotion(context.WithoutCancel(ctx), n) // they have a patience of their own
	}
	next, err := n.successor()
	if err != nil {
		return err
	}
	if next == nil {
		return fmt.Errorf("real: %q: %s: none of its replicas says how far it got", f, n.name)
	}
	return n.promote(next)
}
