package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/faults/real/daemon"
	"github.com/lockfault/lockfault/internal/ports"
	"github.com/lockfault/lockfault/internal/proc"
)

// user is the only user of a cluster. etcd requires a user with this name for authentication.
const user = "root"

// A server is an etcd process, which may have ended. It is safe for concurrent use.
type server struct {
	*daemon.Member
	host *Host
	eye  daemon.Lazy[*clientv3.Client] // connection for inspections of the lock
}

var (
	_ real.ManagedServer    = (*server)(nil)
	_ real.SessionInspector = (*server)(nil)
)

// withoutData is the reason why a member can't be started again without its data.
const withoutData = "a member without its data is none of the cluster"

// start starts the member for the first time.
func (s *server) start(ctx context.Context) error {
	if err := s.Daemon.Start(ctx); err != nil || s.Number != 1 {
		return err
	}
	if err := s.lead(ctx); err != nil {
		return err
	}
	return s.askForPasswords(ctx)
}

// lead makes the member the leader, so that scripts can rely on n1 as the leader.
func (s *server) lead(ctx context.Context) error {
	own, err := dial(ctx, s.Addr(), real.Login{})
	if err != nil {
		return err
	}
	defer own.Close()
	for {
		is, err := own.Status(ctx, s.Addr())
		if err != nil {
			return err
		}
		if is.Header.MemberId == is.Leader {
			return nil
		}
		for _, other := range s.host.Members() {
			if other != s.Member {
				moveLeader(ctx, other.Addr(), is.Header.MemberId)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("have it lead: %w", context.Cause(ctx))
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// moveLeader makes a member the leader if the member at an address is the leader, and otherwise
// does nothing.
func moveLeader(ctx context.Context, addr string, to uint64) {
	c, err := dial(ctx, addr, real.Login{})
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = c.MoveLeader(ctx, to) // only the leader can do this
}

// command returns the command of the member's process.
func (s *server) command(port int) (*exec.Cmd, error) {
	name := "n" + strconv.Itoa(s.Number)
	at, peer := "http://"+ports.Address(port), s.host.peers[s.Number-1]
	cmd := exec.Command(s.host.options.Binary,
		"--name", name, "--data-dir", filepath.Join(s.Dir(), "data"),
		"--listen-client-urls", at, "--advertise-client-urls", at,
		"--listen-peer-urls", "http://"+ports.Address(peer.port), "--initial-advertise-peer-urls", "http://"+ports.Address(peer.way),
		"--initial-cluster", s.host.cluster(), "--initial-cluster-token", s.host.token, "--initial-cluster-state", "new",
		"--heartbeat-interval", strconv.Itoa(int(heartbeat.Milliseconds())), "--election-timeout", strconv.Itoa(int(election.Milliseconds())),
		"--auth-token", s.host.tokens, "--bcrypt-cost", cheapest, "--log-level", "warn",
	)
	// Versions before 3.5 have no flag for this variable, and log that they don't recognize it.
	cmd.Env = daemon.Environment([]string{"ETCD_", "GOMAXPROCS=", "GODEBUG="}, "ETCD_UNSAFE_NO_FSYNC=true")
	return cmd, nil
}

// cheapest is the bcrypt cost of a password check; etcd's default, 10, takes 64 times as long.
// etcd's client logs in again before each watch, and the password is random, so a low cost is safe.
const cheapest = "4"

// answers returns nil when the member belongs to a majority with a leader.
func (s *server) answers(ctx context.Context, _ *proc.Proc, _ int) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if !s.healthy(ctx) {
		return errors.New("it is none of a majority that has a leader")
	}
	return nil
}

// healthy reports whether the member can serve a read.
func (s *server) healthy(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Addr()+"/health", nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	var said struct{ Health string }
	return json.NewDecoder(response.Body).Decode(&said) == nil && said.Health == "true"
}

// client keeps no connections open, so that none is left to a member that was killed.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, Proxy: nil}}

// askForPasswords enables authentication in the cluster.
func (s *server) askForPasswords(ctx context.Context) error {
	c, err := dial(ctx, s.Addr(), real.Login{})
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.UserAdd(ctx, user, s.Spec.Password)
	if err == nil {
		_, err = c.RoleAdd(ctx, "root")
	}
	if err == nil {
		_, err = c.UserGrantRole(ctx, user, "root")
	}
	if err == nil {
		_, err = c.AuthEnable(ctx)
	}
	if err != nil {
		return fmt.Errorf("have it ask for a password: %w", err)
	}
	return nil
}
