package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lockfault/lockfault/internal/ports"
)

// PeerProxy carries connections between the members of a cluster through this process, where they
// can be cut. Each way is a loopback port that leads to one port of a member. If each member can be
// configured separately, each way has one dialler; otherwise all members share it. On a shared way
// the dialler is found by the process that owns the other end of the connection. The dialler must
// then keep that end open until it receives something, and the system must support it
// ([CanFindSocketOwner]). [Host.NewWays] makes a PeerProxy, and the host's Close ends it. It is
// safe for concurrent use.
//
// While two members are parted, bytes between them stand still: nothing more is passed on, the end
// of a stream isn't either, and a dialler is neither refused nor answered. Bytes that had been
// passed on are in the system's buffers, and arrive.
type PeerProxy struct {
	mu        sync.Mutex // guards all fields below, and the fields of connections
	members   map[int]*Daemon
	over      bool
	parted    map[pair]bool
	conns     map[*peerConn]bool
	listeners []net.Listener
	running   sync.WaitGroup
}

// A pair is two members by their numbers, the smaller first.
type pair [2]int

func between(a, b int) pair { return pair{min(a, b), max(a, b)} }

// An Opening passes on the first message of a connection, if that message must be changed, and
// reads no more than it.
type Opening func(r io.Reader, w io.Writer) error

// A way is the route from a port of this process to a port of a member.
type way struct {
	from, to int // members; from is 0 if any member may dial
	port     int // port of member to
	opening  Opening
}

// dialLimit is the maximum time that a running member may take to accept at its own port.
const dialLimit = 5 * time.Second

// NewWays returns a PeerProxy without ways. The host's Close ends it.
func (h *Host) NewWays() *PeerProxy {
	w := &PeerProxy{members: map[int]*Daemon{}, parted: map[pair]bool{}, conns: map[*peerConn]bool{}}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.peerProxies = append(h.peerProxies, w)
	return w
}

// Join sets the daemon of a member. Call it before the daemon is started.
func (w *PeerProxy) Join(member int, d *Daemon) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.members[member] = d
}

// pids returns the process IDs of the running members, by member.
func (w *PeerProxy) pids() map[int]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	pids := map[int]int{}
	for member, d := range w.members {
		if p := d.running.Load(); p != nil && p.Alive() {
			pids[member] = p.PID()
		}
	}
	return pids
}

// To opens a way from any member to a member's port, and returns the way's own port, which the
// other members must use. If the system can't find the dialler, To opens no way and returns the
// same port.
func (w *PeerProxy) To(member, port int) (int, error) {
	if !CanFindSocketOwner() {
		return port, nil
	}
	return w.open(way{to: member, port: port})
}

// Between opens a way from one member to another member's port, and returns the way's own port,
// which only the first member may use. A nil opening changes nothing.
func (w *PeerProxy) Between(from, to, port int, opening Opening) (int, error) {
	return w.open(way{from, to, port, opening})
}

func (w *PeerProxy) open(to way) (int, error) {
	l, err := net.Listen("tcp", ports.Address(0))
	if err != nil {
		return 0, fmt.Errorf("open a way to member %d: %w", to.to, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return 0, errors.Join(fmt.Errorf("open a way to member %d: %w", to.to, net.ErrClosed), l.Close())
	}
	w.listeners = append(w.listeners, l)
	w.running.Go(func() {
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // out of descriptors, for example: the dialler waits as at a busy server
				time.Sleep(5 * time.Millisecond)
				continue
			}
			w.accept(c.(*net.TCPConn), to)
		}
	})
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Part implements [real.ClusterHost].
func (w *PeerProxy) Part(a, b string) error {
	between, err := w.pairOf(a, b)
	if err != nil {
		return fmt.Errorf("cut the ways between %s and %s: %w", a, b, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.parted[between] = true
	for c := range w.conns {
		if c.between == between {
			c.stop()
		}
	}
	return nil
}

// Rejoin implements [real.ClusterHost]. It also resets connections that were begun while the
// members were parted, so that their dialler dials again at once.
func (w *PeerProxy) Rejoin(a, b string) error {
	between, err := w.pairOf(a, b)
	if err != nil {
		return fmt.Errorf("mend the ways between %s and %s: %w", a, b, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.parted, between)
	for c := range w.conns {
		switch {
		case c.between != between:
		case c.stood:
			c.reset()
		default:
			c.goOn()
		}
	}
	return nil
}

// pairOf returns the members that two nodes are.
func (w *PeerProxy) pairOf(a, b string) (pair, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var numbers [2]int
	for i, name := range []string{a, b} {
		number, err := strconv.Atoi(strings.TrimPrefix(name, "n"))
		if err != nil || w.members[number] == nil {
			return pair{}, fmt.Errorf("%q is no member", name)
		}
		numbers[i] = number
	}
	if numbers[0] == numbers[1] {
		return pair{}, errors.New("they are one")
	}
	return between(numbers[0], numbers[1]), nil
}

// close ends all ways and connections, and returns after their goroutines have ended.
func (w *PeerProxy) close() error {
	w.mu.Lock()
	w.over = true
	var errs []error
	for _, l := range w.listeners {
		errs = append(errs, l.Close())
	}
	for c := range w.conns {
		c.reset()
	}
	w.mu.Unlock()
	w.running.Wait()
	return errors.Join(errs...)
}

// A peerConn is a connection from one member to another. PeerProxy.mu guards its fields except the
// two sockets.
type peerConn struct {
	proxy *PeerProxy
	way   way
	in    *net.TCPConn    // socket of the dialler
	gone  context.Context // done when the connection is over
	end   func()          // cancels gone

	between pair         // zero until the dialler is known
	out     *net.TCPConn // nil until dialled
	stood   bool         // bytes stood still on the connection
}

// accept registers a connection and carries it in new goroutines.
func (w *PeerProxy) accept(in *net.TCPConn, on way) {
	c := &peerConn{proxy: w, way: on, in: in}
	c.gone, c.end = context.WithCancel(context.Background())
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns[c] = true
	if w.over {
		c.reset()
	}
	w.running.Go(func() {
		orderly := c.carry()
		w.mu.Lock()
		defer w.mu.Unlock()
		if orderly {
			c.close()
		} else {
			c.reset()
		}
		delete(w.conns, c)
	})
}

// stop makes all pending and later writes fail. The caller holds PeerProxy.mu.
func (c *peerConn) stop() {
	for _, end := range c.ends() {
		_ = end.SetWriteDeadline(time.Unix(1, 0)) // fails only for a closed socket, which writes nothing
	}
}

// goOn ends stop. The caller holds PeerProxy.mu.
func (c *peerConn) goOn() {
	for _, end := range c.ends() {
		_ = end.SetWriteDeadline(time.Time{})
	}
}

// reset ends both sides at once, and discards bytes in transit. It has no effect after the end. The
// caller holds PeerProxy.mu.
func (c *peerConn) reset() {
	for _, end := range c.ends() {
		_ = end.SetLinger(0) // fails only for a closed socket
	}
	c.close()
}

// close ends both sides, and lets bytes that were passed on arrive. It has no effect after the end.
// The caller holds PeerProxy.mu.
func (c *peerConn) close() {
	c.end()
	for _, end := range c.ends() {
		_ = end.Close() // the peer has received everything
	}
}

// fail calls reset with PeerProxy.mu held.
func (c *peerConn) fail() {
	c.proxy.mu.Lock()
	defer c.proxy.mu.Unlock()
	c.reset()
}

func (c *peerConn) ends() []*net.TCPConn {
	if c.out == nil {
		return []*net.TCPConn{c.in}
	}
	return []*net.TCPConn{c.in, c.out}
}

// carry finds the dialler, dials, and copies in both directions until both have ended. It reports
// whether both ended in order.
func (c *peerConn) carry() (orderly bool) {
	from, err := c.way.from, error(nil)
	if from == 0 {
		from, err = dialler(c.in, c.proxy.pids())
	}
	if err != nil || from == c.way.to {
		return false // the dialler is no longer a member, or is the member itself
	}
	if c.isOf(between(from, c.way.to)) {
		// The other side never learns of this connection: the only possible event is its end.
		_, _ = io.Copy(io.Discard, c.in)
		return false
	}
	to, err := c.dial()
	if err != nil {
		return false
	}
	c.has(to)
	var back sync.WaitGroup
	var backToo bool
	back.Go(func() { backToo = c.copy(c.in, to) })
	if c.way.opening != nil {
		err = c.way.opening(c.in, writer{c, to})
	}
	if err != nil {
		c.fail()
	} else {
		orderly = c.copy(to, c.in)
	}
	back.Wait()
	return orderly && backToo
}

// dial connects to a member's own port. The way has accepted the dialler's connection, which a
// member that isn't listening yet would have refused. After a refusal the dialler would soon try
// again, but it may treat a broken connection as worse. dial therefore retries for the dialler as
// long as the member's process runs.
func (c *peerConn) dial() (*net.TCPConn, error) {
	ctx, cancel := context.WithTimeout(c.gone, dialLimit)
	defer cancel()
	for {
		out, err := new(net.Dialer).DialContext(ctx, "tcp", ports.Address(c.way.port))
		if err == nil {
			return out.(*net.TCPConn), nil
		}
		if c.proxy.pids()[c.way.to] == 0 {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// isOf records the members of the connection, and reports whether they are parted: then the
// connection was begun during the partition.
func (c *peerConn) isOf(members pair) bool {
	c.proxy.mu.Lock()
	defer c.proxy.mu.Unlock()
	c.between = members
	c.stood = c.proxy.parted[members]
	return c.stood
}

// has records the socket of the other side.
func (c *peerConn) has(out *net.TCPConn) {
	c.proxy.mu.Lock()
	defer c.proxy.mu.Unlock()
	c.out = out
	switch {
	case c.gone.Err() != nil:
		c.reset()
	case c.proxy.parted[c.between]:
		c.stop()
	}
}

// copy passes on bytes until the end of the stream, then passes on that end, and reports whether it
// got that far. An error on one side resets the other.
func (c *peerConn) copy(to, from *net.TCPConn) (orderly bool) {
	chunk := make([]byte, 32<<10)
	for {
		n, err := from.Read(chunk)
		if _, failed := (writer{c, to}).Write(chunk[:n]); failed != nil || err != nil && !errors.Is(err, io.EOF) {
			c.fail()
			return false
		}
		if err != nil {
			return to.CloseWrite() == nil
		}
	}
}

// A writer writes to one side of a connection while its members are not parted. After a partition
// the bytes to write stand still, and the connection with them, until it is reset.
type writer struct {
	*peerConn
	to *net.TCPConn
}

func (w writer) Write(p []byte) (n int, err error) {
	for {
		if !w.passes() {
			<-w.gone.Done()
			return n, net.ErrClosed
		}
		m, err := w.to.Write(p[n:])
		n += m
		var late net.Error
		if err == nil || !errors.As(err, &late) || !late.Timeout() {
			return n, err
		}
	}
}

// passes reports whether bytes may be passed on, and records it if not.
func (c *peerConn) passes() bool {
	c.proxy.mu.Lock()
	defer c.proxy.mu.Unlock()
	c.stood = c.stood || c.proxy.parted[c.between]
	return !c.stood
}
