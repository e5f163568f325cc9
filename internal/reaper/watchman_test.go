//go:build unix

package reaper

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// eventually fails the test if the condition doesn't come true in far more than enough time.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long: %s", what)
		}
	}
}

// sorter returns the command of a process that writes the lines that it read to the file.
func sorter(file string) func() *exec.Cmd {
	return func() *exec.Cmd { return exec.Command("/bin/sh", "-c", `sort >"$1"`, "sh", file) }
}

// A watchman reads whole lines, and does its work when the pipe ends. The process leads a group.
func TestWatchman(t *testing.T) {
	file := filepath.Join(t.TempDir(), "heard")
	w, err := Start(sorter(file), nil)
	if err != nil {
		t.Fatal(err)
	}
	if group, err := syscall.Getpgid(w.cmd.Process.Pid); err != nil || group != w.cmd.Process.Pid {
		t.Errorf("its group is %d, %v", group, err)
	}
	var told sync.WaitGroup
	for _, line := range []string{"one", "two", "three"} {
		told.Go(func() {
			if err := w.Send(line); err != nil {
				t.Error(err)
			}
		})
	}
	told.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "one\nthree\ntwo\n" {
		t.Errorf("heard %q, %v", text, err)
	}
	if err := w.Send("late"); err == nil {
		t.Error("a closed watchman was told something")
	}
}

// A watchman that was killed is replaced, and one that was stopped does its work.
func TestKilledAndStopped(t *testing.T) {
	file := filepath.Join(t.TempDir(), "heard")
	w, err := Start(sorter(file), func() []string { return []string{"before"} })
	if err != nil {
		t.Fatal(err)
	}
	pid := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.cmd.Process.Pid
	}
	for range 3 {
		killed := pid()
		if err := syscall.Kill(-killed, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, "another watchman", func() bool { return pid() != killed })
	}
	if err := w.Send("then"); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(pid(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "before\nthen\n" {
		t.Errorf("heard %q, %v", text, err)
	}
}

// A watchman that is killed at the moment of Close does its work all the same.
func TestKilledAtTheEnd(t *testing.T) {
	file := filepath.Join(t.TempDir(), "heard")
	w, err := Start(sorter(file), func() []string { return []string{"before"} })
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(-w.cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "before\n" {
		t.Errorf("heard %q, %v", text, err)
	}
}

// A process that is done before Close is not replaced.
func TestDone(t *testing.T) {
	started := 0
	w, err := Start(func() *exec.Cmd {
		started++
		return exec.Command("/bin/sh", "-c", "read line")
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Send("go"); err != nil {
		t.Error(err)
	}
	<-w.ended
	if err := w.Close(); err != nil || started != 1 {
		t.Errorf("%v; %d processes were started", err, started)
	}
}

func TestFails(t *testing.T) {
	w, err := Start(func() *exec.Cmd { return exec.Command("/bin/sh", "-c", "cat; exit 3") }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err == nil {
		t.Error("a watchman that failed is no error")
	}
}

func TestNobody(t *testing.T) {
	var w *Reaper
	if err := w.Send("x"); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Start(func() *exec.Cmd { return exec.Command(filepath.Join(t.TempDir(), "none")) }, nil); err == nil {
		t.Error("a program that isn't there was started")
	}
}
