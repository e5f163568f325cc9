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

// PeerProxy lead from the members of a cluster to one another, through this process, where they can be cut. Each is a port of
// loopback at which one port of a member's is reached: by one other, where each member can be told something else, or by
// all. Then who dials is found out by whose process has the other end, which must keep it open until it hears
// something, and which not all systems say ([CanFindSocketOwner]). [Host.NewWays] makes them, and they end with the host. Safe for concurrent use.
//
// What is said between two members that are parted stands still: nothing more is passed on, no end is told, and who
// dials is neither refused nor answered. What had been passed on is in the system's hands, and arrives.
type PeerProxy struct {
	mu        sync.Mutex // guards all below, and what connections say of themselves
	members   map[int]*Daemon
	over      bool
	parted    map[pair]bool
	conns     map[*peerConn]bool
	listeners []net.Listener
	running   sync.WaitGroup
}

// A pair is two members by their numbers, the smaller one first.
type pair [2]int

func between(a, b int) pair { return pair{min(a, b), max(a, b)} }

// An Opening passes on what a member says first on a connection, if something in there must be changed, and reads
// no more than that.
type Opening func(r io.Reader, w io.Writer) error

// A way is what a port leads to.
type way struct {
	from, to int // members; from is 0 if any may dial
	port     int // of the one it leads to
	opening  Opening
}

// dialLimit is how long a member that runs may take to accept at its own port.
const dialLimit = 5 * time.Second

// NewWays returns ways between members, of which there are none yet. Close ends them.
func (h *Host) NewWays() *PeerProxy {
	w := &PeerProxy{members: map[int]*Daemon{}, parted: map[pair]bool{}, conns: map[*peerConn]bool{}}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.peerProxies = append(h.peerProxies, w)
	return w
}

// Join says which daemon is the member of that number, before it is started.
func (w *PeerProxy) Join(member int, d *Daemon) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.members[member] = d
}

// pids returns the processes of those members that have one.
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

// To opens a way to that port of a member's, and returns its own port, which is what the others are to be told.
// Where the system doesn't say who dials it is the same port, and there is no way.
func (w *PeerProxy) To(member, port int) (int, error) {
	if !CanFindSocketOwner() {
		return port, nil
	}
	return w.open(way{to: member, port: port})
}

// Between opens a way from one member to that port of another's, and returns its own port, which is what that one is to
// be told and nobody else. A nil opening changes nothing.
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
			if err != nil { // out of descriptors, say: who dials waits as at a busy server
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

// Rejoin implements [real.ClusterHost]. Those connections are reset, too, that were begun while the members were parted,
// for who has dialled to do it anew at once.
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

// pairOf returns the members that are those nodes.
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

// close ends all ways and connections, and returns when nothing of them is left.
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

// A peerConn is a connection from one member to another. Ways.mu guards its fields but for the two ends.
type peerConn struct {
	proxy *PeerProxy
	way   way
	in    *net.TCPConn    // from who has dialled
	gone  context.Context // done when it is over
	end   func()          // has it be over

	between pair         // not known until it was found out who has dialled
	out     *net.TCPConn // nil until it was dialled
	stood   bool         // something stood still on it
}

// accept takes in a connection, and has it carried by goroutines of its own.
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

// stop has nothing written any more that isn't yet. The caller holds PeerProxy.mu.
func (c *peerConn) stop() {
	for _, end := range c.ends() {
		_ = end.SetWriteDeadline(time.Unix(1, 0)) // one that is closed writes nothing
	}
}

// goOn ends stop. The caller holds PeerProxy.mu.
func (c *peerConn) goOn() {
	for _, end := range c.ends() {
		_ = end.SetWriteDeadline(time.Time{})
	}
}

// reset ends both sides at once, with what is on its way. No effect when it is over. The caller holds PeerProxy.mu.
func (c *peerConn) reset() {
	for _, end := range c.ends() {
		_ = end.SetLinger(0) // one that is closed is over
	}
	c.close()
}

// close ends both sides, and lets what was passed on arrive. No effect when it is over. The caller holds PeerProxy.mu.
func (c *peerConn) close() {
	c.end()
	for _, end := range c.ends() {
		_ = end.Close() // who is at the other end has all there is
	}
}

// fail is reset for who doesn't hold PeerProxy.mu.
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

// carry finds out who has dialled, dials, and copies both ways until both are at an end. It reports whether both
// were closed in order.
func (c *peerConn) carry() (orderly bool) {
	from, err := c.way.from, error(nil)
	if from == 0 {
		from, err = dialler(c.in, c.proxy.pids())
	}
	if err != nil || from == c.way.to {
		return false // nobody's, by now
	}
	if c.isOf(between(from, c.way.to)) {
		// The other side knows nothing of it, and never will: all that can come of it is its end.
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

// dial connects to a member's own port. Who has dialled us was not refused, as he would have been by a member that doesn't listen
// yet; he would have tried again soon, and may take it for worse that a connection breaks. So that is
// done for him, as long as the member's process is there.
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

// isOf takes note of whose it is, and reports whether they are parted: then it was begun meanwhile.
func (c *peerConn) isOf(members pair) bool {
	c.proxy.mu.Lock()
	defer c.proxy.mu.Unlock()
	c.between = members
	c.stood = c.proxy.parted[members]
	return c.stood
}

// has takes note of the other side.
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

// copy passes on what comes until its end, which it passes on, too, and reports whether it came to that. What breaks
// one side breaks the other.
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

// A writer writes to one side of a connection as long as its members are not parted. Then what it has in hand stands
// still, and the connection with it, until that is reset.
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

// passes reports whether what is in hand may be passed on, and takes note if not.
func (c *peerConn) passes() bool {
	c.proxy.mu.Lock()
	defer c.proxy.mu.Unlock()
	c.stood = c.stood || c.proxy.parted[c.between]
	return !c.stood
}
