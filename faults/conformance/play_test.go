package conformance

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/internal/resp"
)

// A side is what a case is played on: a primary, n1, and its replica, n1/1. All its
// methods but the last are those of a [faults.World] and [faults.Dialer].
type side interface {
	Dial(ctx context.Context, client, node string) (net.Conn, error)
	Run(limit time.Duration, until func() bool) bool
	Notify()
	Apply(f faults.Fault) error
	// settle returns when the server has taken in what was sent, so that so
	// many clients are blocked on it, or once done says that there is no need.
	settle(blocked int, done func() bool) error
}

// player plays one case.
type player struct {
	side    side
	table   *table
	conns   map[string]*conn
	blocked map[*conn]bool // on a command that was not answered yet
	readers sync.WaitGroup
}

// conn is a connection with a reader of its own.
type conn struct {
	net.Conn
	mu       sync.Mutex
	received []byte
	err      error
}

// What a read can come to other than a reply.
const (
	nothing = "(nothing)"
	closed  = "(closed)"
)

// play plays a case, and calls got for each step with what came.
func play(on side, t *table, c *tableCase, got func(s *step, replies []string)) error {
	p := &player{side: on, table: t, conns: map[string]*conn{}, blocked: map[*conn]bool{}}
	defer p.close()
	for _, s := range c.steps {
		replies, err := p.do(s)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", t.file, s.line, err)
		}
		got(s, replies)
	}
	return nil
}

func (p *player) close() {
	for _, c := range p.conns {
		c.Close()
	}
	p.readers.Wait()
}

func (p *player) do(s *step) ([]string, error) {
	switch s.does {
	case actAdvance:
		p.side.Run(s.wait, func() bool { return false })
		return nil, nil
	case actStream:
		return nil, p.side.Apply(faults.Replication{Node: "n1", Mode: faults.ReplicationMode(s.arg)})
	}
	c, err := p.conn(s.conn)
	if err != nil {
		return nil, err
	}
	switch s.does {
	case actClose:
		delete(p.conns, s.conn)
		delete(p.blocked, c)
		return nil, c.Close()
	case actReceive:
		return []string{p.receive(c, s.wait)}, nil
	}
	if err := p.send(c, s.send); err != nil {
		return nil, err
	}
	if s.does == actSend {
		p.blocked[c] = true
		return nil, p.side.settle(len(p.blocked), c.has)
	}
	var replies []string
	for range s.send {
		replies = append(replies, p.receive(c, s.wait))
	}
	return replies, nil
}

// conn returns the connection of that name, a new one at first. Names that begin
// with replica are connected to the replica.
func (p *player) conn(name string) (*conn, error) {
	if c := p.conns[name]; c != nil {
		return c, nil
	}
	node := "n1"
	if strings.HasPrefix(name, "replica") {
		node = "n1/1"
	}
	raw, err := p.side.Dial(context.Background(), name, node)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: raw}
	p.conns[name] = c
	p.readers.Go(func() { c.read(p.side.Notify) })
	return c, nil
}

func (c *conn) read(notify func()) {
	buf := make([]byte, 4096)
	for {
		n, err := c.Read(buf)
		c.mu.Lock()
		c.received = append(c.received, buf[:n]...)
		c.err = err
		c.mu.Unlock()
		notify()
		if err != nil {
			return
		}
	}
}

// send writes commands in one go.
func (p *player) send(c *conn, commands [][]string) error {
	var request strings.Builder
	for _, raw := range commands {
		words, err := p.table.words(raw, time.Now())
		if err != nil {
			return err
		}
		fmt.Fprintf(&request, "*%d\r\n", len(words))
		for _, word := range words {
			fmt.Fprintf(&request, "$%d\r\n%s\r\n", len(word), word)
		}
	}
	_, err := c.Write([]byte(request.String()))
	return err
}

// receive reads the next value on the connection.
func (p *player) receive(c *conn, wait time.Duration) string {
	if !p.side.Run(wait, c.has) {
		return nothing
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n, err := resp.Frame(c.received)
	if n == 0 || err != nil {
		return closed
	}
	delete(p.blocked, c)
	text := resp.Print(c.received, nil)
	c.received = c.received[n:]
	return text
}

// has reports whether there is something to read, an end included.
func (c *conn) has() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, err := resp.Frame(c.received)
	return n > 0 || err != nil || c.err != nil
}
