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

// Timing of sentinels. A primary that is silent for downAfter counts as down; sentinels beyond the
// first majority see that lateBy later. If all of three saw it at once, each might vote for itself,
// and they would try again only after more than twice the failover timeout; a sentinel that is late
// votes for another.
//
// The leader has the failover timeout for each step. The timeout is also how long sentinels
// tolerate that a replica follows another address than the one that they have for its primary;
// after that they make the replica follow that address, past the links into which a world injects
// faults. The timeout is therefore failoverTimeout until the world shortens it.
//
// A sentinel that lost its connection to a server, which happens to all when the server is
// promoted, reconnects once per PING-PERIOD. downAfter must be clearly longer, otherwise a server
// that was just promoted counts as down. With Redis's default period of 1 s it is slowDownAfter.
const (
	downAfter       = 600 * time.Millisecond
	slowDownAfter   = 1500 * time.Millisecond
	lateBy          = 500 * time.Millisecond
	failoverTimeout = 24 * time.Hour
)

// hurry sets periods that Sentinel's configuration doesn't offer, in milliseconds, by SENTINEL
// DEBUG. The periods are how often a sentinel asks for INFO, pings, asks other sentinels for their
// opinion and publishes its own, and how long it does nothing after it was not scheduled for 2 s.
// Five PING-PERIODs must be more than 1 s: a replica whose INFO is older is not promoted, and
// during a failover INFO is requested once per second whatever INFO-PERIOD is. Redis 6 doesn't
// support these settings.
var hurry = []any{"SENTINEL", "DEBUG",
	"INFO-PERIOD", 100, "PING-PERIOD", 250, "ASK-PERIOD", 100, "PUBLISH-PERIOD", 100, "TILT-PERIOD", 1000}

// A sentinel is a process that monitors one primary.
type sentinel struct {
	*daemon.Daemon
	host     *Host
	name     string
	password string
	late     time.Duration // how much longer than others it tolerates silence
}

func (s *sentinel) client() *redis.SentinelClient {
	return redis.NewSentinelClient(clientOptions(s.Addr(), s.password))
}

// StartSentinels starts sentinels, as [real.SentinelHost] specifies. Their names are the master's
// name with -s1, -s2 and so on appended. Their quorum is a majority.
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

// program returns the program of a sentinel.
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
		file := filepath.Join(s.Dir(), "sentinel.conf") // the sentinel writes to this file, too
		if err := c.write(file); err != nil {
			return nil, err
		}
		cmd := exec.Command(s.host.binary.path, file, "--sentinel")
		cmd.Env = environment()
		return cmd, nil
	}
	return p
}

// start starts the sentinel, and shortens its periods if it supports that.
func (s *sentinel) start(ctx context.Context, master string) error {
	if err := s.Daemon.Start(ctx); err != nil {
		return err
	}
	c := s.client()
	defer c.Close()
	err := c.Process(ctx, redis.NewStatusCmd(ctx, hurry...))
	if isReply(err) {
		return nil // the version doesn't support other periods
	}
	if err != nil {
		return err
	}
	return c.Set(ctx, master, "down-after-milliseconds", strconv.FormatInt((downAfter+s.late).Milliseconds(), 10)).Err()
}

// isReply reports whether the error is a server's reply.
func isReply(err error) bool {
	_, ok := err.(redis.Error)
	return ok
}

// agree returns when each sentinel could lead a failover: it sees the primary, the other sentinels
// and the primary's replicas.
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

// sees returns when the sentinel sees all that it should see.
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

// missing describes what the sentinel doesn't see; empty if it sees everything.
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
