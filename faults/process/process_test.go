//go:build unix

package process_test

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
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/faults/process"
	"github.com/lockfault/lockfault/faults/process/processtest"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/internal/rediscli"
)

const password = "s3cret \"of\" these#tests"

// parentDir is set in a process that plays the host's owner, to be killed.
const parentDir = "LOCKFAULT_TEST_PARENT_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentDir); dir != "" {
		if err := parent(dir); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		select {}
	}
	os.Exit(m.Run())
}

func start(t *testing.T, h real.Host, spec real.ServerSpec) real.ManagedServer {
	t.Helper()
	spec.Password = password
	s, err := h.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return s.(real.ManagedServer)
}

func client(t *testing.T, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(options(addr))
	t.Cleanup(func() { c.Close() })
	return c
}

func options(addr string) *redis.Options {
	o := rediscli.Options(addr)
	o.Password = password
	return o
}

// pid returns the process of the server.
func pid(t *testing.T, c *redis.Client) int {
	t.Helper()
	info, err := rediscli.Info(t.Context(), c, "server")
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(info["process_id"])
	if err != nil {
		t.Fatalf("INFO names no process: %v", err)
	}
	return n
}

// eventually fails the test if the condition doesn't come true in a time that
// is far more than enough.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long: %s", what)
		}
	}
}

// gone reports whether there is no such process, not even a zombie.
func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func TestServerWantsThePassword(t *testing.T) {
	h := processtest.Host(t, process.Options{})
	s := start(t, h, real.ServerSpec{Name: "n1"})
	c := client(t, s.Addr())
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	naked := redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1, Protocol: 2})
	defer naked.Close()
	if err := naked.Get(t.Context(), "k").Err(); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
		t.Errorf("without a password: %v", err)
	}
	host, _, err := net.SplitHostPort(s.Addr())
	if err != nil || !net.ParseIP(host).IsLoopback() {
		t.Errorf("it listens at %s", s.Addr())
	}
	if runtime.GOOS != "linux" {
		return
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid(t, c)))
	if err != nil || strings.Contains(string(line), "s3cret") {
		t.Errorf("its command line: %q, %v", line, err)
	}
}

func TestConfigurationIsPrivate(t *testing.T) {
	dir := t.TempDir()
	h := processtest.Host(t, process.Options{Dir: dir})
	start(t, h, real.ServerSpec{Name: "n1"})
	files, err := filepath.Glob(filepath.Join(dir, "*", "n1", "*.conf"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
}

// What was acknowledged is there after a crash, and keys that were due
// meanwhile are not.
func TestRestartKeepsWhatWasAcknowledged(t *testing.T) {
	h := processtest.Host(t, process.Options{})
	s := start(t, h, real.ServerSpec{Name: "n1"})
	c := client(t, s.Addr())
	ctx := t.Context()
	const keys = 200
	for i := range keys {
		if err := c.Set(ctx, fmt.Sprint("k", i), i, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Set(ctx, "short", "v", 300*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.Set(ctx, "long", "v", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	due := time.Now().Add(301 * time.Millisecond)
	addr := s.Addr()
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.Ping(ctx).Err(); err == nil {
		t.Error("a killed server answers")
	}
	time.Sleep(time.Until(due))
	if err := s.Restart(ctx, false); err != nil {
		t.Fatal(err)
	}
	if s.Addr() != addr {
		t.Errorf("it moved from %s to %s, though nobody wanted its port", addr, s.Addr())
	}
	c = client(t, s.Addr())
	if n, err := c.DBSize(ctx).Result(); err != nil || n < keys+1 {
		t.Errorf("%d keys, %v; want %d", n, err, keys+1)
	}
	if n, err := c.Exists(ctx, "short").Result(); err != nil || n != 0 {
		t.Errorf("a key that was due is there: %d, %v", n, err)
	}
	if left, err := c.PTTL(ctx, "long").Result(); err != nil || left <= 0 || left > time.Hour-300*time.Millisecond {
		t.Errorf("a lease of an hour has %v left, %v", left, err)
	}
}

func TestRestartEmpty(t *testing.T) {
	h := processtest.Host(t, process.Options{})
	s := start(t, h, real.ServerSpec{Name: "n1"})
	ctx := t.Context()
	if err := client(t, s.Addr()).Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(ctx, true); err == nil || !strings.Contains(err.Error(), "kill it first") {
		t.Errorf("a running server was restarted: %v", err)
	}
	for range 2 {
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Restart(ctx, true); err != nil {
		t.Fatal(err)
	}
	if n, err := client(t, s.Addr()).DBSize(ctx).Result(); err != nil || n != 0 {
		t.Errorf("%d keys, %v", n, err)
	}
}

func TestPause(t *testing.T) {
	h := processtest.Host(t, process.Options{})
	s := start(t, h, real.ServerSpec{Name: "n1"})
	c := client(t, s.Addr())
	process := pid(t, c)
	for range 50 {
		if err := s.Pause(); err != nil {
			t.Fatal(err)
		}
		if running := unstopped(t, process); running != "" {
			t.Fatalf("paused, and yet: %s", running)
		}
		answered := make(chan error, 1)
		go func() { answered <- c.Incr(context.WithoutCancel(t.Context()), "n").Err() }()
		select {
		case err := <-answered:
			t.Fatalf("a paused server answers: %v", err)
		case <-time.After(2 * time.Millisecond):
		}
		if err := s.Resume(); err != nil {
			t.Fatal(err)
		}
		if err := <-answered; err != nil {
			t.Fatal(err)
		}
	}
	for _, do := range []func() error{s.Resume, s.Pause, s.Pause, s.Kill, s.Kill} {
		if err := do(); err != nil {
			t.Error(err)
		}
	}
	if err := s.Pause(); err == nil {
		t.Error("a server that has ended was paused")
	}
	if err := s.Resume(); err == nil {
		t.Error("a server that has ended was resumed")
	}
	if err := s.Restart(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if n, err := client(t, s.Addr()).Get(t.Context(), "n").Int(); err != nil || n != 50 {
		t.Errorf("n is %d, %v", n, err)
	}
}

// unstopped describes a thread of the process that has not stopped; empty if all have, or if this
// system can't report it.
func unstopped(t *testing.T, pid int) string {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), ") T ") {
			return string(text)
		}
	}
	return ""
}

func TestReplicaFollows(t *testing.T) {
	h := processtest.Host(t, process.Options{})
	ctx := t.Context()
	primary := start(t, h, real.ServerSpec{Name: "n1"})
	if err := client(t, primary.Addr()).Set(ctx, "early", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	replica := start(t, h, real.ServerSpec{Name: "n1-r1"})
	follow(t, replica, primary)
	if err := client(t, primary.Addr()).Set(ctx, "late", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	r := client(t, replica.Addr())
	eventually(t, "the replica has both keys", func() bool { return r.Exists(ctx, "early", "late").Val() == 2 })
	// If the stream waits for an acknowledgement, that may come a second late.
	if log, err := os.ReadFile(primary.(interface{ Log() string }).Log()); err != nil || strings.Contains(string(log), "REPLCONF ACK") {
		t.Errorf("the primary waits for its replica before it streams: %v\n%s", err, log)
	}

	// They change places.
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := r.ReplicaOf(ctx, "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	if err := r.Set(ctx, "new", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := primary.Restart(ctx, false); err != nil {
		t.Fatal(err)
	}
	old := client(t, primary.Addr())
	follow(t, primary, replica)
	eventually(t, "the old primary has the new key", func() bool { return old.Exists(ctx, "new").Val() == 1 })
}

// follow makes one server the replica of the other, and waits until it is in sync.
func follow(t *testing.T, replica, primary real.Server) {
	t.Helper()
	host, port, _ := net.SplitHostPort(primary.Addr())
	if err := client(t, replica.Addr()).ReplicaOf(t.Context(), host, port).Err(); err != nil {
		t.Error(err)
		return
	}
	inSync(t, replica, primary)
}

// inSync waits until the replica has what the primary has.
func inSync(t *testing.T, replica, primary real.Server) {
	t.Helper()
	r, p := client(t, replica.Addr()), client(t, primary.Addr())
	eventually(t, "the replica is in sync", func() bool {
		return strings.Contains(r.Info(t.Context(), "replication").Val(), "master_link_status:up") &&
			strings.Contains(p.Info(t.Context(), "replication").Val(), "state=online")
	})
}

// TestManyAtOnce checks that five nodes with a replica each start at once on different ports.
func TestManyAtOnce(t *testing.T) {
	h := processtest.Host(t, process.Options{})
	var all sync.WaitGroup
	for i := range 5 {
		all.Go(func() {
			name := fmt.Sprint("n", i+1)
			primary, err := h.Start(t.Context(), real.ServerSpec{Name: name, Password: password})
			if err != nil {
				t.Error(err)
				return
			}
			replica, err := h.Start(t.Context(), real.ServerSpec{Name: name + "-r1", Password: password})
			if err != nil {
				t.Error(err)
				return
			}
			follow(t, replica, primary)
		})
	}
	all.Wait()
}

func TestCloseLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	h := processtest.Host(t, process.Options{Dir: dir})
	running := start(t, h, real.ServerSpec{Name: "running"})
	paused := start(t, h, real.ServerSpec{Name: "paused"})
	killed := start(t, h, real.ServerSpec{Name: "killed"})
	var pids []int
	for _, s := range []real.ManagedServer{running, paused, killed} {
		pids = append(pids, pid(t, client(t, s.Addr())))
	}
	if err := paused.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := killed.Kill(); err != nil {
		t.Fatal(err)
	}
	reports := filepath.Join(t.TempDir(), "deep", "reports")
	if err := h.CopyLogs(reports); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range []real.ManagedServer{running, paused, killed} {
		if !gone(pids[i]) {
			t.Errorf("process %d of %s is left", pids[i], s.Addr())
		}
		if l, err := net.Listen("tcp", s.Addr()); err != nil {
			t.Error(err)
		} else {
			l.Close()
		}
		if err := s.Pause(); err == nil {
			t.Error("paused after Close")
		}
		if err := s.Restart(t.Context(), false); err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("restarted after Close: %v", err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in the directory: %v, %v", left, err)
	}
	if _, err := h.Start(t.Context(), real.ServerSpec{Name: "late", Password: password}); err == nil {
		t.Error("started after Close")
	}
	for _, name := range []string{"running", "paused", "killed"} {
		text, err := os.ReadFile(filepath.Join(reports, name+".log"))
		if err != nil || !strings.Contains(string(text), "Ready to accept connections") {
			t.Errorf("the log of %s: %q, %v", name, text, err)
		}
	}
}

// Close in the midst of starts and restarts neither waits for them to come up
// nor leaves what they started.
func TestCloseDuringStart(t *testing.T) {
	for round := range 10 {
		dir := t.TempDir()
		h := processtest.Host(t, process.Options{Dir: dir})
		s := start(t, h, real.ServerSpec{Name: "n0"})
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() { h.Start(context.Background(), real.ServerSpec{Name: fmt.Sprint("n", i+1), Password: password}) })
		}
		all.Go(func() {
			s.Kill()
			s.Restart(context.Background(), false)
		})
		time.Sleep(time.Duration(round) * time.Millisecond)
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		all.Wait()
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left in the directory: %v, %v", left, err)
		}
		if s.Pause() == nil {
			t.Error("the first server was left")
		}
	}
}

// parent starts a running and a paused server, says their processes' numbers,
// and from goroutines of its own, whose threads end.
func parent(dir string) error {
	h, err := process.New(process.Options{Dir: dir})
	if err != nil {
		return err
	}
	done := make(chan error)
	for _, name := range []string{"running", "paused"} {
		go func() {
			runtime.LockOSThread() // without an unlock: the thread ends with the goroutine
			s, err := h.Start(context.Background(), real.ServerSpec{Name: name, Password: password})
			if err == nil && name == "paused" {
				err = s.(real.ManagedServer).Pause()
			}
			if err == nil {
				fmt.Println(s.Addr())
			}
			done <- err
		}()
		if err := <-done; err != nil {
			return err
		}
	}
	fmt.Println("ready")
	return nil
}

func TestServersDieWithTheirParent(t *testing.T) {
	processtest.Host(t, process.Options{}) // skips where there is no server program
	cmd := exec.Command(os.Args[0])
	dir := t.TempDir()
	cmd.Env = append(os.Environ(), parentDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	var addrs []string
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "ready"; {
		addrs = append(addrs, lines.Text())
	}
	if len(addrs) != 2 {
		t.Fatalf("the parent says %q", addrs)
	}
	// The one who started them lost a thread or two; they live all the same.
	time.Sleep(50 * time.Millisecond)
	running := pid(t, client(t, addrs[0]))
	if conn, err := net.Dial("tcp", addrs[1]); err != nil {
		t.Fatalf("the paused server doesn't listen: %v", err)
	} else {
		conn.Close()
	}
	other := processtest.Host(t, process.Options{Dir: dir}) // spares what has an owner
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("in the directory of two hosts: %v, %v", left, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the running server is gone", func() bool { return gone(running) })
	for _, addr := range addrs {
		eventually(t, "nobody listens at "+addr, func() bool {
			l, err := net.Listen("tcp", addr)
			if err == nil {
				l.Close()
			}
			return err == nil
		})
	}
	// Nobody could remove its directory; the next host does.
	cmd.Wait()
	processtest.Host(t, process.Options{Dir: dir})
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("in the directory of one host: %v, %v", left, err)
	}
}
