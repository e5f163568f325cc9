package real_test

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
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/process"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/faults/worldtest"
)

// role is set in a process that a world started, and selects what the process does.
const role = "LOCKFAULT_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "client":
		if err := relay(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "bad":
		fmt.Println("last words")
		fmt.Fprintln(os.Stderr, "what a day")
		os.Exit(3)
	default:
		redis.SetLogger(silence{}) // it reports each connection that is refused
		os.Exit(m.Run())
	}
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// relay is a client's process: it connects to the address in the first line
// that it reads and carries what comes from there, and from its standard
// input, to the other.
func relay() error {
	in := bufio.NewReader(os.Stdin)
	addr, err := in.ReadString('\n')
	if err != nil {
		return nil // it is not needed
	}
	conn, err := net.Dial("tcp", strings.TrimSpace(addr))
	if err != nil {
		return err
	}
	go io.Copy(conn, in)
	_, err = io.Copy(os.Stdout, conn)
	return err
}

// stage is a world and its recorded events, for a test.
type stage struct {
	*real.World
	t      *testing.T
	dir    string // of the servers
	events []checker.Event
	homes  map[string]*real.Process
	broken bool // the world is to be
}

// newStage makes a world that closes with the test. Without a server program
// the test is skipped, except where nothing may be.
func newStage(t *testing.T, cfg real.Config, as string) *stage {
	t.Helper()
	s := &stage{t: t, dir: t.TempDir(), homes: map[string]*real.Process{}}
	var err error
	if cfg.Host == nil {
		cfg.Lock = faults.SingleKeyLock(worldtest.Key)
		cfg.Host, err = process.New(process.Options{Dir: s.dir})
	}
	if missing := (*process.BinaryError)(nil); errors.As(err, &missing) && os.Getenv("CI") == "" || runtime.GOOS == "windows" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Nodes == 0 {
		cfg.Nodes = 1
	}
	if cfg.TTL == 0 {
		cfg.TTL = worldtest.TTL
	}
	cfg.Record = func(e checker.Event) { s.events = append(s.events, e) }
	cfg.Client = func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), role+"="+as, "GORACE=atexit_sleep_ms=0") // or each takes a second to end
		return cmd
	}
	s.World, err = real.New(t.Context(), cfg)
	if errors.Is(err, real.ErrNoClock) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := s.Close()
		if !s.broken {
			err = errors.Join(err, s.Err())
		}
		if err != nil {
			t.Error(err)
		}
	})
	return s
}

// place returns where a client finds a node.
func (s *stage) place(client, node string) real.Place {
	s.t.Helper()
	if s.homes[client] == nil {
		s.home(client)
	}
	for i, place := range s.homes[client].Home.Places {
		if faults.NodeName(i) == node {
			return place
		}
	}
	s.t.Fatalf("%s has no way to %s", client, node)
	return real.Place{}
}

// dial returns a function that connects a client to a node, from this process.
func (s *stage) dial(client, node string) func() (net.Conn, error) {
	place := s.place(client, node)
	return func() (net.Conn, error) { return connect(place) }
}

func connect(place real.Place) (net.Conn, error) {
	conn, err := net.Dial("tcp", place.Addr)
	if err != nil {
		return nil, err
	}
	if err := login(conn, place.Password); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

func login(conn io.ReadWriter, password string) error {
	if _, err := conn.Write(worldtest.Request("AUTH " + password)); err != nil {
		return err
	}
	answer := make([]byte, 5)
	if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != "+OK\r\n" {
		return fmt.Errorf("AUTH is answered with %q, %v", answer, err)
	}
	return nil
}

// apply does faults.
func (s *stage) apply(list ...faults.Fault) {
	s.t.Helper()
	for _, f := range list {
		if err := s.Apply(f); err != nil {
			s.t.Fatalf("%v: %v", f, err)
		}
	}
}

// run runs the world for a duration.
func (s *stage) run(d time.Duration) { s.Run(d, func() bool { return false }) }

// patience is how long anything may take.
const patience = 3 * time.Minute

// await runs the world until a condition is true.
func (s *stage) await(what string, so func() bool) {
	s.t.Helper()
	if !s.Run(patience, so) {
		s.t.Fatalf("waited %v in vain: %s; told:\n%s", patience, what, worldtest.Lines(s.events))
	}
}

// forget starts a new page.
func (s *stage) forget() { s.events = nil }

// want waits until the events of some kinds since forget are those, and no
// others.
func (s *stage) want(want string, kinds ...checker.Kind) {
	s.t.Helper()
	var lines []string
	for line := range strings.Lines(want) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	want = strings.Join(lines, "\n")
	got := func() string { return worldtest.Lines(s.events, kinds...) }
	s.Run(patience, func() bool { return got() == want })
	if got() != want {
		s.t.Errorf("got events\n%s\nwant\n%s", got(), want)
	}
}

// wire is a client's bare connection.
type wire struct {
	stage *stage
	to    io.Writer

	mu    sync.Mutex
	heard []byte
	err   error
}

// conn connects a client to a node.
func (s *stage) conn(client, node string) *wire {
	s.t.Helper()
	return s.reach(s.place(client, node))
}

// reach connects to a place.
func (s *stage) reach(place real.Place) *wire {
	s.t.Helper()
	var conn net.Conn
	ends := make(chan error, 1)
	go func() {
		var err error
		conn, err = connect(place)
		ends <- err
		s.Notify()
	}()
	s.await("connecting to "+place.Addr, func() bool { return len(ends) > 0 })
	if err := <-ends; err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	return s.listen(conn, conn)
}

func (s *stage) listen(to io.Writer, from io.Reader) *wire {
	w := &wire{stage: s, to: to}
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := from.Read(buf)
			w.mu.Lock()
			w.heard, w.err = append(w.heard, buf[:n]...), err
			w.mu.Unlock()
			s.Notify()
			if err != nil {
				return
			}
		}
	}()
	return w
}

// say sends requests in one write.
func (w *wire) say(requests ...string) {
	w.stage.t.Helper()
	if _, err := w.to.Write(worldtest.Request(requests...)); err != nil {
		w.stage.t.Fatalf("%q: %v", requests, err)
	}
}

// hear waits for an answer, with blanks for the ends of lines.
func (w *wire) hear(want string) {
	w.stage.t.Helper()
	want = strings.ReplaceAll(want, " ", "\r\n") + "\r\n"
	var got, all string
	var err error
	w.stage.Run(patience, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		got, all, err = string(w.heard[:min(len(want), len(w.heard))]), string(w.heard), w.err
		return len(got) == len(want) || err != nil
	})
	if got != want {
		w.stage.t.Fatalf("heard %q and then %v; want %q", all, err, want)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = w.heard[len(want):]
}

// ask sends a request and waits for its answer.
func (w *wire) ask(request, answer string) {
	w.stage.t.Helper()
	w.say(request)
	w.hear(answer)
}

// ends waits for the end of the connection.
func (w *wire) ends() {
	w.stage.t.Helper()
	w.stage.await("the connection ends", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.err != nil
	})
}

// silent reports whether no unexpected message was received.
func (w *wire) silent() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.heard) == 0 && w.err == nil
}

// home returns where a client finds what it needs.
func (s *stage) home(client string) real.Home {
	s.t.Helper()
	p, err := s.Spawn(client)
	if err != nil {
		s.t.Fatal(err)
	}
	s.homes[client] = p
	return p.Home
}
