package real

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/lockfault/lockfault/faults/real/proxy"
	"github.com/lockfault/lockfault/faults/topology"
)

// startServers starts all servers, with different nodes in parallel.
func (w *World) startServers(ctx context.Context) error {
	for _, n := range w.top.Nodes {
		for _, s := range n.Servers {
			w.servers = append(w.servers, &server{Server: s, world: w})
		}
	}
	ends := make(chan error, w.cfg.Nodes)
	for _, n := range w.top.Nodes {
		go func() { ends <- w.startNode(ctx, n) }()
	}
	var failed error // the first error: servers that fail together usually fail for the same reason
	for range w.top.Nodes {
		failed = cmp.Or(failed, <-ends)
	}
	if failed != nil {
		return failed
	}
	if w.cfg.Sentinels > 0 {
		return w.startSentinels(ctx)
	}
	return nil
}

// startNode starts a node's primary and then its replicas.
func (w *World) startNode(ctx context.Context, n *topology.Node) error {
	listen, err := w.gateway(ctx, n)
	if err != nil {
		return err
	}
	for i, of := range n.Servers {
		s := w.of(of)
		s.listen = listen
		spec := ServerSpec{Name: fmt.Sprintf("%s-%d", n.Name, i), Node: n.Name, Password: w.password, Replica: i > 0, Clock: w.cfg.Clock}
		found, err := w.cfg.Host.Start(ctx, spec)
		if err != nil {
			return fmt.Errorf("real: starting %s: %w", s.Name, err)
		}
		s.is(found)
		s.started()
		if err := s.near(); err != nil {
			return err
		}
		if err := s.join(); err != nil {
			return err
		}
	}
	return w.inStep(n)
}

// gateway returns the IP address on which the links between a node's servers must listen.
func (w *World) gateway(ctx context.Context, n *topology.Node) (string, error) {
	host, ok := w.cfg.Host.(GatewayHost)
	if !ok || w.cfg.Replicas == 0 {
		return proxy.Loopback, nil
	}
	listen, err := host.Gateway(ctx, n.Name)
	if err != nil {
		return "", fmt.Errorf("real: the links between the servers of %s: %w", n.Name, err)
	}
	return listen, nil
}

// inStep waits until all replicas of a node have persisted all data of its primary.
func (w *World) inStep(n *topology.Node) error {
	followers := n.Primary.Followers()
	if len(followers) == 0 {
		return nil
	}
	return await(fmt.Sprintf("%d replicas of %s to be in step", len(followers), n.Name), func() (bool, error) {
		lead, err := w.of(n.Primary).progress()
		if err != nil {
			return false, err
		}
		for _, f := range followers {
			is, err := w.of(f).progress()
			if err != nil || !is.Linked || is.Has != lead.Has || !is.Persistent {
				return false, err
			}
		}
		return true, nil
	})
}

// await polls a condition until it is true or patience has passed.
func await(what string, happened func() (bool, error)) error {
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
