package topology

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
)

// find returns the node of that name, or the node and server if name is the name of a server.
func (t *Topology) find(f faults.Fault, name string) (*Node, *Server, error) {
	if name == faults.Quorum && t.cfg.Quorum != "" {
		name = t.cfg.Quorum
	}
	name = faults.ResolveNodes([]string{name}, t.cfg.Nodes)[0]
	for _, n := range t.Nodes {
		if n.Name == name {
			return n, nil, nil
		}
		for _, s := range n.Servers {
			if s.Name == name {
				return n, s, nil
			}
		}
	}
	if node, _, found := strings.Cut(name, "/"); found {
		return nil, nil, impossible(f, "%s has %d servers, from %s/0 on: replicas in the settings says how many more", node, 1+t.cfg.Replicas, node)
	}
	return nil, nil, impossible(f, "there is no such node among %d", t.cfg.Nodes)
}

// applyToNode applies a fault of a node, or of a server by its name.
func (t *Topology) applyToNode(f faults.Fault, name string) error {
	n, s, err := t.find(f, name)
	if err != nil {
		return err
	}
	named := s != nil
	if !named {
		s = n.Primary
	}
	do, err := t.plan(f, n, s, named)
	if err != nil {
		return err
	}
	t.driver.Settle(s)
	t.record(f, "", n.Name)
	if err := do(); err != nil {
		return fmt.Errorf("%q: %w", f, err)
	}
	return nil
}

// plan returns a function that applies the fault to the server or its node, or an error if the
// fault is impossible now.
func (t *Topology) plan(f faults.Fault, n *Node, s *Server, named bool) (func() error, error) {
	switch f := f.(type) {
	case faults.CrashNode:
		return func() error { return t.kill(s) }, nil
	case faults.RestartNode:
		if !named {
			s = n.down()
		}
		return func() error { return t.restart(s, f.Empty) }, nil
	case faults.PauseNode:
		if !s.Up {
			return nil, impossible(f, "%s is down, and has no process to stop: restart it first", s.Name)
		}
		return func() error { return t.pause(s) }, nil
	case faults.ResumeNode:
		return func() error { return t.resume(s) }, nil
	case faults.Full:
		return func() error { return t.setFull(s, !f.Off) }, s.requireResponsive(f)
	case faults.NodeClock:
		return func() error { return t.setClock(s, s.Clock.moved(f.By.Of(t.cfg.TTL))) }, s.requireResponsive(f)
	case faults.NodeDrift:
		if !(f.Rate > 0) || f.Rate > faults.MaxRate {
			return nil, impossible(f, "a clock runs at a rate above 0 and up to %d", faults.MaxRate)
		}
		return func() error { return t.setClock(s, s.Clock.running(f.Rate, time.Now())) }, s.requireResponsive(f)
	}
	if named {
		return nil, impossible(f, "%s is one server, and this fault is of a whole node: name %s", s.Name, n.Name)
	}
	switch f := f.(type) {
	case faults.Failover, faults.Split:
		if split, ok := f.(faults.Split); ok && n.Rival != nil {
			return func() error { return t.divide(n, split.Clients) }, nil
		}
		switch {
		case len(n.candidates()) > 0:
		case t.cfg.Replicas == 0:
			return nil, impossible(f, "%s has no replica that could be promoted: declare some in the script, as replicas 1", n.Name)
		default:
			return nil, impossible(f, "no replica of %s runs that could be promoted: restart or resume one first, or declare more replicas", n.Name)
		}
		if split, ok := f.(faults.Split); ok {
			return func() error { return errors.Join(t.split(n), t.divide(n, split.Clients)) }, nil
		}
		return func() error { return t.failover(n) }, nil
	case faults.Join:
		if n.Rival == nil {
			return nil, impossible(f, "%s is not split", n.Name)
		}
		return func() error { return t.join(n) }, nil
	case faults.Flush:
		return func() error { return t.driver.Operate(s, checker.ByFlush, "FLUSHALL") }, s.requireResponsive(f)
	case faults.Evict:
		return func() error { return t.driver.Operate(s, checker.ByEviction, "DEL", t.cfg.Key) }, s.requireResponsive(f)
	case faults.ScriptFlush:
		return func() error { return t.driver.Operate(s, "", "SCRIPT", "FLUSH") }, s.requireResponsive(f)
	case faults.Replication:
		return func() error { return t.replicate(f, s) }, nil
	}
	return nil, fmt.Errorf("%q: %w", f, faults.ErrUnsupported)
}

// requireResponsive returns an error if the server is down or stopped and so cannot execute an
// operator's command.
func (s *Server) requireResponsive(f faults.Fault) error {
	switch {
	case !s.Up:
		return impossible(f, "%s is down: restart it first", s.Name)
	case s.Paused:
		return impossible(f, "%s is stopped: resume it first", s.Name)
	}
	return nil
}

// down returns the server that restarts when its node does; nil if no server is down. The server is
// the primary if it is down, otherwise the first server that is down.
func (n *Node) down() *Server {
	if !n.Primary.Up {
		return n.Primary
	}
	for _, s := range n.Servers {
		if !s.Up {
			return s
		}
	}
	return nil
}

func (t *Topology) kill(s *Server) error {
	if !s.Up {
		return nil
	}
	s.Up, s.Paused, s.late = false, false, false
	return t.driver.Kill(s)
}

// restart starts a server again in its previous role. A primary whose place another server took
// restarts as a replica.
func (t *Topology) restart(s *Server, empty bool) error {
	if s == nil || s.Up {
		return nil
	}
	s.Up, s.Full = true, false
	err := t.driver.Start(s, empty)
	if err != nil {
		s.Up = false
		return err
	}
	cause := checker.ByRestart
	if s.Leader != nil {
		cause = checker.ByReplication
	}
	t.driver.Observe(s, cause)
	return errors.Join(t.followAll(s), t.driver.Lead(s.Node))
}

func (t *Topology) pause(s *Server) error {
	if s.Paused {
		return nil
	}
	s.Paused = true
	return t.driver.Stop(s)
}

func (t *Topology) resume(s *Server) error {
	if !s.Paused {
		return nil
	}
	s.Paused = false
	err := t.driver.Continue(s)
	if s.late {
		err = errors.Join(err, t.follow(s))
	}
	return err
}

// setFull sets whether a server denies commands that could use more memory.
func (t *Topology) setFull(s *Server, full bool) error {
	s.Full = full
	return t.driver.LimitMemory(s)
}

func (t *Topology) setClock(s *Server, to Clock) error {
	was := s.Clock
	s.Clock = to
	if err := t.driver.SetClock(s, was); err != nil {
		return err
	}
	t.driver.Observe(s, checker.ByClock)
	return nil
}

// follow makes a server follow its leader: at once, or after it resumes or restarts.
func (t *Topology) follow(s *Server) error {
	if s.late = s.Paused; !s.Answers() {
		return nil // a process that is not up yet learns its leader when it starts
	}
	return t.driver.Follow(s)
}

func (t *Topology) followAll(leader *Server) error {
	var errs []error
	for _, s := range leader.Followers() {
		errs = append(errs, t.follow(s))
	}
	return errors.Join(errs...)
}

// failover ends the primary and promotes the most advanced replica, with the data that it has then.
// If an external system promotes, failover ends the primary first and waits for the promotion.
func (t *Topology) failover(n *Node) error {
	old := n.Primary
	if t.cfg.Promoted {
		if err := t.kill(old); err != nil {
			return err
		}
	}
	next, err := t.driver.Elect(n, n.candidates())
	if err != nil {
		return err
	}
	if err := t.promote(next); err != nil {
		return err
	}
	// Kill the old primary only now: data that it had sent would otherwise still arrive.
	return errors.Join(t.kill(old), t.succeed(n, next))
}

// promote makes a replica a primary with an unrestricted stream.
func (t *Topology) promote(s *Server) error {
	s.Leader, s.Stream, s.late = nil, Stream{}, false
	return t.driver.Promote(s)
}

// succeed makes a server the node's primary, which all other servers except a rival follow.
func (t *Topology) succeed(n *Node, next *Server) error {
	n.Primary = next
	for _, s := range n.Servers {
		if s != next && s != n.Rival {
			s.Leader, s.Stream = next, Stream{}
		}
	}
	t.driver.Observe(next, checker.ByFailover)
	return errors.Join(t.followAll(next), t.driver.Lead(n))
}

// split promotes a replica to a second primary.
func (t *Topology) split(n *Node) (err error) {
	next, err := t.driver.Elect(n, n.candidates())
	if err != nil {
		return err
	}
	n.Rival = next
	err = t.promote(next)
	t.driver.Observe(next, checker.ByReplication) // its initial data
	return err
}

// divide routes clients to the rival.
func (t *Topology) divide(n *Node, clients []string) error {
	if n.Rival == nil {
		return nil // the election of the rival failed
	}
	for _, name := range clients {
		n.split[name] = true
	}
	return t.driver.Lead(n)
}

// join ends a split: data that only the old primary had is lost.
func (t *Topology) join(n *Node) error {
	next := n.Rival
	n.Rival = nil
	clear(n.split)
	return t.succeed(n, next)
}

// replicate changes a primary's stream.
func (t *Topology) replicate(f faults.Replication, s *Server) error {
	was := s.Stream
	s.Stream = was.with(f, t.cfg.TTL)
	// The followers must reconnect to get the data that was lost.
	anew := f.Mode == faults.ReplicationReset || was.Timeout > 0 && s.Stream.Timeout == 0
	var errs []error
	for _, follower := range s.Followers() {
		if !follower.Up || follower.late {
			continue // the follower gets the stream's settings when it connects
		}
		errs = append(errs, t.driver.Shape(follower))
		if anew {
			errs = append(errs, t.follow(follower))
		}
	}
	return errors.Join(errs...)
}
