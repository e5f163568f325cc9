package real

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

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

// server is one Redis server.
type server struct {
	name     string // n1/0: the first primary of n1
	node     *node
	process  Server
	admin    *redis.Client // the world's own connection, past the gate
	addr     string        // where clients' links lead to
	link     *proxy.Link   // its replication link, if it ever was a replica
	timedOut bool          // that link has a timeout
	up       bool
	paused   bool
	resumed  time.Time  // when it last was no longer
	busy     *message   // the request that it has in hand
	door     []*message // requests that wait for that, or for its process

	// Its clock shows true time plus skew, and skew grows by rate-1 for each
	// unit of time since.
	skew  time.Duration
	rate  float64
	since time.Time

	value   string        // of the lock's key, when last looked at
	expires time.Duration // when it will be gone, at the earliest; 0 means never
	took    time.Duration // by how much later that may be
	moved   bool          // the clock was moved since
	expiry  *timer
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

// came takes note that a server's process is there.
func (s *server) came() {
	s.up, s.paused, s.addr = true, false, s.process.Addr()
	if s.admin != nil {
		_ = s.admin.Close() // it led to the process before this one
	}
	login := s.login()
	s.admin = redis.NewClient(&redis.Options{
		Addr: s.addr, Username: login.Username, Password: login.Password, DB: login.DB, Protocol: 2, DisableIdentity: true, MaxRetries: -1,
		ReadTimeout: patience, PoolSize: 4, ConnMaxIdleTime: -1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// wasPaused reports whether the server was stopped at any time since then.
func (s *server) wasPaused(since time.Time) bool { return s.paused || s.resumed.After(since) }

func (s *server) leave() {
	if s.admin != nil {
		_ = s.admin.Close()
	}
}

// operate executes a command of an operator, not of a client.
func (s *server) operate(words ...any) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	value, err := s.admin.Do(ctx, words...).Result()
	if err != nil {
		err = fmt.Errorf("real: %s: %v: %w", s.name, words, err)
	}
	return value, err
}

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

// crash ends a server's process, and with it every connection to and from it:
// what was on its way is lost.
func (s *server) crash() error {
	s.up, s.paused, s.busy, s.door = false, false, nil, nil
	if s.expiry != nil {
		s.expiry.dead = true
	}
	for _, wire := range s.node.world.links {
		for _, c := range wire.list() {
			if c.server == s {
				c.reset()
			}
		}
	}
	for _, other := range s.node.servers {
		if other.link != nil && other != s && s == s.node.primary {
			other.link.Reset()
			other.link.Stop() // nothing that it sent before comes later
		}
	}
	return s.ask(s.process.Kill)
}

// ask has the host do something to the server's process. Hosts take their time,
// in which leases run; where that is more than a quarter of one, the script
// comes too late.
func (s *server) ask(do func() error) error {
	begun, w := time.Now(), s.node.world
	err := do()
	w.note("host", time.Since(begun)-w.cfg.TTL/4)
	return err
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
// whose handshake broke would let up to a second pass before it tried again:
// it is told to follow anew.
func (s *server) endTimeout() error {
	if !s.timedOut {
		return nil
	}
	s.timedOut = false
	if err := s.link.Timeout(0); err != nil {
		return err
	}
	if _, err := s.operate("REPLICAOF", "NO", "ONE"); err != nil {
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

// offset returns by how much the server's clock is ahead of true time.
func (s *server) offset() time.Duration {
	return s.skew + time.Duration(float64(time.Since(s.since))*(s.rate-1))
}

// setClock sets the server's clock, and returns when the server goes by it.
func (s *server) setClock(offset time.Duration, rate float64) error {
	s.skew, s.rate, s.since = offset, rate, time.Now()
	if err := s.process.SetClock(offset, rate); err != nil || !s.up || s.paused {
		return err
	}
	// Valkey 9.1 asks the system for the time only once a millisecond.
	unsure := slack + time.Duration(float64(time.Since(s.since))*math.Abs(rate-1))
	return s.node.await("the clock of "+s.name+" to be set", func() (bool, error) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		from := time.Now().Add(s.offset() - unsure)
		shown, err := s.admin.Time(ctx).Result()
		if err != nil {
			return false, fmt.Errorf("real: %s: TIME: %w", s.name, err)
		}
		return !shown.Before(from) && !shown.After(time.Now().Add(s.offset()+unsure)), nil
	})
}
