package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/faults/real/daemon"
	"github.com/lockfault/lockfault/internal/ports"
	"github.com/lockfault/lockfault/internal/rediscli"
)

// How sentinels watch: a primary that is silent for downAfter is down, to those
// that are no part of the first majority lateBy later. If all of three found out
// at once, each might vote for itself, and they would try again after more
// than twice the failover timeout; one who is late votes for another.
//
// A leader has the failover timeout for each step, and so long, too, sentinels bear
// that a replica follows another address than the one that they know its primary by:
// then they have it follow that one, past the links whose faults a world plays. So
// they bear it for failoverTimeout, until the world hurries them.
//
// A sentinel that lost its connection to a server, as all do when the server is
// promoted, tries again once in a PING-PERIOD: downAfter must be well longer,
// or what was just promoted is down. It is slowDownAfter where the period is
// Redis's own, a second.
const (
	downAfter       = 600 * time.Millisecond
	slowDownAfter   = 1500 * time.Millisecond
	lateBy          = 500 * time.Millisecond
	failoverTimeout = 24 * time.Hour
)

// hurry sets what Sentinel's configuration doesn't offer, in milliseconds, by
// SENTINEL DEBUG: how often it asks for INFO, pings, asks other sentinels for
// their opinion and tells the world its own, and how long it does nothing after
// it was not scheduled for two seconds. Five PING-PERIODs must be more than a
// second: a replica whose INFO is older is not promoted, and during a failover
// INFO is asked for once a second whatever INFO-PERIOD says. Redis 6 has
// none of this.
var hurry = []any{"SENTINEL", "DEBUG",
	"INFO-PERIOD", 100, "PING-PERIOD", 250, "ASK-PERIOD", 100, "PUBLISH-PERIOD", 100, "TILT-PERIOD", 1000}

// A sentinel is a process that watches one primary.
type sentinel struct {
	*daemon.Daemon
	host     *Host
	name     string
	password string
	late     time.Duration // by how much longer than others it bears silence
}

func (s *sentinel) client() *redis.SentinelClient {
	return redis.NewSentinelClient(clientOptions(s.Addr(), s.password))
}

// StartSentinels starts sentinels, as [real.SentinelHost] says. They are named
// after the master, with -s1, -s2 ... behind, and agree by majority.
func (h *Host) StartSentinels(ctx context.Context, n int, master, addr, password string) ([]string, error) {
	if err := check(master, password); err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, fmt.Errorf("process: start sentinels of %s: %d of them", master, n)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("process: start sentinels of %s: the primary's address: %w", master, err)
	}
	ctx, leave, err := h.Enter(ctx)
	if err != nil {
		return nil, fmt.Errorf("process: start sentinels of %s: %w", master, err)
	}
	defer leave()

	var all []*sentinel
	quorum := n/2 + 1
	for i := range n {
		var late time.Duration
		if i >= quorum {
			late = lateBy
		}
		s := &sentinel{host: h, name: fmt.Sprintf("%s-s%d", master, i+1), password: password, late: late}
		if s.Daemon, err = h.Add(s.name, s.program(master, host, port, quorum)); err != nil {
			return nil, fmt.Errorf("process: start %s: %w", s.name, err)
		}
		all = append(all, s)
	}
	errs := make([]error, n)
	var starts sync.WaitGroup
	for i, s := range all {
		starts.Go(func() { errs[i] = s.start(ctx, master) })
	}
	starts.Wait()
	var addrs []string
	for i, s := range all {
		if errs[i] != nil {
			return nil, fmt.Errorf("process: start %s: %w", s.name, errs[i])
		}
		addrs = append(addrs, s.Addr())
	}
	if err := agree(ctx, all, master, addr, password); err != nil {
		return nil, fmt.Errorf("process: sentinels of %s: %w", master, err)
	}
	return addrs, nil
}

// program says how it is started.
func (s *sentinel) program(master, host, port string, quorum int) daemon.Program {
	p := program(s.password)
	p.Command = func(own int) (*exec.Cmd, error) {
		var c config
		c.common(ports.Loopback, own, s.password, s.Dir(), s.Log())
		c.set("sentinel", "monitor", master, host, port, quorum)
		c.set("sentinel", "auth-pass", master, s.password)
		c.set("sentinel", "down-after-milliseconds", master, (slowDownAfter + s.late).Milliseconds())
		c.set("sentinel", "failover-timeout", master, failoverTimeout.Milliseconds())
		c.set("sentinel", "parallel-syncs", master, 1)
		file := filepath.Join(s.Dir(), "sentinel.conf") // it writes there, too
		if err := c.write(file); err != nil {
			return nil, err
		}
		cmd := exec.Command(s.host.binary.path, file, "--sentinel")
		cmd.Env = environment()
		return cmd, nil
	}
	return p
}

// start starts it, and has it watch more often where it can.
func (s *sentinel) start(ctx context.Context, master string) error {
	if err := s.Daemon.Start(ctx); err != nil {
		return err
	}
	c := s.client()
	defer c.Close()
	err := c.Process(ctx, redis.NewStatusCmd(ctx, hurry...))
	if isReply(err) {
		return nil // it can't be hurried
	}
	if err != nil {
		return err
	}
	return c.Set(ctx, master, "down-after-milliseconds", strconv.FormatInt((downAfter+s.late).Milliseconds(), 10)).Err()
}

// isReply reports whether the error is the server's own.
func isReply(err error) bool {
	_, ok := err.(redis.Error)
	return ok
}

// agree returns when each sentinel could lead a failover: it sees the primary,
// the others and the primary's replicas.
func agree(ctx context.Context, all []*sentinel, master, addr, password string) error {
	primary := redis.NewClient(clientOptions(addr, password))
	defer primary.Close()
	info, err := rediscli.Info(ctx, primary, "replication")
	if err != nil {
		return fmt.Errorf("ask the primary at %s for its replicas: %w", addr, err)
	}
	replicas, err := strconv.Atoi(info["connected_slaves"])
	if err != nil {
		return fmt.Errorf("ask the primary at %s for its replicas: %w", addr, err)
	}
	for _, s := range all {
		if err := s.sees(ctx, master, len(all)-1, replicas); err != nil {
			return err
		}
	}
	return nil
}

// sees returns when the sentinel sees all that it should.
func (s *sentinel) sees(ctx context.Context, master string, others, replicas int) error {
	c := s.client()
	defer c.Close()
	err := s.Await(ctx, func(ctx context.Context) error {
		missing, err := s.missing(ctx, c, master, others, replicas)
		if err == nil && missing != "" {
			err = errors.New(missing)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return nil
}

// missing says what the sentinel does not see; empty if it sees everything.
func (s *sentinel) missing(ctx context.Context, c *redis.SentinelClient, master string, others, replicas int) (string, error) {
	m, err := c.Master(ctx, master).Result()
	if err != nil {
		return "", err
	}
	if m["flags"] != "master" {
		return "sees the primary as " + m["flags"], nil
	}
	for _, of := range []struct {
		what string
		ask  func(context.Context, string) *redis.MapStringStringSliceCmd
		want int
		as   string
	}{
		{"other sentinels", c.Sentinels, others, "sentinel"},
		{"replicas", c.Replicas, replicas, "slave"},
	} {
		list, err := of.ask(ctx, master).Result()
		if err != nil {
			return "", err
		}
		seen := 0
		for _, peer := range list {
			if peer["flags"] == of.as && (of.as != "slave" || peer["master-link-status"] == "ok") {
				seen++
			}
		}
		if seen < of.want {
			return fmt.Sprintf("sees %d of %d %s", seen, of.want, of.what), nil
		}
	}
	return "", nil
}
