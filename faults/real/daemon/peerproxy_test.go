package daemon

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/internal/ports"
	"github.com/lockfault/lockfault/internal/proc"
)

// TestMain also runs the members of these tests: this program started again. Each member echoes
// what comes to its port, or dials and relays if the first line of a connection asks for it.
func TestMain(m *testing.M) {
	if port := os.Getenv("LOCKFAULT_TEST_MEMBER"); port != "" {
		member(port)
		return
	}
	os.Exit(m.Run())
}

// member echoes at that port.
func member(port string) {
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			lines := bufio.NewReader(c)
			line, err := lines.ReadString('\n')
			if to, ok := strings.CutPrefix(strings.TrimSpace(line), "dial "); ok && err == nil {
				relay(c, lines, to)
				return
			}
			_, _ = io.WriteString(c, line)
			_, _ = io.Copy(c, lines)
		}()
	}
}

// relay dials from this process, and passes on what it is told and what it hears.
func relay(c net.Conn, lines *bufio.Reader, to string) {
	other, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer other.Close()
	go func() {
		_, _ = io.Copy(other, lines)
		_ = other.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(c, other)
	if err != nil {
		_ = c.(*net.TCPConn).SetLinger(0)
	}
}

// A cluster is members on this machine, and the way to each.
type cluster struct {
	*testing.T
	host    *Host
	ways    *PeerProxy
	daemons []*Daemon
	to      []int // ports of the ways
}

// members starts so many, all of which are reached by one way each.
func members(t *testing.T, n int) *cluster {
	t.Helper()
	if !CanFindSocketOwner() {
		t.Skip("this system doesn't say who has dialled")
	}
	h := host(t)
	c := &cluster{T: t, host: h, ways: h.NewWays()}
	for i := range n {
		d, err := h.Add(fmt.Sprintf("n%d", i+1), Program{
			Command: func(port int) (*exec.Cmd, error) {
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), fmt.Sprintf("LOCKFAULT_TEST_MEMBER=%d", port))
				return cmd, nil
			},
			Answers: func(_ context.Context, _ *proc.Proc, port int) error {
				conn, err := net.Dial("tcp", ports.Address(port))
				if err == nil {
					err = conn.Close()
				}
				return err
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		c.ways.Join(i+1, d)
		if err := d.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		way, err := c.ways.To(i+1, int(d.port.Load()))
		if err != nil {
			t.Fatal(err)
		}
		c.daemons, c.to = append(c.daemons, d), append(c.to, way)
	}
	return c
}

// A line is a connection that one member has made to another, as seen from the first.
type line struct {
	*testing.T
	*net.TCPConn
	read *bufio.Reader
}

// dial has one member dial the way to another.
func (c *cluster) dial(from, to int) *line {
	c.Helper()
	conn, err := net.Dial("tcp", c.daemons[from-1].Addr())
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = conn.Close() })
	l := &line{c.T, conn.(*net.TCPConn), bufio.NewReader(conn)}
	l.say("dial " + ports.Address(c.to[to-1]))
	return l
}

func (l *line) say(text string) {
	l.Helper()
	if _, err := io.WriteString(l.TCPConn, text+"\n"); err != nil {
		l.Fatal(err)
	}
}

// hears returns what comes within a while, and why no more does.
func (l *line) hears(within time.Duration) (string, error) {
	_ = l.SetReadDeadline(time.Now().Add(within))
	text, err := l.read.ReadString('\n')
	return strings.TrimSpace(text), err
}

func (l *line) wants(text string) {
	l.Helper()
	if got, err := l.hears(10 * time.Second); got != text {
		l.Fatalf("heard %q (%v), want %q", got, err, text)
	}
}

// silent checks that nothing comes, and no end.
func (l *line) silent() {
	l.Helper()
	if got, err := l.hears(100 * time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		l.Fatalf("heard %q (%v), want nothing", got, err)
	}
}

// ends checks that it comes to its end, and nothing before it.
func (l *line) ends() {
	l.Helper()
	got, err := l.hears(10 * time.Second)
	if got != "" || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		l.Fatalf("heard %q (%v), want its end", got, err)
	}
}

func (c *cluster) part(a, b string) {
	c.Helper()
	if err := c.ways.Part(a, b); err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) rejoin(a, b string) {
	c.Helper()
	if err := c.ways.Rejoin(a, b); err != nil {
		c.Fatal(err)
	}
}

// connections returns how many there are.
func (c *cluster) connections() int {
	c.ways.mu.Lock()
	defer c.ways.mu.Unlock()
	return len(c.ways.conns)
}

// waitStanding waits until bytes stand still on n connections. A connection counts only after its
// dialler has been found, which takes long on a busy machine.
func (c *cluster) waitStanding(n int) {
	c.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		standing := 0
		c.ways.mu.Lock()
		for conn := range c.ways.conns {
			if conn.stood {
				standing++
			}
		}
		c.ways.mu.Unlock()
		if standing == n {
			return
		}
		if time.Now().After(deadline) {
			c.Fatalf("bytes stand still on %d connections, want %d", standing, n)
		}
	}
}

// TestWaysArePartedByWhoDials checks that only the two parted members are cut from each other, in
// both directions, and that every dialler is identified.
func TestWaysArePartedByWhoDials(t *testing.T) {
	c := members(t, 3)
	lines := map[[2]int]*line{}
	for from := 1; from <= 3; from++ {
		for to := 1; to <= 3; to++ {
			if from != to {
				l := c.dial(from, to)
				l.say("hello")
				l.wants("hello")
				lines[[2]int{from, to}] = l
			}
		}
	}
	c.part("n3", "n1")
	c.part("n1", "n3") // again
	for at, l := range lines {
		l.say("still there")
		if at == [2]int{1, 3} || at == [2]int{3, 1} {
			l.silent()
		} else {
			l.wants("still there")
		}
	}
	anew := c.dial(1, 3)
	anew.say("and now")
	anew.silent()
	c.waitStanding(3)
	c.rejoin("n1", "n3")
	c.rejoin("n1", "n3")
	anew.ends()
	for at, l := range lines {
		if at == [2]int{1, 3} || at == [2]int{3, 1} {
			l.ends() // what stood still never came
		} else {
			l.say("once more")
			l.wants("once more")
		}
	}
	anew = c.dial(1, 3)
	anew.say("and now")
	anew.wants("and now")
}

// A connection on which nothing was said meanwhile goes on.
func TestWaysGoOnWhereNothingWasSaid(t *testing.T) {
	c := members(t, 2)
	l := c.dial(1, 2)
	l.say("hello")
	l.wants("hello")
	c.part("n1", "n2")
	l.silent()
	c.rejoin("n1", "n2")
	l.say("still there")
	l.wants("still there")
	if err := l.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	l.ends()
}

// Who was said nothing but that it is over doesn't hear that either, until they are rejoined.
func TestNoEndIsToldWhileParted(t *testing.T) {
	c := members(t, 2)
	l := c.dial(1, 2)
	l.say("hello")
	l.wants("hello")
	c.part("n1", "n2")
	if err := c.daemons[1].Kill(); err != nil {
		t.Fatal(err)
	}
	l.silent()
	c.waitStanding(1)
	c.rejoin("n1", "n2")
	l.ends()
}

// TestWaysToAStoppedMember checks that bytes in transit to a stopped member stand still after a
// partition, too, and that the stopped member resets no connection.
func TestWaysToAStoppedMember(t *testing.T) {
	c := members(t, 3)
	l := c.dial(1, 2)
	l.say("hello")
	l.wants("hello")
	if err := c.daemons[1].Pause(); err != nil {
		t.Fatal(err)
	}
	// So much that it can't all be in the hands of the system: until nothing more is taken, however slow the machine is.
	const most = 1 << 30
	for taken, some := 0, []byte(strings.Repeat("x", 1<<20)); ; {
		_ = l.SetWriteDeadline(time.Now().Add(2 * time.Second))
		n, err := l.TCPConn.Write(some)
		if taken += n; taken >= most || err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("a stopped member has read %d bytes: %v", taken, err)
		}
		if n == 0 {
			break
		}
	}
	other := c.dial(3, 1)
	other.say("the others go on")
	other.wants("the others go on")
	c.part("n1", "n2")
	c.waitStanding(1)
	if err := c.daemons[1].Resume(); err != nil {
		t.Fatal(err)
	}
	c.rejoin("n1", "n2")
	_ = l.SetReadDeadline(time.Now().Add(10 * time.Second))
	if n, err := io.Copy(io.Discard, l.read); err == nil && n >= most || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes came, %v: it was not reset", n, err)
	}
}

// One that is killed ends its connections, and is refused what is dialled then; when it is back it is reached again.
func TestWaysToAKilledMember(t *testing.T) {
	c := members(t, 2)
	there, back := c.dial(1, 2), c.dial(2, 1)
	for _, l := range []*line{there, back} {
		l.say("hello")
		l.wants("hello")
	}
	if err := c.daemons[1].Kill(); err != nil {
		t.Fatal(err)
	}
	there.ends()
	back.ends()
	c.dial(1, 2).ends()
	if err := c.daemons[1].Restart(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	again := c.dial(1, 2)
	again.say("hello")
	again.wants("hello")
}

// TestNobodysConnectionIsClosed checks that a process that is no member reaches no member.
func TestNobodysConnectionIsClosed(t *testing.T) {
	c := members(t, 1)
	if conn, err := net.Dial("tcp", ports.Address(c.to[0])); err == nil { // it may be reset so soon
		defer conn.Close()
		_, _ = io.WriteString(conn, "hello\n")
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if n, err := conn.Read(make([]byte, 10)); n > 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%d bytes, %v", n, err)
		}
	}
	for _, pair := range [][2]string{{"n1", "n2"}, {"n1", "x"}, {"n1", "n1"}} {
		if err := c.ways.Part(pair[0], pair[1]); err == nil {
			t.Errorf("%v were parted", pair)
		}
		if err := c.ways.Rejoin(pair[0], pair[1]); err == nil {
			t.Errorf("%v were rejoined", pair)
		}
	}
}

// TestWayBetween checks that a way with a fixed dialler needs no lookup of the dialler, and that an
// opening changes only the first message.
func TestWayBetween(t *testing.T) {
	c := members(t, 2)
	louder := func(r io.Reader, w io.Writer) error {
		first := make([]byte, 5)
		if _, err := io.ReadFull(r, first); err != nil {
			return err
		}
		_, err := w.Write([]byte(strings.ToUpper(string(first)) + "!"))
		return err
	}
	way, err := c.ways.Between(1, 2, int(c.daemons[1].port.Load()), louder)
	if err != nil {
		t.Fatal(err)
	}
	dial := func() *line {
		conn, err := net.Dial("tcp", ports.Address(way))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return &line{t, conn.(*net.TCPConn), bufio.NewReader(conn)}
	}
	l := dial()
	l.say("hello hello")
	l.wants("HELLO! hello")
	l.say("hello")
	l.wants("hello")
	c.part("n1", "n2")
	l.say("hello")
	l.silent()
	quiet := dial()
	quiet.say("hello")
	quiet.silent()
	c.waitStanding(2)
	c.rejoin("n1", "n2")
	l.ends()
	quiet.ends()
	// Who is parted is not even seen to dial, and who hangs up at once is heard all the same.
	listening, err := net.Listen("tcp", ports.Address(0))
	if err != nil {
		t.Fatal(err)
	}
	defer listening.Close()
	sink := listening.(*net.TCPListener)
	if way, err = c.ways.Between(1, 2, sink.Addr().(*net.TCPAddr).Port, nil); err != nil {
		t.Fatal(err)
	}
	c.part("n1", "n2")
	quiet = dial()
	quiet.say("hello")
	_ = sink.SetDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := sink.Accept(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("it was dialled, %v", err)
	}
	_ = sink.SetDeadline(time.Time{})
	c.rejoin("n1", "n2")
	quiet.ends()
	// So much that the system has it in hand still when both sides are closed.
	short, all := dial(), strings.Repeat("x", 512<<10)
	short.say(all)
	_ = short.Close()
	conn, err := sink.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); c.connections() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it is open still, though both sides have closed it")
		}
	}
	if text, err := io.ReadAll(conn); string(text) != all+"\n" || err != nil {
		t.Errorf("heard %d bytes, %v", len(text), err)
	}
}

// Close ends everything that there is, and that stands still, and leaves no goroutine.
func TestWaysEnd(t *testing.T) {
	before := runtime.NumGoroutine()
	c := members(t, 2)
	open, still := c.dial(1, 2), c.dial(2, 1)
	for _, l := range []*line{open, still} {
		l.say("hello")
		l.wants("hello")
	}
	c.part("n1", "n2")
	still.say("hello")
	still.silent()
	c.dial(1, 2).silent()
	if err := c.host.Close(); err != nil {
		t.Fatal(err)
	}
	open.ends()
	still.ends()
	if conn, err := net.Dial("tcp", ports.Address(c.to[0])); err == nil {
		_ = conn.Close()
		t.Error("somebody listens still")
	}
	if _, err := c.ways.To(1, 1); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a way after the end: %v", err)
	}
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, and there were %d\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// The hop costs a fraction of a millisecond, once there is a connection.
func BenchmarkWay(b *testing.B) {
	h, err := New(Options{Name: "bench", Prefix: "lockfault-daemon-", Dir: b.TempDir(), Limit: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	l, err := net.Listen("tcp", ports.Address(0))
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c) }()
		}
	}()
	ways, port := h.NewWays(), l.Addr().(*net.TCPAddr).Port
	way, err := ways.Between(1, 2, port, nil)
	if err != nil {
		b.Fatal(err)
	}
	ways.Join(2, &Daemon{})
	for name, at := range map[string]int{"straight": port, "by a way": way} {
		b.Run(name, func(b *testing.B) {
			c, err := net.Dial("tcp", ports.Address(at))
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			message := make([]byte, 100)
			for b.Loop() {
				if _, err := c.Write(message); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(c, message); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("who dials", func(b *testing.B) {
		c, err := net.Dial("tcp", ports.Address(port))
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		for b.Loop() {
			if _, err := dialler(c.(*net.TCPConn), map[int]int{1: os.Getpid()}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
