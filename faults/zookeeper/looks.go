package zookeeper

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockfault/lockfault/faults/real"
)

// errBlind says that a member said nothing.
var errBlind = errors.New("it is not connected, or has lost its leader")

// Look implements [real.Looker]. A query is the path below which those who want the lock have their nodes, with $1 for its name: the one whose number
// is the smallest has it, as long as his session lasts, and his node's data say whose that is.
func (s *server) Look(ctx context.Context, query, name string) (real.Sight, error) {
	conn, err := s.session()
	if err != nil {
		return real.Sight{}, err
	}
	type answer struct {
		real.Sight
		err error
	}
	done := make(chan answer, 1)
	go func() { // go-zookeeper knows no contexts
		seen, err := look(conn, strings.ReplaceAll(query, "$1", name))
		done <- answer{seen, err}
	}()
	select {
	case a := <-done:
		return a.Sight, a.err
	case <-ctx.Done():
		return real.Sight{}, errBlind
	}
}

// look asks for the nodes below a path, and for the data of the first.
func look(conn *zk.Conn, path string) (seen real.Sight, err error) {
	for {
		children, stat, err := conn.Children(path)
		if errors.Is(err, zk.ErrNoNode) {
			return seen, nil
		}
		if err != nil {
			return seen, err
		}
		seen.Version = stat.Pzxid
		if len(children) == 0 {
			return seen, nil
		}
		first := slices.MinFunc(children, func(a, b string) int { return strings.Compare(number(a), number(b)) })
		data, stat, err := conn.Get(path + "/" + first)
		if errors.Is(err, zk.ErrNoNode) { // it has gone meanwhile
			continue
		}
		if err != nil {
			return seen, err
		}
		h := real.Holder{Owner: string(data)}
		if stat.EphemeralOwner != 0 {
			h.Ends = real.WithLease
		}
		seen.Holders = []real.Holder{h}
		return seen, nil
	}
}

// digits is how many digits the servers put behind the name of a sequential node.
const digits = 10

// number returns the number in the name of a sequential node.
func number(name string) string { return name[max(0, len(name)-digits):] }

// session returns the session by which a member is asked, once it is there.
func (s *server) session() (*zk.Conn, error) {
	conn, err := s.eye.Get(func() (*zk.Conn, error) {
		conn, _, err := zk.Connect([]string{s.Addr()}, 10*time.Second, zk.WithLogger(silent{}), zk.WithLogInfo(false))
		if err == nil {
			go func() { _ = conn.AddAuth("digest", []byte(user+":"+s.Spec.Password)) }() // said anew with each connection
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

// close ends that.
func (s *server) close() error {
	return s.eye.Close(func(conn *zk.Conn) error { conn.Close(); return nil })
}
