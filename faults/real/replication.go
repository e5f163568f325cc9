package real

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real/proxy"
	"github.com/lockfault/lockfault/faults/topology"
	"github.com/lockfault/lockfault/internal/rediscli"
)

// replication returns a Redis server's INFO about replication: role, offsets, links.
func (s *server) replication() (map[string]string, error) {
	text, err := s.operate("INFO", "replication")
	if err != nil {
		return nil, err
	}
	return rediscli.ParseInfo(fmt.Sprint(text)), nil
}

// replica returns the server as a [Replica], or an error if it can't follow others.
func (s *server) replica() (Replica, error) {
	if s.admin != nil {
		return redisReplica{s.admin}, nil
	}
	if r, ok := s.found.(Replica); ok {
		return r, nil
	}
	return nil, fmt.Errorf("real: %s: %w: it follows nobody", s.Name, faults.ErrUnsupported)
}

// replicate calls do with the server as a [Replica], and adds the server and the action to the
// error.
func (s *server) replicate(what string, do func(Replica, context.Context) error) error {
	r, err := s.replica()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := do(r, ctx); err != nil {
		return fmt.Errorf("real: %s: %s: %w", s.Name, what, err)
	}
	return nil
}

// progress returns how far the server's replication is.
func (s *server) progress() (is Progress, err error) {
	err = s.replicate("asking how far it is", func(r Replica, ctx context.Context) error {
		is, err = r.Progress(ctx)
		return err
	})
	return is, err
}

// attach points the server's replication link at its leader, with the speed of the server's stream.
// Existing connections are reset.
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

// reshape applies the leader's stream settings to the replication link.
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

// join makes a server follow its leader, if it has one. A server with the leader in its
// configuration file would follow it at the next run of its cron: at once or, if loading its data
// took a moment, 1 s later.
func (s *server) join() error {
	if s.Leader == nil {
		return nil
	}
	if err := s.attach(); err != nil {
		return err
	}
	return s.replicate("following "+s.Leader.Name, func(r Replica, ctx context.Context) error { return r.Follow(ctx, s.link.Addr()) })
}

// of returns the server for a server of the topology.
func (w *World) of(s *topology.Server) *server { return w.servers[s.ID] }
