//go:build unix

package proc_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockfault/lockfault/internal/proc"
)

// role is set in a process that a test started, and says what it is to be.
const role = "LOCKFAULT_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "parent":
		if err := parent(); err != nil {
			fmt.Println("error:", err)
		}
		select {}
	case "echo":
		io.Copy(os.Stdout, os.Stdin)
		os.Exit(7)
	default:
		os.Exit(m.Run())
	}
}

// as returns the command of a process that plays a role.
func as(name string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), role+"="+name)
	return cmd
}

// newLauncher returns a launcher that closes with the test.
func newLauncher(t *testing.T) *proc.Launcher {
	t.Helper()
	l, err := proc.NewLauncher()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// start starts the command, and kills it before the test ends.
func start(t *testing.T, l *proc.Launcher, cmd *exec.Cmd) *proc.Proc {
	t.Helper()
	p, err := l.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	return p
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

func TestStatus(t *testing.T) {
	l := newLauncher(t)
	cmd := as("echo")
	cmd.Stdin = strings.NewReader("hello")
	var out strings.Builder
	cmd.Stdout = &out
	p := start(t, l, cmd)
	<-p.Ended()
	var exit *exec.ExitError
	if err := p.Status(); !errors.As(err, &exit) || exit.ExitCode() != 7 || out.String() != "hello" {
		t.Errorf("it ended with %v and said %q", err, &out)
	}
	if p.Alive() {
		t.Error("it is alive")
	}
	for what, do := range map[string]func() error{"Pause": p.Pause, "Resume": p.Resume} {
		if err := do(); !errors.Is(err, proc.ErrEnded) {
			t.Errorf("%s of one that has ended: %v", what, err)
		}
	}
	if err := p.Kill(); err != nil {
		t.Errorf("Kill of one that has ended: %v", err)
	}
	if _, err := l.Start(exec.Command(filepath.Join(t.TempDir(), "none"))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that isn't there: %v", err)
	}
}

// A paused process does nothing until it is resumed, and is killed as well as
// any other.
func TestPause(t *testing.T) {
	cmd := as("echo")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout = w
	p := start(t, newLauncher(t), cmd)
	w.Close()
	echo := func(deadline time.Time) error {
		if _, err := io.WriteString(in, "x"); err != nil {
			return err
		}
		out.SetReadDeadline(deadline)
		_, err := out.Read(make([]byte, 1))
		return err
	}
	far := time.Now().Add(time.Minute)
	if err := echo(far); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time nothing changes
		if err := p.Pause(); err != nil {
			t.Fatal(err)
		}
	}
	if err := echo(time.Now().Add(50 * time.Millisecond)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a paused process answers: %v", err)
	}
	if err := p.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := echo(far); err != nil {
		t.Errorf("a resumed process: %v", err)
	}
	if err := errors.Join(p.Pause(), p.Kill()); err != nil {
		t.Fatal(err)
	}
	if p.Alive() || !gone(p.PID()) {
		t.Error("a paused process survives its Kill")
	}
}

// Its own children go the way of a process.
func TestKillReachesChildren(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	p := start(t, newLauncher(t), exec.Command("/bin/sh", "-c", `sleep 1000 & echo $! > "$0.part"; mv "$0.part" "$0"; wait`, file))
	var pid int
	eventually(t, "it says its child's number", func() bool {
		text, _ := os.ReadFile(file)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return pid != 0
	})
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the child of a killed process is gone", func() bool { return ended(pid) })
}

// So they do when it ends by itself.
func TestChildrenEndWithIt(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the system can't say that a process has ended before its number is free")
	}
	file := filepath.Join(t.TempDir(), "pid")
	p := start(t, newLauncher(t), exec.Command("/bin/sh", "-c", `sleep 1000 & echo $! > "$0"`, file))
	<-p.Ended()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(pid, syscall.SIGKILL) // no effect on one that has ended
	eventually(t, "the child of a process that ended is gone", func() bool { return ended(pid) })
}

// ended reports whether the process has ended, even if nobody waits for it.
func ended(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(stat), ") ")
	return gone(pid) || err == nil && strings.HasPrefix(state, "Z")
}

// parent starts a running and a paused process, from goroutines whose threads end, and a process with
// a stopped child. It writes their numbers, of the last one the child's.
func parent() error {
	l, err := proc.NewLauncher()
	if err != nil {
		return err
	}
	done := make(chan error)
	for _, paused := range []bool{false, true} {
		go func() {
			runtime.LockOSThread() // without an unlock: the thread ends with the goroutine
			p, err := l.Start(exec.Command("sleep", "1000"))
			if err == nil && paused {
				err = p.Pause()
			}
			if err == nil {
				fmt.Println(p.PID())
			}
			done <- err
		}()
		if err := <-done; err != nil {
			return err
		}
	}
	// The child of a child, which stays in the group, ignores SIGHUP and is stopped alone.
	said, writes, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd := exec.Command("/bin/sh", "-c", "trap '' HUP; sleep 1000 & echo $!; wait")
	cmd.Stdout = writes
	if _, err := l.Start(cmd); err != nil {
		return err
	}
	var pid int
	if _, err := fmt.Fscan(said, &pid); err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	fmt.Println(pid)
	fmt.Println("ready")
	return nil
}

func TestTheyDieWithTheirParent(t *testing.T) {
	cmd := as("parent")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	var pids []int
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ready" {
		pid, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatalf("the parent says %q", lines.Text())
		}
		pids = append(pids, pid)
	}
	t.Cleanup(func() {
		for _, pid := range pids {
			if t.Failed() {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
	if len(pids) != 3 {
		t.Fatalf("the parent started %v", pids)
	}
	// The one who started them lost a thread or two; they live all the same.
	time.Sleep(50 * time.Millisecond)
	for _, pid := range pids {
		if ended(pid) {
			t.Errorf("process %d died before its parent", pid)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for i, what := range []string{"running", "paused", "child's stopped"} {
		eventually(t, "the "+what+" process is gone", func() bool { return ended(pids[i]) })
	}
}

// A process has what its command names, and nothing that its parent was
// careless with.
func TestTheyInheritNothing(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "inherited"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	fd, err := syscall.Dup(int(file.Fd())) // one that doesn't close by itself
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	cmd := as("echo")
	in, err := cmd.StdinPipe() // it stays as long as this is open
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	p := start(t, newLauncher(t), cmd)
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.PID()))
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range list {
		if to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", p.PID(), fd.Name())); err == nil && to == file.Name() {
			t.Errorf("its descriptor %s is %s", fd.Name(), to)
		}
	}
}
