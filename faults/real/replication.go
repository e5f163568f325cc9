package real

import (
	"errors"
	"fmt"
	"net"

	"github.com/lockfault/lockfault/faults/real/proxy"
	"github.com/lockfault/lockfault/faults/topology"
	"github.com/lockfault/lockfault/internal/rediscli"
)

// replication reads a server's view of the replication: role, offsets, links.
func (s *server) replication() (map[string]string, error) { return s.info("replication") }

// linked reports whether a replica has a link to its primary, by its fields of
// that view, and nothing to take over.
func linked(fields map[string]string) bool {
	return fields["master_link_status"] == "up" && fields["master_sync_in_progress"] == "0"
}

// written reports whether everything that a server does reaches its file, by its
// fields of persistence. A replica begins a new one when it has taken over its
// primary's data: until that is complete, what it does is lost if it is killed.
func written(fields map[string]string) bool {
	return fields["aof_rewrite_in_progress"] == "0" && fields["aof_rewrite_scheduled"] == "0"
}

func (s *server) info(section string) (map[string]string, error) {
	text, err := s.operate("INFO", section)
	if err != nil {
		return nil, err
	}
	return rediscli.ParseInfo(fmt.Sprint(text)), nil
}

// attach has the link by which a server follows lead to its leader, as that
// one's stream is. Connections on it are reset.
func (s *server) attach() (err error) {
	leader := s.world.of(s.Leader)
	if s.link == nil {
		s.link, err = s.world.proxies.OpenAt(s.listen, s.Name+" replication", leader.addr, nil)
	} else {
		err = s.link.Redirect(leader.addr)
	}
	if err != nil {
		return fmt.Errorf("the replication of %s: %w", s.Name, err)
	}
	return s.reshape()
}

// reshape has that link as the leader's stream is.
func (s *server) reshape() error {
	was, is := s.shape, s.Leader.Stream
	s.shape = is
	var errs []error
	if was.Stopped && !is.Stopped {
		s.link.Start()
	}
	if is.Road() != was.Road() {
		errs = append(errs, s.world.slow(s.link, proxy.Down, is.Road(), topology.Link{Client: s.Name, Node: s.Node.Name}))
	}
	if is.Timeout != was.Timeout {
		errs = append(errs, s.link.Timeout(is.Timeout))
	}
	if is.Stopped && !was.Stopped {
		s.link.Stop()
	}
	return errors.Join(errs...)
}

// join has a server that has just started, as a primary, follow its leader if it
// has one. One whose file told it to would do so when its cron first comes to that:
// at once, or, if reading its data took a moment, a second later.
func (s *server) join() error {
	if s.Leader == nil {
		return nil
	}
	if err := s.attach(); err != nil {
		return err
	}
	return s.replicaOf(s.link.Addr())
}

// connect has the server connect to its leader at once. One that is told what
// it was told before does nothing, and one whose connection broke lets up to a
// second pass before it tries again; so it is told to follow somebody who isn't
// there first. It keeps what it has meanwhile, and asks only for what it missed.
func (s *server) connect() error {
	host, _, err := net.SplitHostPort(s.link.Addr())
	if err != nil {
		return err
	}
	if err := s.replicaOf(net.JoinHostPort(host, "1")); err != nil {
		return err
	}
	// Until it knows that nobody listens there. If it learnt that in one go with
	// the next order, it would take it for news of the next connection, which has
	// the same descriptor, and wait five seconds for what there is to read.
	if _, err := s.operate("PING"); err != nil {
		return err
	}
	return s.replicaOf(s.link.Addr())
}

func (s *server) replicaOf(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	_, err = s.operate("REPLICAOF", host, port)
	return err
}

// of returns the server of the topology's one.
func (w *World) of(s *topology.Server) *server { return w.servers[s.ID] }
