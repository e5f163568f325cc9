//go:build unix

package docker_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockfault/lockfault/faults/docker"
	"github.com/lockfault/lockfault/faults/docker/dockertest"
)

// startParent starts a process that will be killed, and returns the label of
// what it makes and the lines that it says from then on.
func startParent(t *testing.T, dir string) (cmd *exec.Cmd, label string, lines *bufio.Scanner) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asParent+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines = bufio.NewScanner(out)
	return cmd, "lockfault.run=" + line(t, lines), lines
}

func line(t *testing.T, lines *bufio.Scanner) string {
	t.Helper()
	if !lines.Scan() || strings.HasPrefix(lines.Text(), "error") {
		t.Fatal("the parent said: ", lines.Text())
	}
	return lines.Text()
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
}

// TestKilledHostLeavesNothing checks that a killed process leaves no container, running or paused,
// no network and no directory.
func TestKilledHostLeavesNothing(t *testing.T) {
	if !dockertest.Ready(t) {
		return
	}
	dir := t.TempDir()
	cmd, label, lines := startParent(t, dir)
	for range 2 {
		line(t, lines)
	}
	c := engine(t)
	if containers, networks := ours(t, c, label); len(containers) != 2 || len(networks) != 1 {
		t.Fatalf("containers %v, networks %v", containers, networks)
	}
	kill(t, cmd)
	begun := time.Now()
	eventually(t, "the engine has nothing of it", func() bool {
		containers, networks := ours(t, c, label)
		return len(containers)+len(networks) == 0
	})
	t.Logf("gone after %v", time.Since(begun))
	eventually(t, "the watchman has gone", func() bool { return empty(t, dir) })
}

// What the engine was asked for, and shows only later, goes too.
func TestHostKilledWhileItMakesSomething(t *testing.T) {
	t.Parallel() // it mostly waits
	if !dockertest.Ready(t) {
		return
	}
	c := engine(t)
	type killed struct {
		after      time.Duration
		dir, label string
	}
	var all []killed
	for _, after := range []time.Duration{10, 60, 120, 180, 240} {
		dir := t.TempDir()
		cmd, label, _ := startParent(t, dir)
		time.Sleep(after * time.Millisecond) // somewhere in the middle
		kill(t, cmd)
		all = append(all, killed{after, dir, label})
	}
	// The directory has a watchman of its own, which is faster than that of the containers. The latter
	// takes long if the engine had not been asked yet for what the watchman waits for.
	for _, k := range all {
		eventually(t, fmt.Sprintf("nothing is left of the host that was killed after %dms", k.after), func() bool {
			containers, networks := ours(t, c, k.label)
			return len(containers)+len(networks) == 0 && empty(t, k.dir)
		})
	}
	time.Sleep(3 * time.Second) // for what the engine was still making
	for _, k := range all {
		if containers, networks := ours(t, c, k.label); len(containers)+len(networks) > 0 {
			t.Errorf("killed after %dms it left containers %v, networks %v", k.after, containers, networks)
		}
	}
}

func empty(t *testing.T, dir string) bool {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(left) == 0
}

// If all watchmen were killed with their host, the next host in the same place removes what is left.
func TestNextHostSweeps(t *testing.T) {
	if !dockertest.Ready(t) {
		return
	}
	dir := t.TempDir()
	cmd, label, lines := startParent(t, dir)
	for range 2 {
		line(t, lines)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", cmd.Process.Pid, cmd.Process.Pid))
	if err != nil {
		t.Skip(err)
	}
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", cmd.Process.Pid))
	for _, thread := range threads {
		more, _ := os.ReadFile(thread)
		text = append(append(text, ' '), more...)
	}
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil { // it replaces none
		t.Fatal(err)
	}
	for _, word := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		_ = syscall.Kill(pid, syscall.SIGKILL) // some are named twice
	}
	kill(t, cmd)
	c := engine(t)
	if containers, networks := ours(t, c, label); len(containers) != 2 || len(networks) != 1 {
		t.Fatalf("containers %v, networks %v", containers, networks)
	}
	dockertest.Host(t, docker.Options{Dir: dir})
	if containers, networks := ours(t, c, label); len(containers)+len(networks) > 0 {
		t.Errorf("left containers %v, networks %v", containers, networks)
	}
}

// TestWatchmanWithoutOrders checks that a watchman without messages does nothing.
func TestWatchmanWithoutOrders(t *testing.T) {
	t.Cleanup(func() { signal.Reset() }) // what a watchman ignores
	if err := docker.Watch(strings.NewReader("")); err != nil {
		t.Error(err)
	}
	if err := docker.Watch(strings.NewReader(`{"run":`)); err == nil {
		t.Error("half an order was taken for a whole one")
	}
}
