package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockfault/lockfault/strategies"
)

// session is a connection with one ZooKeeper session. When the session has expired, the library
// begins another one on the same connection; this type then counts as over, and its user begins a
// new session.
type session struct {
	conn    *zk.Conn
	ready   chan struct{} // closed when the session has logged in
	expired chan struct{} // closed when a server has reported the expiry
	closed  chan struct{} // closed by close
	once    sync.Once
}

// silent is a logger that discards its messages: the library logs every reconnection.
type silent struct{}

func (silent) Printf(string, ...any) {}

// open begins a session without waiting until it is established.
func open(env strategies.Env) (*session, error) {
	s := &session{ready: make(chan struct{}), expired: make(chan struct{}), closed: make(chan struct{})}
	var addrs []string
	for _, server := range env.Servers {
		addrs = append(addrs, server.Addr)
	}
	var once sync.Once
	events := func(e zk.Event) {
		if e.Type == zk.EventSession && e.State == zk.StateExpired {
			once.Do(func() { close(s.expired) })
		}
	}
	var err error
	if s.conn, _, err = zk.Connect(addrs, env.TTL, zk.WithLogger(silent{}), zk.WithLogInfo(false), zk.WithEventCallback(events)); err != nil {
		return nil, fmt.Errorf("zookeeper: %w", err)
	}
	go s.logIn(env.Servers[0].Username + ":" + env.Servers[0].Password)
	return s, nil
}

// logIn sends the password when a server is available. The library sends it again on each new
// connection.
func (s *session) logIn(as string) {
	for {
		err := s.conn.AddAuth("digest", []byte(as))
		select {
		case <-s.closed:
			return
		default:
		}
		if err == nil {
			close(s.ready)
			return
		}
		if !pause(context.Background(), s.closed) {
			return
		}
	}
}

// await waits until the session has logged in.
func (s *session) await(ctx context.Context) error {
	select {
	case <-s.ready:
	case <-s.closed:
		return zk.ErrClosing
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return fmt.Errorf("wait for a server: %w", context.Cause(ctx))
	}
	return nil
}

// over reports whether the session has expired.
func (s *session) over() bool {
	select {
	case <-s.expired:
		return true
	default:
		return false
	}
}

// node is a node in a lock's queue.
type node struct {
	name   string
	zxid   int64 // of its creation
	behind int   // number of nodes before it
}

// node returns the node of this session below the given path. The name is empty if there is none.
func (s *session) node(path string) (node, error) {
	children, _, err := s.conn.Children(path)
	if errors.Is(err, zk.ErrNoNode) {
		return node{}, nil
	}
	if err != nil {
		return node{}, err
	}
	slices.SortFunc(children, func(a, b string) int { return strings.Compare(sequenceNumber(a), sequenceNumber(b)) })
	for i, name := range children {
		ok, stat, err := s.conn.Exists(path + "/" + name)
		if err != nil {
			return node{}, err
		}
		if ok && stat.EphemeralOwner == s.conn.SessionID() {
			return node{name, stat.Czxid, i}, nil
		}
	}
	return node{}, nil
}

// queues returns a channel that is closed when another node is seen before the session's node,
// unless ctx is done first.
func (s *session) queues(ctx context.Context, path string) <-chan struct{} {
	seen := make(chan struct{})
	go func() {
		for pause(ctx, s.closed) {
			if n, err := s.node(path); err == nil && n.behind > 0 {
				close(seen)
				return
			}
		}
	}()
	return seen
}

// sequenceNumber returns the number that a server has appended to a node's name, with a fixed number of
// digits.
func sequenceNumber(name string) string { return name[strings.LastIndex(name, "-")+1:] }

// clear deletes the node of this session below the given path, and reports whether there was one.
// clear blocks until a server has confirmed the deletion, or the session is closed.
func (s *session) clear(path string) (found bool, err error) {
	for {
		// A server other than the one that created the node may not have received it yet.
		if _, err = s.conn.Sync(path); err == nil || errors.Is(err, zk.ErrNoNode) {
			var n node
			if n, err = s.node(path); err == nil && n.name == "" {
				return found, nil
			}
			if err == nil {
				found = true
				if err = s.conn.Delete(path+"/"+n.name, -1); err == nil || errors.Is(err, zk.ErrNoNode) {
					return found, nil
				}
			}
		}
		if !pause(context.Background(), s.closed) {
			return found, err
		}
	}
}

// close ends the session. The returned channel is closed when the request was sent, or could not be
// sent within the library's timeout of some seconds; the session then expires.
func (s *session) close() <-chan struct{} {
	said := make(chan struct{})
	s.once.Do(func() { close(s.closed) })
	go func() {
		defer close(said)
		s.conn.Close()
	}()
	return said
}

// between is the delay between two attempts.
const between = 20 * time.Millisecond

// pause waits between two attempts, and reports whether to make another attempt: false if ctx is
// done or end is closed.
func pause(ctx context.Context, end <-chan struct{}) bool {
	timer := time.NewTimer(between)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	case <-end:
		return false
	}
}
