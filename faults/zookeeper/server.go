package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/faults/real/daemon"
	"github.com/lockfault/lockfault/internal/ports"
	"github.com/lockfault/lockfault/internal/proc"
)

// user is the only user of an ensemble.
const user = "lockfault"

// A server is the process of a member, which may have ended. It is safe for concurrent use.
type server struct {
	*daemon.Member
	host *Host
	once sync.Once             // for the close of host.begun
	eye  daemon.Lazy[*zk.Conn] // session for inspections of the lock
}

var (
	_ real.ManagedServer    = (*server)(nil)
	_ real.SessionInspector = (*server)(nil)
)

// withoutData is the reason why a member can't be started again without its data. ZooKeeper would
// accept the member: without its records it could form, with another member that lagged, a majority
// without an agreed change.
const withoutData = "a member without its data may outvote what was agreed on: the ensemble can't be relied on then"

// start starts the member for the first time.
func (s *server) start(ctx context.Context) error {
	if s.Number != 1 {
		select {
		case <-s.host.begun:
		case <-ctx.Done():
			return fmt.Errorf("wait for n1: %w", context.Cause(ctx))
		}
	}
	if s.Spec.Clock {
		if err := s.OwnClock(ctx); err != nil {
			return err
		}
	}
	if err := s.Daemon.Start(ctx); err != nil || s.Number != 1 {
		return err
	}
	return s.lead(ctx)
}

// lead makes the member the leader, so that scripts can rely on n1 as the leader, and protects the
// ensemble with the password. Among members with the same data, the one with the largest number is
// elected, which is n1, unless two others finished an election before n1 was running. In that case
// lead restarts the current leader, and the remaining members elect n1.
func (s *server) lead(ctx context.Context) error {
	for {
		// A write makes sure that this member has all data. Otherwise the member that joined last
		// may have seen more, namely the beginning of the epoch, and be elected each time.
		err := s.keep(ctx)
		var mode string
		if err == nil {
			mode, err = ask(ctx, s.Addr())
		}
		if mode == "leader" {
			return nil
		}
		for _, other := range s.host.Members() {
			if is, unasked := ask(ctx, other.Addr()); other == s.Member || mode != "follower" || unasked != nil || is != "leader" {
				continue
			}
			if err := errors.Join(other.Kill(), other.Restart(ctx, false)); err != nil {
				return fmt.Errorf("have it lead: %w", err)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("have it lead: %w", errors.Join(context.Cause(ctx), err))
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// command returns the command of the member's process.
func (s *server) command(port int) (*exec.Cmd, error) {
	if err := s.writeConfig(port); err != nil {
		return nil, err
	}
	if s.Number == 1 {
		s.once.Do(func() { close(s.host.begun) })
	}
	return s.host.options.Program.command(s.host.Dir(), s.Dir()), nil
}

// answers returns nil when the member serves: it leads a majority, or has its leader's data.
func (s *server) answers(ctx context.Context, _ *proc.Proc, port int) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	mode, err := ask(ctx, ports.Address(port))
	if err == nil && mode == "" {
		err = errors.New("it is none of a majority that has a leader")
	}
	return err
}

// thrown matches the line of a log that names an exception or its cause.
var thrown = regexp.MustCompile(`(?m)^(?:Caused by: )?([\w.$]+(?:Exception|Error): .*)$`)

// failureReason returns the line of a log that best explains the server's end: the last exception
// or cause. Java's own errors are in the first line.
func failureReason(log string) string {
	if all := thrown.FindAllStringSubmatch(log, -1); len(all) > 0 {
		return all[len(all)-1][1]
	}
	if line, _, _ := strings.Cut(strings.TrimSpace(log), "\n"); !strings.Contains(line, "WARN") {
		return line
	}
	return daemon.LastLine(log)
}

// ask returns the mode of the member at an address: leader, follower, standalone, or empty if it
// has none yet.
func ask(ctx context.Context, addr string) (mode string, err error) {
	told, err := letters(ctx, addr, "srvr")
	_, rest, _ := strings.Cut(told, "\nMode: ")
	mode, _, _ = strings.Cut(rest, "\n")
	return mode, err
}

// letters returns the reply of the member at an address to a four-letter command.
func letters(ctx context.Context, addr, word string) (told string, err error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	text, err := io.ReadAll(conn)
	return string(text), err
}

// keep restricts all nodes to clients with the password. Members refuse clients without any
// password (see writeConfig), but accept every password as that of a user with the given name.
// Therefore keep makes the root and ZooKeeper's own nodes accessible only to this user with this
// password. A client that creates nodes sets their access itself.
//
// keep takes at most 5 s: a member that loses its leader during the greeting may leave a client
// without an answer, and the client would wait for 1 min.
func (s *server) keep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, _, err := zk.Connect([]string{s.Addr()}, 10*time.Second, zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, conn.Close)()
	err = conn.AddAuth("digest", []byte(user+":"+s.Spec.Password))
	for _, path := range []string{"/zookeeper/quota", "/zookeeper", "/"} {
		if err == nil {
			_, err = conn.SetACL(path, zk.DigestACL(zk.PermAll, user, s.Spec.Password), -1)
		}
	}
	if err != nil {
		return fmt.Errorf("have it ask for a password: %w", err)
	}
	return nil
}

// silent is a logger that discards everything.
type silent struct{}

func (silent) Printf(string, ...any) {}
