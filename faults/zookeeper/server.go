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

// user is the one user of an ensemble.
const user = "lockfault"

// A server is a process of a member, or where one was. Safe for concurrent use.
type server struct {
	*daemon.Member
	host *Host
	once sync.Once             // for saying that n1 begins
	eye  daemon.Lazy[*zk.Conn] // by which it is asked whose a lock is
}

var (
	_ real.ManagedServer    = (*server)(nil)
	_ real.SessionInspector = (*server)(nil)
)

// withoutData is why a member isn't started again without its data. ZooKeeper would take it: it has
// forgotten what it agreed to, and with another that was behind it can make a majority that
// never heard of it.
const withoutData = "a member without its data may outvote what was agreed on: the ensemble can't be relied on then"

// start starts it for the first time.
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

// lead makes it the leader, so that scripts know who that is, and has the ensemble ask for the password. Of members that
// have seen the same, the one with the largest number is elected, and that is this one; unless two others were done
// before it was there. Then the leader is started again, and who is left elects.
func (s *server) lead(ctx context.Context) error {
	for {
		// What it has written itself it has seen, too. Without that whoever has joined last may have seen more, which is
		// how the epoch began, and be elected each time.
		err := s.keepSoon(ctx)
		var mode string
		if err == nil {
			mode, err = ask(ctx, s.Addr())
		}
		if mode == "leader" {
			return nil
		}
		for _, other := range s.host.all() {
			if is, unasked := ask(ctx, other.Addr()); other == s || mode != "follower" || unasked != nil || is != "leader" {
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

// command is how its process is started.
func (s *server) command(port int) (*exec.Cmd, error) {
	if err := s.writeConfig(port); err != nil {
		return nil, err
	}
	if s.Number == 1 {
		s.once.Do(func() { close(s.host.begun) })
	}
	return s.host.options.Program.command(s.host.Dir(), s.Dir()), nil
}

// answers returns nil when the member serves: it leads a majority, or has what its leader has.
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

// failureReason returns the line of a log that says best why the server ended: what was thrown last, at first. Java
// itself says it in its first line.
func failureReason(log string) string {
	if all := thrown.FindAllStringSubmatch(log, -1); len(all) > 0 {
		return all[len(all)-1][1]
	}
	if line, _, _ := strings.Cut(strings.TrimSpace(log), "\n"); !strings.Contains(line, "WARN") {
		return line
	}
	return daemon.LastLine(log)
}

// ask asks the member at that address what it is: leader, follower, standalone, or nothing of these yet.
func ask(ctx context.Context, addr string) (mode string, err error) {
	told, err := letters(ctx, addr, "srvr")
	_, rest, _ := strings.Cut(told, "\nMode: ")
	mode, _, _ = strings.Cut(rest, "\n")
	return mode, err
}

// letters returns what the member at that address answers to one of ZooKeeper's commands of four letters.
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

// keep keeps everybody out who hasn't said the password. Members refuse who says none at all (see
// writeConfig), but take any that is said for that of a user of that name; so the places where locks are, and what else
// is there, are this user's, and of this password. What somebody makes is his own, if he says so.
func (s *server) keep(ctx context.Context) error {
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

// keepSoon is keep for some seconds at most: a member that loses its leader while it is greeted may leave a client without an
// answer, for which that one would wait for a minute.
func (s *server) keepSoon(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return s.keep(ctx)
}

// silent is a logger that says nothing.
type silent struct{}

func (silent) Printf(string, ...any) {}
