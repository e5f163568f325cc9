package sim

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/topology"
	"github.com/lockfault/lockfault/internal/resp"
)

var (
	errRefused = os.NewSyscallError("connect", syscall.ECONNREFUSED)
	errReset   = os.NewSyscallError("read", syscall.ECONNRESET)
)

// conn is a connection of a client to a server. The client's end is a net.Conn, the server's end a
// miniredis peer. World.mu guards all fields except out, which has its own lock.
type conn struct {
	world  *World
	client *client
	node   *topology.Node
	server *redis
	fixed  bool // connects to this server, whatever its role is
	peer   *server.Peer
	out    replyBuffer

	partial  []byte   // bytes of an incomplete request that the client has written
	said     *message // the last complete request
	trail    uint64   // hash of the bytes that the client wrote at the moment written
	written  time.Time
	received []byte        // what the client has not read yet
	ready    chan struct{} // holds one notification that a reader must look again
	severed  error         // why the client can no longer use the connection; nil while it can
	finished bool          // the client's close has reached the server
	gone     bool          // the server's end is closed
	deadline time.Time     // of reads
	watch    *item         // ends a read at the deadline, or plans itself again
	reading  bool          // a goroutine waits in Read
	from     time.Time     // earliest time at which the reader may see the notification
	expired  bool          // the deadline passed while a goroutine waited in Read

	closes time.Time // when the link's timeout closes the connection; zero if it does not

	toServer, toClient stream
	travelling         int  // messages on their way, not counting held ones
	unanswered         int  // requests written whose reply has not arrived
	subscribed         bool // the client has subscribed on this connection
	tracker            clientTracking
	transaction        *transaction // the open transaction; nil if none
	seen               int          // the server's offset after the last request of this connection, for WAIT
	waiter             *waiter
	pending            []*message // requests that wait for the blocked request before them
}

// stream is one direction of a connection.
type stream struct {
	topology.Lane
	topology.Line
	last   time.Time  // arrival of the last message
	behind []*message // messages that wait because one before them is stuck
}

// stream returns the direction of the connection on which a message travels.
func (m *message) stream() *stream {
	if m.way == faults.Before {
		return &m.conn.toServer
	}
	return &m.conn.toClient
}

// message is a request, reply or push on its way.
type message struct {
	conn    *conn
	way     faults.Way
	command string        // the request's name
	text    string        // the request as histories show it, for replies
	words   []string      // of the request
	did     faults.Effect // what the request did to the lock, set after its execution
	bytes   []byte        // of a reply or push
	size    int           // in bytes of RESP
	sent    time.Time
	arrived time.Time // at the gate
	trail   uint64    // the connection's trail when the request was written
}

// answer returns a reply to the request.
func (m *message) answer(bytes []byte) *message {
	return &message{
		conn: m.conn, way: faults.After, command: m.command, text: m.text, words: m.words, did: m.did, trail: m.trail, bytes: bytes,
	}
}

// newConn creates a connection of a client to a server. Callers hold w.mu.
func (w *World) newConn(c *client, s *redis, fixed bool) *conn {
	conn := &conn{world: w, client: c, node: s.Node, server: s, fixed: fixed, ready: make(chan struct{}, 1)}
	conn.peer = newPeer(&conn.out)
	c.conns = append(c.conns, conn)
	s.conns = append(s.conns, conn)
	w.closeAfter(conn, w.top.Links.On(conn.link()).Closes)
	return conn
}

func (c *conn) link() topology.Link { return topology.Link{Client: c.client.Name, Node: c.node.Name} }

// Read implements net.Conn. Read blocks while its client is paused. A deadline that passed during
// the pause takes effect at once after it, even if data is available, as in a stopped process.
func (c *conn) Read(p []byte) (int, error) {
	w := c.world
	w.mu.Lock()
	for {
		switch {
		case c.client.dead:
			w.mu.Unlock()
			return 0, w.running(c.client)
		case c.client.State.Paused && !w.closed:
			c.reading = true
			c.note() // so that the reader looks again when the client resumes
		case c.expired || !c.deadline.IsZero() && c.deadline.Before(time.Now()):
			c.expired = false
			w.mu.Unlock()
			return 0, os.ErrDeadlineExceeded
		case len(c.received) > 0:
			n := copy(p, c.received)
			c.received = c.received[n:]
			w.mu.Unlock()
			return n, nil
		case c.severed != nil:
			defer w.mu.Unlock()
			return 0, c.severed
		case !c.deadline.IsZero() && !c.deadline.After(time.Now()):
			w.mu.Unlock()
			return 0, os.ErrDeadlineExceeded
		}
		c.reading = true
		c.watchDeadline()
		w.mu.Unlock()
		<-c.ready
		w.mu.Lock()
		c.reading = false
	}
}

// watchDeadline plans the end of a waiting read at its deadline. The schedule holds at most one
// such item per connection, for the earliest deadline that the connection had; the item plans
// itself again if the deadline has moved. Callers hold w.mu.
func (c *conn) watchDeadline() {
	if c.deadline.IsZero() || c.watch != nil && !c.watch.due.After(c.deadline) {
		return
	}
	if c.watch != nil {
		c.watch.dead = true
	}
	c.watch = c.world.plan(c.deadline, c.rank("deadline"), func() {
		c.watch = nil
		switch {
		case !c.reading || c.deadline.IsZero():
		case c.deadline.After(time.Now()):
			c.watchDeadline()
		default:
			c.expired = true
			c.note()
		}
	})
}

// Write implements net.Conn. Write sends each complete request as a message.
//
// Write blocks while its client is paused, except on a connection with subscriptions: go-redis
// writes to such a connection with a mutex locked, and a goroutine that waits for a mutex stops
// virtual time. Requests written there are sent when the client resumes.
func (c *conn) Write(p []byte) (int, error) {
	w := c.world
	w.mu.Lock()
	defer w.mu.Unlock()
	for c.client.State.Paused || c.client.dead {
		if c.subscribed {
			c.take(p)
			return len(p), nil
		}
		w.mu.Unlock()
		err := w.running(c.client)
		w.mu.Lock()
		if err != nil {
			return 0, err
		}
	}
	if c.severed != nil {
		return 0, c.severed
	}
	c.take(p)
	if err := c.sendWritten(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// take appends bytes that the client writes, and updates their hash. Callers hold w.mu.
func (c *conn) take(p []byte) {
	c.partial = append(c.partial, p...)
	if now := time.Now(); !now.Equal(c.written) {
		c.trail, c.written = 0, now
	}
	for _, b := range p {
		c.trail = (c.trail ^ uint64(b)) * 1099511628211 // FNV-1a
	}
}

// sendWritten sends the complete requests among the written bytes. sendWritten severs the
// connection if the bytes are not a request. Callers hold w.mu.
func (c *conn) sendWritten() error {
	for {
		words, n, err := resp.Command(c.partial)
		if err != nil {
			c.sever(err)
			return err
		}
		if n == 0 {
			return nil
		}
		c.partial = c.partial[n:]
		if len(words) == 0 {
			continue
		}
		if c.unanswered == 0 {
			c.client.State.RoundTrips++
		}
		c.unanswered++
		c.said = &message{conn: c, way: faults.Before, command: strings.ToUpper(words[0]), words: words, size: n, trail: c.trail}
		c.world.send(c.said)
	}
}

// send schedules the arrival of a message. Callers hold w.mu.
func (w *World) send(m *message) {
	c := m.conn
	m.sent = time.Now()
	if m.way != faults.Before {
		m.size = len(m.bytes)
	}
	due := w.due(c, m.stream(), string(m.way), m.command, m.size)
	c.travelling++
	w.plan(due, m.rank(), func() {
		c.travelling--
		w.arrive(m)
	}).travels = true
}

// due returns when data arrives that is sent now. Data of one direction keeps its order.
func (w *World) due(c *conn, on *stream, what, command string, size int) time.Time {
	now := time.Now()
	due := w.arrives(w.top.Links.On(c.link()), &on.Line, topology.JitterKey{On: c.link(), What: what, Command: command}, now, size)
	if !due.After(on.last) {
		due = on.last.Add(time.Nanosecond)
	}
	on.last = due
	return due
}

// plan adds an item to the schedule, and wakes Run if the item is due before Run's sleep ends.
// Callers hold w.mu.
func (w *World) plan(due time.Time, rank rank, run func()) *item {
	it := w.schedule.plan(due, rank, run)
	if !w.sleeping.IsZero() && due.Before(w.sleeping) {
		w.rouse()
	}
	return it
}

// rank returns the rank that orders messages that arrive at one instant.
func (m *message) rank() rank {
	return rank{who: m.conn.client.Name, where: m.conn.node.Name, what: string(m.way), message: m}
}

// Close implements net.Conn. Data written before Close still reaches the server.
func (c *conn) Close() error {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	if c.severed == nil {
		c.hangUp()
		c.wake() // the client itself closed the connection, so the reader may see it at once
	}
	return nil
}

// hangUp closes the client's end; the close reaches the server after all data written before.
// Callers hold w.mu.
func (c *conn) hangUp() {
	w := c.world
	c.disconnect(net.ErrClosed)
	due := w.due(c, &c.toServer, "fin", "", 0)
	w.plan(due, rank{who: c.client.Name, where: c.node.Name, what: "fin"}, func() {
		c.finished = true
		c.releaseIfFinished()
	}).travels = true
}

// releaseIfFinished closes the server's end if the client's close has arrived and no earlier
// message is stuck or waits for a paused server.
func (c *conn) releaseIfFinished() {
	waits := func(m *message) bool { return m.conn == c }
	if c.finished && c.toServer.Stuck == nil && !slices.ContainsFunc(c.server.door, waits) {
		c.release()
	}
}

// sever closes the connection at both ends at once and loses the messages on it. Callers hold w.mu.
func (c *conn) sever(why error) {
	c.disconnect(why)
	c.release()
}

// disconnect closes the client's end, with the error for its later calls. A second call has no
// effect.
func (c *conn) disconnect(why error) {
	if c.severed != nil {
		return
	}
	c.severed = why
	c.client.conns = slices.DeleteFunc(c.client.conns, func(other *conn) bool { return other == c })
	c.note()
	c.linger()
}

// release closes the server's end. A second call has no effect.
func (c *conn) release() {
	if c.gone {
		return
	}
	c.gone = true
	c.server.conns = slices.DeleteFunc(c.server.conns, func(other *conn) bool { return other == c })
	c.world.top.Forget(func(m topology.Message) bool { return m.(*message).conn == c })
	c.server.waiters = slices.DeleteFunc(c.server.waiters, func(wait *waiter) bool { return wait == c.waiter })
	c.server.forget(c)
	c.world.subscribers = slices.DeleteFunc(c.world.subscribers, func(other *conn) bool { return other == c })
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	c.deadline = t
	c.note() // the waiting reader must use the new deadline
	return nil
}

// SetWriteDeadline implements net.Conn. SetWriteDeadline does nothing, because a write takes no
// time.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return address(c.client.Name) }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return address(c.node.Name) }

// SyscallConn implements syscall.Conn. go-redis uses it to detect idle connections that the other
// end has closed. There is no file descriptor: SyscallConn returns io.EOF for a closed connection,
// and otherwise a RawConn whose Read does nothing.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	if c.severed != nil {
		return nil, io.EOF
	}
	return noDescriptor{}, nil
}

type noDescriptor struct{}

var errNoDescriptor = errors.New("sim: a connection in virtual time has no file descriptor")

func (noDescriptor) Control(func(uintptr)) error    { return errNoDescriptor }
func (noDescriptor) Read(func(uintptr) bool) error  { return nil }
func (noDescriptor) Write(func(uintptr) bool) error { return errNoDescriptor }

// address is the name of a client or node as a net.Addr.
type address string

func (address) Network() string  { return "sim" }
func (a address) String() string { return string(a) }

// replyBuffer holds the bytes that a server writes to a connection. The zero value is empty. A
// replyBuffer is safe for concurrent use, because miniredis serves subscriptions in separate
// goroutines.
type replyBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (o *replyBuffer) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

// take removes and returns the complete RESP values in the buffer.
func (o *replyBuffer) take() ([][]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var frames [][]byte
	for o.buf.Len() > 0 {
		n, err := resp.Frame(o.buf.Bytes())
		if n == 0 || err != nil {
			return frames, err
		}
		frames = append(frames, bytes.Clone(o.buf.Next(n)))
	}
	return frames, nil
}
