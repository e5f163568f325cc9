package conformance

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/internal/ports"
	"github.com/lockfault/lockfault/internal/resp"
)

// servers is the side of redis-server: a primary and a replica.
type servers struct {
	primary, replica *process
	admin            *operator // on the primary
	release          release
	bell             chan struct{} // holds one note that something came
	stopped          bool          // the replica's process is
}

var _ side = (*servers)(nil)

// findServer returns the program to start. Where there is none the test is
// skipped, unless it is CI that runs it.
func findServer(t *testing.T) string {
	t.Helper()
	if *program != "" {
		return *program
	}
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const missing = "redis-server is not on PATH: install it (apt-get install redis-server, brew install redis) or name it with -redis-server FILE"
	if os.Getenv("CI") == "true" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}

// startServers starts both, and ends them with the test.
func startServers(t *testing.T) *servers {
	t.Helper()
	program := findServer(t)
	s := &servers{bell: make(chan struct{}, 1)}
	s.primary = start(t, program, "")
	s.replica = start(t, program, strconv.Itoa(s.primary.port))
	var err error
	if s.admin, err = s.primary.operate(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.admin.Close() })
	info, err := s.admin.do("INFO", "server")
	if err != nil {
		t.Fatal(err)
	}
	s.release = release{}
	for _, name := range []string{"redis", "valkey"} {
		if text := field(info, name+"_version"); text != "" {
			if s.release[name], err = parseVersion(text); err != nil {
				t.Fatal(err)
			}
		}
	}
	follower, err := s.replica.operate()
	if err != nil {
		t.Fatal(err)
	}
	defer follower.Close()
	for deadline := time.Now().Add(startLimit); ; time.Sleep(10 * time.Millisecond) {
		info, err := follower.do("INFO", "replication")
		if err != nil {
			t.Fatal(err)
		}
		if field(info, "master_link_status") == "up" {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("the replica doesn't follow its primary; it logged\n%s", s.replica.log())
		}
	}
}

// field returns a value of INFO, which resp.Print shows in quotes.
func field(info, name string) string {
	_, rest, _ := strings.Cut(info, name+":")
	value, _, _ := strings.Cut(rest, `\r\n`)
	return value
}

// Dial connects to the primary, n1, or the replica, n1/1.
func (s *servers) Dial(_ context.Context, _, node string) (net.Conn, error) {
	if node == "n1/1" {
		return s.replica.dial()
	}
	return s.primary.dial()
}

// Run waits until the function returns true, or for as long as the limit.
func (s *servers) Run(limit time.Duration, until func() bool) bool {
	over := time.NewTimer(limit)
	defer over.Stop()
	for {
		if until() {
			return true
		}
		select {
		case <-s.bell:
		case <-over.C:
			return until()
		}
	}
}

// Notify rings the bell for Run.
func (s *servers) Notify() {
	select {
	case s.bell <- struct{}{}:
	default:
	}
}

// Apply stops the replication stream by stopping the replica, once it has said
// that it has all there is: what it is sent then waits in its socket.
func (s *servers) Apply(f faults.Fault) error {
	stream, ok := f.(faults.Replication)
	if !ok {
		return faults.ErrUnsupported
	}
	if stream.Mode == faults.ReplicationStart {
		s.stopped = false
		return s.replica.stop(false)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		info, err := s.admin.do("INFO", "replication")
		if err != nil {
			return err
		}
		// A replica speaks of its offset once a second, unless asked by WAIT.
		if strings.Contains(info, ",offset="+field(info, "master_repl_offset")+",") {
			s.stopped = true
			return s.replica.stop(true)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the replica never got as far as its primary: %s", info)
		}
	}
}

func (s *servers) settle(blocked int, done func() bool) error {
	for deadline := time.Now().Add(patience); !done(); time.Sleep(time.Millisecond) {
		info, err := s.admin.do("INFO", "clients")
		if err != nil {
			return err
		}
		if field(info, "blocked_clients") == strconv.Itoa(blocked) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the server should have %d blocked clients by now, but says %s", blocked, info)
		}
	}
	return nil
}

// reset makes the servers like new ones.
func (s *servers) reset() error {
	if s.stopped {
		s.stopped = false
		if err := s.replica.stop(false); err != nil {
			return err
		}
	}
	for _, command := range []string{"CLIENT KILL TYPE normal", "CLIENT KILL TYPE pubsub", "FLUSHALL", "SCRIPT FLUSH", "WAIT 1 10000"} {
		reply, err := s.admin.do(strings.Fields(command)...)
		if err != nil {
			return fmt.Errorf("%s: %w", command, err)
		}
		if command == "WAIT 1 10000" && reply != "(integer) 1" {
			return errors.New("the replica doesn't answer")
		}
	}
	return nil
}

// recorded is the Redis that the replies in testdata come from.
var recorded = version{7, 0}

// same reports whether an answer is the one in the file. Other releases than
// the one recorded put errors into other words.
func (s *servers) same(want, got string) bool {
	if s.release["redis"] != recorded {
		return sameCode(want, got)
	}
	return matches(want, got)
}

// startLimit is how long a server may take to start.
const startLimit = 3 * time.Minute

// process is a redis-server.
type process struct {
	dir  string
	port int // for the replica
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// start starts a server, the replica of the one at that port if it isn't empty.
// Clients are to use its socket, which is nobody else's; a port may be taken by
// another between the choice and the start, and then another is chosen.
func start(t *testing.T, program, primary string) *process {
	t.Helper()
	dir, err := os.MkdirTemp("", "redis") // t.TempDir's names are too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	p := &process{dir: dir}
	t.Cleanup(func() {
		p.kill()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	for range 5 {
		if p.port, err = ports.New().Take(); err != nil {
			t.Fatal(err)
		}
		if err = p.launch(program, primary); err == nil {
			return p
		}
		p.kill()
	}
	t.Fatalf("starting %s: %v; it logged\n%s", program, err, p.log())
	return nil
}

// launch starts the process, and returns when it answers.
func (p *process) launch(program, primary string) error {
	args := []string{
		"--port", strconv.Itoa(p.port), "--bind", "127.0.0.1", "--unixsocket", p.socket(), "--dir", p.dir, "--logfile", "log",
		"--save", "", "--appendonly", "no", "--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0",
		"--repl-ping-replica-period", "3600", "--repl-timeout", "7200", // nothing of its own accord in the stream
	}
	if primary != "" {
		args = append(args, "--replicaof", "127.0.0.1", primary)
	}
	p.cmd, p.done = exec.Command(program, args...), make(chan struct{})
	dieWithParent(p.cmd)
	started := make(chan error)
	go func() {
		// The system counts the thread that started a process as its parent.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // it is killed in the end
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	for deadline := time.Now().Add(startLimit); ; {
		if admin, err := p.operate(); err == nil {
			defer admin.Close()
			_, err = admin.do("PING")
			return err
		}
		select {
		case <-p.done:
			return errors.New("it ended at once")
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return errors.New("it does not answer")
		}
	}
}

func (p *process) socket() string { return filepath.Join(p.dir, "s") }

func (p *process) dial() (net.Conn, error) { return net.Dial("unix", p.socket()) }

func (p *process) log() string {
	text, _ := os.ReadFile(filepath.Join(p.dir, "log"))
	return string(text)
}

// kill ends the process and returns when it has ended, stopped or not.
func (p *process) kill() {
	if p.cmd == nil || p.cmd.Process == nil {
		return
	}
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.done
}

// operator is a connection that asks and waits for the answer.
type operator struct {
	net.Conn
	in *bufio.Reader
}

func (p *process) operate() (*operator, error) {
	c, err := p.dial()
	if err != nil {
		return nil, err
	}
	return &operator{c, bufio.NewReader(c)}, nil
}

// do returns the answer as resp.Print shows it. An error is an error here.
func (o *operator) do(words ...string) (string, error) {
	if err := o.SetDeadline(time.Now().Add(startLimit)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(o, "%s\r\n", strings.Join(words, " ")); err != nil {
		return "", err
	}
	var got []byte
	for {
		b, err := o.in.ReadByte()
		if err != nil {
			return "", err
		}
		got = append(got, b)
		if b != '\n' {
			continue
		}
		if n, err := resp.Frame(got); err != nil {
			return "", err
		} else if n > 0 {
			text := resp.Print(got, nil)
			if message, failed := strings.CutPrefix(text, "(error) "); failed {
				return "", errors.New(message)
			}
			return text, nil
		}
	}
}
