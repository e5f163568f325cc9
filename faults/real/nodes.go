package real

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real/proxy"
)

// node is an independent Redis: a primary and its replicas.
type node struct {
	name    string
	world   *World
	listen  string // the address at which its replicas' links listen
	servers []*server
	primary *server
	// rival is a second server that thinks it is the primary; split names
	// the clients that are led to it.
	rival *server
	split map[string]bool
}

// startNodes starts all servers.
func (w *World) startNodes(ctx context.Context) error {
	ends := make(chan error, w.cfg.Nodes)
	for i := range w.cfg.Nodes {
		n := &node{name: faults.NodeName(i), world: w, split: map[string]bool{}}
		w.nodes = append(w.nodes, n)
		go func() { ends <- n.start(ctx) }()
	}
	var errs []error
	for range w.cfg.Nodes {
		errs = append(errs, <-ends)
	}
	if err := errors.Join(errs...); err != nil {
		return first(err)
	}
	if w.cfg.Sentinels > 0 {
		return w.startSentinels(ctx)
	}
	return nil
}

// first returns the first of joined errors: if several servers can't be
// started it is for one reason.
func first(err error) error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return joined.Unwrap()[0]
	}
	return err
}

// start starts a node's primary and then its replicas.
func (n *node) start(ctx context.Context) error {
	w := n.world
	if err := n.findGateway(ctx); err != nil {
		return err
	}
	for i := range 1 + w.cfg.Replicas {
		s := &server{name: fmt.Sprintf("%s/%d", n.name, i), node: n, rate: 1, since: time.Now()}
		n.servers = append(n.servers, s)
		spec := ServerSpec{Name: fmt.Sprintf("%s-%d", n.name, i), Node: n.name, Password: w.password, Clock: w.cfg.Clock}
		if i == 0 {
			n.primary = s
		} else {
			var err error
			if s.link, err = w.proxies.OpenAt(n.listen, spec.Name+" replication", n.primary.addr, nil); err != nil {
				return fmt.Errorf("real: %s: %w", s.name, err)
			}
			spec.ReplicaOf = s.link.Addr()
		}
		process, err := w.cfg.Host.Start(ctx, spec)
		if err != nil {
			return fmt.Errorf("real: starting %s: %w", s.name, err)
		}
		s.process = process
		s.came()
		if err := s.near(); err != nil {
			return err
		}
	}
	return n.inStep()
}

// findGateway finds out where its servers' links to one another must listen.
func (n *node) findGateway(ctx context.Context) error {
	n.listen = proxy.Loopback
	host, ok := n.world.cfg.Host.(GatewayHost)
	if !ok || n.world.cfg.Replicas == 0 {
		return nil
	}
	var err error
	if n.listen, err = host.Gateway(ctx, n.name); err != nil {
		return fmt.Errorf("real: the links between the servers of %s: %w", n.name, err)
	}
	return nil
}

// await looks again and again until something of the servers' own doing has
// happened.
func (n *node) await(what string, happened func() (bool, error)) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		done, err := happened()
		switch {
		case err != nil:
			return err
		case done:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("real: waited %v in vain for %s", patience, what)
		}
	}
}

// serverFor returns the server that a client is led to.
func (n *node) serverFor(client string) *server {
	if n.split[client] {
		return n.rival
	}
	return n.primary
}

// lead leads every client to the server that it belongs to now. Connections to
// another are reset.
func (n *node) lead() error {
	var errs []error
	for on, wire := range n.world.links {
		if on.node == n.name {
			errs = append(errs, wire.lead(n.serverFor(on.client)))
		}
	}
	return errors.Join(errs...)
}

// restart brings back a server of the node that crashed: as its primary, or as
// a replica of whoever took its place.
func (n *node) restart(ctx context.Context, empty bool) error {
	down := slices.IndexFunc(n.servers, func(s *server) bool { return !s.up })
	if down < 0 {
		return nil
	}
	s := n.servers[down]
	if !n.primary.up {
		s = n.primary
	}
	if s != n.primary {
		addr, err := s.replicationLink(n.primary)
		if err != nil {
			return err
		}
		if err := s.ask(func() error { return s.process.Restart(ctx, empty, addr) }); err != nil {
			return fmt.Errorf("real: restarting %s: %w", s.name, err)
		}
		s.came()
		err = n.inStep()
		n.world.observe(s, checker.ByReplication, "", nil)
		return err
	}
	if err := s.ask(func() error { return s.process.Restart(ctx, empty, "") }); err != nil {
		return fmt.Errorf("real: restarting %s: %w", s.name, err)
	}
	s.came()
	var errs []error
	for _, other := range n.replicas() {
		errs = append(errs, other.follow(s))
	}
	n.world.observe(s, checker.ByRestart, "", nil)
	return errors.Join(append(errs, n.lead(), n.inStep())...)
}
