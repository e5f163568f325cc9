package real

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real/proxy"
)

// replication reads a server's view of the replication: role, offsets, links.
func (s *server) replication() (map[string]string, error) {
	value, err := s.operate("INFO", "replication")
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for line := range strings.Lines(fmt.Sprint(value)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}

// replicas returns the servers that follow the primary.
func (n *node) replicas() (list []*server) {
	for _, s := range n.servers {
		if s != n.primary && s != n.rival && s.up {
			list = append(list, s)
		}
	}
	return list
}

// inStep waits until all replicas have what the primary has.
func (n *node) inStep() error {
	followers := n.replicas()
	if len(followers) == 0 {
		return nil
	}
	return n.await(fmt.Sprintf("%d replicas of %s to be in step", len(followers), n.name), func() (bool, error) {
		lead, err := n.primary.replication()
		if err != nil {
			return false, err
		}
		for _, s := range followers {
			fields, err := s.replication()
			if err != nil || fields["master_link_status"] != "up" || fields["master_sync_in_progress"] != "0" ||
				fields["slave_repl_offset"] != lead["master_repl_offset"] {
				return false, err
			}
		}
		return true, nil
	})
}

func (w *World) setReplication(n *node, f faults.Replication) error {
	for _, s := range n.replicas() {
		var err error
		switch f.Mode {
		case faults.ReplicationStop:
			s.link.Stop()
			err = s.endTimeout()
		case faults.ReplicationDelay:
			err = s.link.Latency(proxy.Down, f.Delay.Of(w.cfg.TTL), f.Jitter.Of(w.cfg.TTL))
		case faults.ReplicationBandwidth:
			err = s.link.Bandwidth(proxy.Down, f.Rate.PerSecond(w.cfg.TTL))
		case faults.ReplicationTimeout:
			s.timedOut = true
			s.link.Start()
			err = s.link.Timeout(f.After.Of(w.cfg.TTL))
		case faults.ReplicationReset:
			s.link.Reset()
		case faults.ReplicationStart:
			err = s.endTimeout()
			s.link.Restore()
		}
		if err != nil {
			return fmt.Errorf("real: %q: %w", f, err)
		}
	}
	return nil
}

// successor returns the replica that is promoted when the server fails: the one
// that got furthest, as Sentinel chooses among replicas of one priority.
func (n *node) successor() (best *server, err error) {
	var furthest int64 = -1
	for _, s := range n.replicas() {
		fields, err := s.replication()
		if err != nil {
			return nil, err
		}
		var offset int64
		if _, err := fmt.Sscan(fields["slave_repl_offset"], &offset); err == nil && offset > furthest {
			best, furthest = s, offset
		}
	}
	return best, nil
}

// promote makes a replica the node's primary, and the others its replicas.
func (n *node) promote(next *server) error {
	if err := next.becomePrimary(); err != nil {
		return err
	}
	n.primary = next
	var errs []error
	for _, s := range n.replicas() {
		errs = append(errs, s.follow(next))
	}
	n.world.observe(next, checker.ByFailover, "", nil)
	return errors.Join(append(errs, n.lead())...)
}

func (s *server) becomePrimary() error {
	if s.link != nil {
		s.link.Reset()
	}
	_, err := s.operate("REPLICAOF", "NO", "ONE")
	return err
}

// follow makes a running server a replica of another.
func (s *server) follow(primary *server) error {
	if _, err := s.replicationLink(primary); err != nil {
		return err
	}
	return s.followLink()
}

// followLink makes it a replica of whoever its replication link leads to.
func (s *server) followLink() error {
	host, port, _ := strings.Cut(s.link.Addr(), ":")
	_, err := s.operate("REPLICAOF", host, port)
	return err
}

// endTimeout ends the timeout of its replication link, if there is one. A replica
// whose handshake broke would let up to a second pass before it tried again, so
// it is told to follow somebody else, who isn't there, and then its primary. It
// keeps what it has meanwhile, and asks only for what it missed.
func (s *server) endTimeout() error {
	if !s.timedOut {
		return nil
	}
	s.timedOut = false
	if err := s.link.Timeout(0); err != nil {
		return err
	}
	host, _, _ := strings.Cut(s.link.Addr(), ":")
	if _, err := s.operate("REPLICAOF", host, "1"); err != nil {
		return err
	}
	return s.followLink()
}

// replicationLink leads the server's replication link to a primary and returns
// its address.
func (s *server) replicationLink(primary *server) (string, error) {
	if s.link == nil {
		var err error
		s.link, err = s.node.world.proxies.OpenAt(s.node.listen, s.name+" replication", primary.addr, nil)
		if err != nil {
			return "", fmt.Errorf("real: %s: %w", s.name, err)
		}
		return s.link.Addr(), nil
	}
	s.timedOut = false
	s.link.Restore()
	if err := s.link.Redirect(primary.addr); err != nil {
		return "", fmt.Errorf("real: %s: %w", s.name, err)
	}
	return s.link.Addr(), nil
}

// join ends a split: what only the old primary had is lost.
func (n *node) join() error {
	next, old := n.rival, n.primary
	n.rival = nil
	clear(n.split)
	n.primary = next
	if err := old.follow(next); err != nil {
		return err
	}
	var errs []error
	for _, s := range n.replicas() {
		if s != old {
			errs = append(errs, s.follow(next))
		}
	}
	n.world.observe(next, checker.ByFailover, "", nil)
	errs = append(errs, n.lead(), n.inStep())
	n.world.observe(old, checker.ByReplication, "", nil)
	return errors.Join(errs...)
}
