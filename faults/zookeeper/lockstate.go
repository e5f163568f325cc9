package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockfault/lockfault/faults/real"
)

// errBlind reports that a member can't answer.
var errBlind = errors.New("it is not connected, or has lost its leader")

// Inspect implements [real.LockInspector]. A query is the path below which contenders for the lock
// have their nodes, with $1 for the lock's name. The node with the smallest number holds the lock
// as long as its session lasts, and the node's data is the owner.
func (s *server) Inspect(ctx context.Context, query, name string) (real.LockState, error) {
	at := strings.ReplaceAll(query, "$1", name)
	if !strings.HasPrefix(at, "/") || path.Clean(at) != at {
		return real.LockState{}, fmt.Errorf("%w: %q is no path", real.ErrQuery, at)
	}
	conn, err := s.session()
	if err != nil {
		return real.LockState{}, err
	}
	type answer struct {
		real.LockState
		err error
	}
	done := make(chan answer, 1)
	go func() { // go-zookeeper doesn't support contexts
		seen, err := inspect(conn, at)
		done <- answer{seen, err}
	}()
	select {
	case a := <-done:
		return a.LockState, a.err
	case <-ctx.Done():
		return real.LockState{}, errBlind
	}
}

// inspect reads the nodes below a path, and the data of the first one.
func inspect(conn *zk.Conn, at string) (seen real.LockState, err error) {
	for {
		children, stat, err := conn.Children(at)
		if errors.Is(err, zk.ErrNoNode) {
			seen.Version, err = without(conn, at)
			return seen, err
		}
		if err != nil {
			return seen, err
		}
		children = slices.DeleteFunc(children, func(name string) bool { return at == "/" && name == "zookeeper" }) // ZooKeeper's own node
		seen.Version = stat.Pzxid
		if len(children) == 0 {
			return seen, nil
		}
		first := slices.MinFunc(children, func(a, b string) int { return strings.Compare(sequenceNumber(a), sequenceNumber(b)) })
		data, stat, err := conn.Get(strings.TrimSuffix(at, "/") + "/" + first)
		if errors.Is(err, zk.ErrNoNode) { // it was deleted meanwhile
			continue
		}
		if err != nil {
			return seen, err
		}
		h := real.Holder{Owner: string(data)}
		if stat.EphemeralOwner != 0 {
			h.Ends, h.Bond = real.WithLease, fmt.Sprintf("%#x", stat.EphemeralOwner)
		}
		seen.Holders = []real.Holder{h}
		return seen, nil
	}
}

// without returns the version of a path's absence: that of its nearest existing ancestor, because
// the path may have been the ancestor's last child.
func without(conn *zk.Conn, at string) (int64, error) {
	for {
		at = path.Dir(at)
		there, stat, err := conn.Exists(at)
		if err != nil {
			return 0, err
		}
		if there {
			return stat.Pzxid, nil
		}
	}
}

// Bound implements [real.SessionInspector]. It uses a four-letter command, because the clients'
// protocol has no such request.
func (s *server) Bound(ctx context.Context, bond string) (bool, error) {
	told, err := letters(ctx, s.Addr(), "dump")
	for _, word := range strings.Fields(told) {
		if strings.TrimSuffix(word, ":") == bond {
			return true, err
		}
	}
	return false, err
}

// digits is the number of digits that servers append to the name of a sequential node.
const digits = 10

// sequenceNumber returns the digits in the name of a sequential node.
func sequenceNumber(name string) string { return name[max(0, len(name)-digits):] }

// session returns the session for inspections, or errBlind while it doesn't exist.
func (s *server) session() (*zk.Conn, error) {
	conn, err := s.eye.Get(func() (*zk.Conn, error) {
		conn, _, err := zk.Connect([]string{s.Addr()}, 10*time.Second, zk.WithLogger(silent{}), zk.WithLogInfo(false))
		if err == nil {
			go func() { _ = conn.AddAuth("digest", []byte(user+":"+s.Spec.Password)) }() // the client repeats it on each new connection
		}
		return conn, err
	})
	if err != nil {
		return nil, err
	}
	if conn.State() != zk.StateHasSession {
		return nil, errBlind
	}
	return conn, nil
}

// close closes the session for inspections.
func (s *server) close() error {
	return s.eye.Close(func(conn *zk.Conn) error { conn.Close(); return nil })
}
