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

// A session is a connection with one session of ZooKeeper. The library begins another one on the same
// connection when that has expired; by then a session is over here, and whoever has it takes a new one.
type session struct {
	conn    *zk.Conn
	ready   chan struct{} // closed when it has logged in
	expired chan struct{} // closed when a server has said that it is over
	closed  chan struct{} // closed when it was told to end
	once    sync.Once
}

// silent is a logger that says nothing: what the library does to connect again is no news.
type silent struct{}

func (silent) Printf(string, ...any) {}

// open begins a session. It doesn't wait until there is one.
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

// logIn says the password when there is a server to say it to. The library says it again on each new connection.
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

// await returns when the session has logged in.
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

// A node is one in a lock's queue.
type node struct {
	name   string
	zxid   int64 // at which it was made
	behind int   // how many were before it
}

// node returns the node that this session has below the one of that path. One without a name says that it has none.
func (s *session) node(path string) (node, error) {
	children, _, err := s.conn.Children(path)
	if errors.Is(err, zk.ErrNoNode) {
		return node{}, nil
	}
	if err != nil {
		return node{}, err
	}
	slices.SortFunc(children, func(a, b string) int { return strings.Compare(number(a), number(b)) })
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

// queues returns a channel that is closed when the session's node is seen behind another, unless ctx is done before.
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

// number returns the number that a server has put behind a node's name, always in as many digits.
func number(name string) string { return name[strings.LastIndex(name, "-")+1:] }

// clear deletes the node that this session has below the one of that path, and reports whether there was one. It
// blocks until a server has said that it is gone, or the session is told to end.
func (s *session) clear(path string) (found bool, err error) {
	for {
		// Another server than the one that made the node may not have heard of it yet.
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

// close tells the session to end, and returns a channel that is closed when that was said, or could not be
// said within the library's patience of some seconds. The session expires by itself then.
func (s *session) close() <-chan struct{} {
	said := make(chan struct{})
	s.once.Do(func() { close(s.closed) })
	go func() {
		defer close(said)
		s.conn.Close()
	}()
	return said
}

// between is how long a lock waits between two attempts.
const between = 20 * time.Millisecond

// pause waits between two attempts, and reports whether there is to be another: not when ctx is done or what ends them
// has happened.
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
